"""How both ends use h2: its settings, the bounds it needs told, and one repair.

Nothing here parses a frame: correctness of HTTP/2 is the library's.
"""

from __future__ import annotations

import asyncio
import socket
from typing import Final

from h2.config import H2Configuration
from h2.connection import ConnectionInputs, H2Connection, H2ConnectionStateMachine
from h2.events import Event
from h2.settings import SettingCodes, Settings
from hyperframe.frame import DataFrame, WindowUpdateFrame

from skyfarer.base.units import KIB, MIB
from skyfarer.wire.header_blocks import HeaderBlocks

CONNECTION_WINDOW_BYTES: Final = 4 * MIB
STREAM_WINDOW_BYTES: Final = 1 * MIB
FRAME_BYTES_MAX: Final = 16 * KIB
HEADER_LIST_BYTES_MAX: Final = 16 * KIB
# h2 remembers how ended streams ended, by default 65,536 of them: megabytes on a connection that
# lives for days. Only those whose last frames may still be under way matter.
CLOSED_STREAMS_MAX: Final = 1024
KEEPALIVE_IDLE_S: Final = 60
KEEPALIVE_INTERVAL_S: Final = 10
KEEPALIVE_PROBES: Final = 3
# What a peer has not acknowledged in this time it will not: by default the kernel tries on for a
# quarter of an hour.
UNACKNOWLEDGED_S: Final = 30
_WINDOW_BYTES_DEFAULT: Final = 65_535  # RFC 9113, 6.9.2

# h2 makes the repr of every frame it receives for a log that is switched off, and a DATA frame's
# is all of its bytes in hexadecimal: more than a quarter of the cost of receiving.
DataFrame.__repr__ = object.__repr__  # type: ignore[method-assign]


class _DrainingStateMachine(H2ConnectionStateMachine):
    """h2 ends a connection at the first GOAWAY, sent or received. RFC 9113, 6.8 lets the streams
    that are open finish, which is what a graceful stop is; so here GOAWAY changes no state."""

    def process_input(self, input_: ConnectionInputs) -> list[Event]:
        if input_ is ConnectionInputs.SEND_GOAWAY or input_ is ConnectionInputs.RECV_GOAWAY:
            return []
        return super().process_input(input_)


class Http2(H2Connection):
    MAX_CLOSED_STREAMS = CLOSED_STREAMS_MAX

    def __init__(self, client_side: bool, streams_max: int) -> None:
        # Outbound headers are ours and well formed; checking each of them doubles a call's cost.
        config = H2Configuration(
            client_side=client_side,
            header_encoding=None,
            validate_outbound_headers=False,
            normalize_outbound_headers=False,
        )
        super().__init__(config)
        self.state_machine = _DrainingStateMachine()
        values = {
            SettingCodes.INITIAL_WINDOW_SIZE: STREAM_WINDOW_BYTES,
            SettingCodes.MAX_FRAME_SIZE: FRAME_BYTES_MAX,
            SettingCodes.MAX_HEADER_LIST_SIZE: HEADER_LIST_BYTES_MAX,
            SettingCodes.MAX_CONCURRENT_STREAMS: streams_max,
        }
        if client_side:
            values[SettingCodes.ENABLE_PUSH] = 0
        self.local_settings = Settings(client=client_side, initial_values=values)
        self.decoder = HeaderBlocks(HEADER_LIST_BYTES_MAX)

    def open(self) -> bytes:
        """Preface, settings and the wide connection window: the first bytes to write."""
        self.initiate_connection()
        self.increment_flow_control_window(CONNECTION_WINDOW_BYTES - _WINDOW_BYTES_DEFAULT)
        return self.data_to_send()

    def acknowledge_connection(self, size: int) -> None:
        """Gives back the connection's window alone: what one stream may not send yet must not
        keep the others from sending."""
        increment = self._inbound_flow_control_window_manager.process_bytes(size)
        if increment:
            frame = WindowUpdateFrame(0)
            frame.window_increment = increment
            self._prepare_for_sending([frame])

    def acknowledge_stream(self, size: int, stream_id: int) -> None:
        stream = self.streams.get(stream_id)
        if stream is not None and stream.open:
            self._prepare_for_sending(stream.acknowledge_received_data(size))


def keep_alive(transport: asyncio.BaseTransport) -> None:
    """Lets the kernel find peers that vanished without a word; they count as connections."""
    sock = transport.get_extra_info("socket")
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, KEEPALIVE_IDLE_S)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, KEEPALIVE_INTERVAL_S)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, KEEPALIVE_PROBES)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, UNACKNOWLEDGED_S * 1000)
