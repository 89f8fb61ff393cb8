"""What every test of this room ends with: the books are exact, and nothing acknowledged is lost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from satellite.faults.agents import Agent, acknowledged, sent
from satellite.faults.recording import RecordingUpstream
from skyfarer.queue.inspection import inspect
from skyfarer.telemetry.ledger import Ledger
from skyfarer.testing.satellites import SatelliteProgram

# Impatient, as suits a test: the pauses between two tries stay short.
QUICK = {
    "SATELLITE_TRACINGPIPE_SENDER_FLUSH_TIME": "20",
    "SKYFARER_SATELLITE_SENDER_RETRY_INITIAL": "10ms",
    "SKYFARER_SATELLITE_SENDER_RETRY_MAXIMUM": "200ms",
}


def prove(
    satellite: SatelliteProgram,
    upstream: RecordingUpstream,
    agents: Sequence[Agent],
    dropped: Mapping[str, int] | None = None,
) -> Ledger:
    """Waits until all is sent. Then: accepted = delivered + dropped, told by /metrics and by the
    queue's own files alike; what was delivered is what the upstream acknowledged, each record once
    but for resends that can be recognised; and what agents were told is kept is there."""
    ledger = satellite.await_empty()
    records = upstream.records()
    arrived = set(records.values())
    assert len(arrived) == len(records), "a record was queued twice"
    assert arrived <= sent(agents), "something nobody sent has arrived"
    numbers = {number for _, number in records}
    assert numbers <= set(range(ledger.accepted)), "a record has another number than in the queue"
    lost = acknowledged(agents) - arrived
    assert len(lost) == sum((dropped or {}).values()), f"{len(lost)} acknowledged and lost"
    assert ledger.dropped == (dropped or {})
    assert ledger.delivered == len(arrived)
    assert ledger.accepted == len(arrived) + len(lost)
    on_disk = inspect(satellite.data / "native" / "queue").consumers[0].ledger
    assert on_disk is not None
    assert (on_disk.accepted, on_disk.delivered) == (ledger.accepted, ledger.delivered)
    assert (on_disk.queued, on_disk.dropped) == (0, ledger.dropped)
    return ledger


def resent(upstream: RecordingUpstream) -> int:
    """Records that the upstream had before, in calls it could know by their first sequence."""
    return len(upstream.payloads()) - len(upstream.records())
