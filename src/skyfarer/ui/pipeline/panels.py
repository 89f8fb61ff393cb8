"""What stands around the pipeline: rows, refusals, satellites, nodes, expiry, processes."""

from __future__ import annotations

from skyfarer.ui.boxes import box
from skyfarer.ui.model import count_text
from skyfarer.ui.pipeline.model import (
    Counts,
    Look,
    Satellite,
    Ttl,
    by_count,
    bytes_text,
    seconds_text,
)
from skyfarer.ui.tables import SmallTable

Row = tuple[str, ...]
NO_SATELLITE = (
    "none reports of itself: SATELLITE_TELEMETRY_EXPORT_TYPE=prometheus,metrics_service makes one"
)
_KEPT = {"record": "traces, logs and records", "metrics": "metrics and names"}


class Panels:
    def __init__(self) -> None:
        with box("small-tables"):
            self._satellites = SmallTable(
                "Satellites",
                "satellites",
                ["received / min", "sent / min", "connections"],
                NO_SATELLITE,
            )
            self._records = SmallTable("Records analysed", "outcomes", ["records"], "none yet")
            self._rows = SmallTable("Rows stored", "stored-rows", ["rows"], "none yet")
            self._refused = SmallTable("Refused", "refused", ["messages"], "none")
            self._processes = SmallTable("Processes", "processes", ["memory"], "none told")

    def show(self, look: Look) -> None:
        self._satellites.show(_satellites(look))
        self._records.show(_counted(look.analysis.records))
        self._rows.show(_counted(look.analysis.rows))
        self._refused.show(_counted(look.refused))
        memory = sorted(look.memory_bytes.items())
        self._processes.show([(name, bytes_text(size)) for name, size in memory])


def _counted(counts: Counts) -> list[Row]:
    return [(name, count_text(number)) for name, number in by_count(counts)]


def _satellites(look: Look) -> list[Row]:
    rows = [_satellite(one) for one in look.satellites]
    if look.satellite_queues:
        rows.append((f"queues of satellites seen: {look.satellite_queues}", "", "", ""))
    return rows


def _satellite(one: Satellite) -> Row:
    name = f"{one.service} · {', '.join(one.instances)}" if one.instances else one.service
    return (name, count_text(one.received), count_text(one.sent), count_text(one.connections))


def nodes(look: Look) -> list[Row]:
    """The first in the order of all keeps the expiry."""
    return [
        (node.name, " · ".join(_roles(at == 0, node.is_self))) for at, node in enumerate(look.nodes)
    ]


def _roles(first: bool, own: bool) -> list[str]:
    return [*(["this node"] if own else []), *(["deletes what expired"] if first else [])]


def expiry(ttl: Ttl) -> list[Row]:
    days = {"record": ttl.record_days, "metrics": ttl.metrics_days}
    rows: list[Row] = [
        (f"{_KEPT[kept]} are kept", f"{count_text(days[kept])} days") for kept in _KEPT
    ]
    rows += [
        (f"oldest of {_KEPT.get(kept, kept)}", seconds_text(age))
        for kept, age in sorted(ttl.oldest_s.items())
    ]
    seen_s = ttl.last_success_s
    rows.append(("last seen clean", "not yet" if seen_s is None else f"{seconds_text(seen_s)} ago"))
    rows.append(("expired tables still there", count_text(ttl.expired_tables)))
    if ttl.failures:
        rows.append(("tables that could not be dropped", count_text(ttl.failures)))
    return rows
