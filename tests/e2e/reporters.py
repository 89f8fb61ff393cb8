"""Agents that report real segments through a satellite, and what an OAP must then have stored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

import duckdb

from satellite.faults.agents import Agent, acknowledged, sent
from skyfarer.telemetry.ledger import Ledger
from skyfarer.testing.programs import Oap, ledger_since
from skyfarer.testing.traces import segment
from skyfarer.wire.messages import SegmentObject

NOON: Final = int(datetime(2026, 11, 15, 12, 0, tzinfo=UTC).timestamp() * 1000)
APPLIED_WITHIN_S: Final = 1200.0
NOTHING: Final[Mapping[str, Any]] = {"accepted": 0, "delivered": 0, "dropped": {}}


class Reporter(Agent):
    """Of segments of one minute; their numbers are their ids."""

    def make(self, number: int) -> bytes:
        start_ms, identifier = NOON + number % 60_000, f"{self.prefix}.{number}"
        made = segment("order", "order-1", "GET:/", start_ms, 10, segment_id=identifier)
        return made.SerializeToString()


def prove_stored_once(
    oap: Oap, books: Ledger, agents: Sequence[Reporter], before: Mapping[str, Any] = NOTHING
) -> None:
    """`books` are those of the satellite, which has sent everything, `before` those that the OAP
    had earlier. Stops the OAP."""
    assert books.dropped == {}
    applied = oap.await_applied(before["accepted"] + books.accepted, APPLIED_WITHIN_S)
    assert applied["balanced"]
    added = ledger_since(before, applied)
    assert added["dropped"].keys() <= {"duplicate"}, "only what was sent again may go"
    assert added["delivered"] == books.accepted
    assert oap.stop() == 0
    with duckdb.connect(str(oap.data / "storage" / "skyfarer.duckdb"), read_only=True) as stored:
        query = "SELECT segment_id FROM segment_20261115 WHERE starts_with(segment_id, ?)"
        rows = [
            row for one in agents for row in stored.execute(query, [f"{one.prefix}."]).fetchall()
        ]
    found = [segment_id for (segment_id,) in rows]
    assert len(found) == len(set(found)), "stored twice"
    assert _ids(acknowledged(agents)) <= set(found), "acknowledged and lost"
    assert set(found) <= _ids(sent(agents)), "never sent"
    assert len(found) == books.accepted


def _ids(payloads: set[bytes]) -> set[str]:
    return {SegmentObject.FromString(payload).traceSegmentId for payload in payloads}
