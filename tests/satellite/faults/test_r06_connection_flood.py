"""R6: more connections than anybody needs, from a few addresses."""

from __future__ import annotations

import socket
from contextlib import ExitStack
from pathlib import Path

from satellite.faults.agents import Agent, reporting
from satellite.faults.siege import WAIT_S, await_served, besieged
from skyfarer.base.units import MIB
from skyfarer.testing.programs import eventually

FLOOD = 3000
A_SOURCE_MAX = 1000
GROWTH_BYTES_MAX = 24 * MIB
REFUSED = 'receiver_connections_refused_total{reason="too_many_from_source"}'


def test_a_flood_from_one_address_takes_its_own_room_and_no_more(tmp_path: Path) -> None:
    with besieged(tmp_path, GROWTH_BYTES_MAX) as siege, ExitStack() as stack:
        satellite = siege.satellite
        for _ in range(FLOOD):
            hostile = stack.enter_context(socket.socket())
            hostile.bind(("127.0.0.3", 0))
            hostile.setblocking(False)
            hostile.connect_ex(("127.0.0.1", satellite.grpc_port))
        late = Agent(satellite.address, "late", 100)
        with reporting(late):
            await_served(late)
        siege.honest.sent |= late.sent
        siege.honest.acknowledged |= late.acknowledged
        assert not late.failures
        least = FLOOD - A_SOURCE_MAX
        eventually(lambda: satellite.metrics().get(REFUSED, 0) >= least, WAIT_S, "refusals")
