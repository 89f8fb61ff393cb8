"""An OAP as a satellite sees it: a real gRPC server that keeps what it is sent in memory.

What it is asked it answers from a table. It holds no conversations.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from skyfarer.base.units import MIB
from skyfarer.telemetry.health import Health
from skyfarer.telemetry.metrics import Registry
from skyfarer.testing.programs import free_port
from skyfarer.wire.relay import Conversation, Metadata
from skyfarer.wire.rpc import RPCS, Handling, Kind, Rpc
from skyfarer.wire.server import GrpcServer, ServerSettings
from skyfarer.wire.status import Status, StatusError

HOST = "127.0.0.1"

Judge = Callable[[int, Sequence[bytes]], None]


def _accept(kind: int, payloads: Sequence[bytes]) -> None:
    """Everything is welcome."""


class Upstream:
    """Runs on the event loop that started it; may be stopped and started again, at one address.

    `judge` sees what arrives before it is kept and refuses it by raising, as a queue would.
    `answers` is by path; what was asked, by whatever path, is in `asked`. It knows only `kinds`.
    """

    def __init__(
        self,
        judge: Judge = _accept,
        message_bytes_max: int = 50 * MIB,
        kinds: Collection[int] = tuple(Kind),
    ) -> None:
        self.judge = judge
        self._kinds = kinds
        self._message_bytes_max = message_bytes_max
        self.records: list[tuple[int, bytes]] = []
        self.answers: dict[str, bytes] = {}
        self.asked: list[tuple[str, bytes, dict[str, str]]] = []
        self.calls = 0
        self.port = free_port()
        self._server: GrpcServer | None = None

    @property
    def address(self) -> str:
        return f"{HOST}:{self.port}"

    def payloads(self, kind: int) -> list[bytes]:
        return [payload for one, payload in self.records if one == kind]

    async def start(self) -> None:
        health = Health()
        health.started()
        settings = ServerSettings(
            host=HOST, port=self.port, message_bytes_max=self._message_bytes_max
        )
        kept = [rpc for rpc in RPCS if rpc.handling is Handling.KEEP and rpc.kind in self._kinds]
        doors = {rpc.path: self._keep for rpc in kept}
        self._server = GrpcServer(settings, doors, self, Registry(), health)
        await self._server.start()

    async def stop(self, timeout_s: float = 1.0) -> None:
        server, self._server = self._server, None
        if server is not None:
            await server.stop(timeout_s)

    def _keep(self, kind: int, payloads: Sequence[bytes]) -> None:
        self.calls += 1
        self.judge(kind, payloads)
        self.records.extend((kind, bytes(payload)) for payload in payloads)

    async def ask(self, rpc: Rpc, message: bytes, metadata: Metadata) -> bytes:
        """Of a `Relay`: this is where relaying ends."""
        self.asked.append((rpc.path, message, dict(metadata.pairs)))
        if rpc.path not in self.answers:
            raise StatusError(Status.UNIMPLEMENTED, f"there is no answer to {rpc.path}")
        return self.answers[rpc.path]

    def converse(self, rpc: Rpc, metadata: Metadata) -> Conversation:
        raise StatusError(Status.UNIMPLEMENTED, f"{rpc.path} is a conversation")
