"""A storage reader that holds everything in memory: the contract, with nothing behind it."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from datetime import tzinfo
from threading import Event

import pyarrow as pa

from skyfarer.oap.core import ids
from skyfarer.oap.core.deadline import left_s
from skyfarer.oap.core.entities import DetectPoint, Entity
from skyfarer.oap.core.events import EventCondition, StoredEvent
from skyfarer.oap.core.logs import LogCondition, StoredLog
from skyfarer.oap.core.slow import Slow, SlowStatement
from skyfarer.oap.core.storage import Applied, Endpoint, Instance, Relation, Service, Value
from skyfarer.oap.core.time_bucket import MINUTE_MS, minute_bucket
from skyfarer.oap.core.traces import SegmentBrief, StoredSegment, TraceCondition, TraceOrder
from skyfarer.oap.oal.plan import Plan
from skyfarer.telemetry.ledger import Ledger

ALWAYS = (0, 9999_12_31_23_59)


class MemoryReader:
    """Any thread, while one of them adds.

    Set `failure` to make every read raise it; clear `gate` to hold every read until it is set.
    """

    def __init__(self) -> None:
        self.failure: Exception | None = None
        self.gate = Event()
        self.gate.set()
        self.books = Ledger(0, 0, 0, {})
        self.forget()

    def forget(self) -> None:
        """All that was added."""
        self._services: list[Service] = []
        self._instances: list[tuple[Instance, int, int]] = []
        self._endpoints: list[tuple[Endpoint, int, int]] = []
        self._rows: dict[tuple[str, str], dict[int, Mapping[str, Value]]] = defaultdict(dict)

    def add_service(
        self, name: str, layers: Sequence[str] = ("GENERAL",), normal: bool = True
    ) -> str:
        group, _, short_name = name.rpartition("::")
        identifier = ids.service_id(name, normal)
        self._services.append(Service(identifier, name, short_name, group, tuple(layers), normal))
        return identifier

    def add_instance(
        self,
        service_id: str,
        name: str,
        language: str,
        seen: tuple[int, int],
        attributes: Sequence[tuple[str, str]] = (),
    ) -> str:
        """`seen` is its first and its last minute bucket."""
        identifier = ids.instance_id(service_id, name)
        instance = Instance(identifier, name, service_id, language, tuple(attributes))
        self._instances.append((instance, *seen))
        return identifier

    def add_endpoint(self, service_id: str, name: str, seen: tuple[int, int] = ALWAYS) -> str:
        """`seen` is its first and its last minute bucket."""
        identifier = ids.endpoint_id(service_id, name)
        self._endpoints.append((Endpoint(identifier, name, service_id), *seen))
        return identifier

    def put(self, source: str, entity_id: str, bucket: int, row: Mapping[str, Value]) -> None:
        """`row` has values by column; a minute's makes no hour."""
        self._rows[source, entity_id][bucket] = row

    def services(self, layer: str | None, of: Collection[str] | None = None) -> list[Service]:
        self._admit()
        known = [s for s in list(self._services) if of is None or s.id in of]
        return [s for s in known if layer is None or layer in s.layers]

    def instances(self, service_id: str, start_bucket: int, end_bucket: int) -> list[Instance]:
        self._admit()
        return [
            instance
            for instance, first, last in list(self._instances)
            if instance.service_id == service_id and last >= start_bucket and first <= end_bucket
        ]

    def endpoints(
        self, service_id: str, keyword: str, limit: int, between: tuple[int, int] | None = None
    ) -> list[Endpoint]:
        self._admit()
        start_bucket, end_bucket = between or ALWAYS
        matching = [
            endpoint
            for endpoint, first, last in list(self._endpoints)
            if endpoint.service_id == service_id and keyword in endpoint.name
            if last >= start_bucket and first <= end_bucket
        ]
        return matching[:limit]

    def series(
        self,
        source: str,
        entity_id: str,
        columns: Sequence[str],
        start_bucket: int,
        end_bucket: int,
    ) -> dict[int, dict[str, Value]]:
        self._admit()
        if len(str(start_bucket)) != len(str(end_bucket)):
            raise ValueError(f"{start_bucket} and {end_bucket} are of different precision")
        rows = list(self._rows.get((source, entity_id), {}).items())
        wanted = (
            (bucket, {name: row[name] for name in columns if name in row})
            for bucket, row in rows
            if start_bucket <= bucket <= end_bucket
        )
        return {bucket: row for bucket, row in wanted if row}

    def rows(
        self,
        source: str,
        columns: Sequence[str],
        start_bucket: int,
        end_bucket: int,
        service_id: str | None = None,
    ) -> pa.Table:
        self._admit()
        found = [
            {"entity_id": entity_id, "time_bucket": bucket, **{n: row.get(n) for n in columns}}
            for (of, entity_id), rows in list(self._rows.items())
            if of == source and (service_id is None or f"{entity_id}_".startswith(f"{service_id}_"))
            for bucket, row in list(rows.items())
            if start_bucket <= bucket <= end_bucket
        ]
        keys = {"entity_id": pa.string(), "time_bucket": pa.int64()}
        if not found:
            return pa.schema(keys).empty_table()
        table = pa.Table.from_pylist(found)
        return table.select([one.name for one in table.schema if one.type != pa.null()])

    def relations(
        self,
        entity: Entity,
        detect_point: DetectPoint,
        start_bucket: int,
        end_bucket: int,
        of: Collection[str] | None = None,
    ) -> list[Relation]:
        """It holds no calls."""
        self._admit()
        return []

    def trace(self, trace_id: str, segments_max: int, bytes_max: int) -> list[StoredSegment]:
        """It holds no segments."""
        self._admit()
        return []

    def traces(
        self, condition: TraceCondition, order: TraceOrder, offset: int, limit: int
    ) -> list[SegmentBrief]:
        self._admit()
        return []

    def tag_keys(self, between: tuple[int, int], limit: int) -> list[str]:
        self._admit()
        return []

    def tag_values(self, key: str, between: tuple[int, int], limit: int) -> list[str]:
        self._admit()
        return []

    def slowest(
        self, what: Slow, entity_id: str | None, between: tuple[int, int], limit: int
    ) -> list[SlowStatement]:
        self._admit()
        return []

    def logs(
        self, condition: LogCondition, newest_first: bool, offset: int, limit: int, bytes_max: int
    ) -> list[StoredLog]:
        """It holds no logs, and no events."""
        self._admit()
        return []

    def log_tag_keys(self, between: tuple[int, int], limit: int) -> list[str]:
        self._admit()
        return []

    def log_tag_values(self, key: str, between: tuple[int, int], limit: int) -> list[str]:
        self._admit()
        return []

    def events(
        self, condition: EventCondition, newest_first: bool, offset: int, limit: int
    ) -> list[StoredEvent]:
        self._admit()
        return []

    def progress(self, partition: str) -> Applied:
        self._admit()
        return Applied(0, self.books.delivered, self.books.dropped)

    def ledger(self) -> Ledger:
        self._admit()
        return self.books

    def _admit(self) -> None:
        left_s()
        self.gate.wait()
        if self.failure is not None:
            raise self.failure


# Name, calls per minute, latency in ms, share of calls that fail. Latency comes in waves: 1340 is
# over a second at the bottom of one, so that the slow service is slow in any minute.
SHOP = (
    ("gateway", 840, 46, 0.0),
    ("checkout", 210, 184, 0.002),
    ("catalog", 520, 31, 0.0),
    ("payment", 96, 1340, 0.0),
    ("inventory", 310, 22, 0.0),
    ("mailer", 24, 310, 0.081),
)


def row_of(plan: Plan, **metrics: Mapping[str, Value]) -> dict[str, Value]:
    """A row by the names of metrics and of their parts: service_sla={"total": 7, "match": 6}."""
    columns = {
        metric.name: dict(metric.columns) for source in plan.sources for metric in source.metrics
    }
    return {
        columns[name][part]: value
        for name, parts in metrics.items()
        for part, value in parts.items()
    }


def fill_with_shop(
    reader: MemoryReader, plan: Plan, now_ms: int, zone: tzinfo, minutes: int = 45
) -> None:
    """A small shop with waves of traffic, one slow and one failing service, up to `now_ms`.

    May be called again and again: services are added once, rows are replaced by the same values,
    and the minute in progress has the calls that its seconds so far would have brought.
    """
    known = {service.name for service in reader.services(None)}
    calls_in_all = 0
    for name, calls, latency_ms, failing in SHOP:
        identifier = ids.service_id(name) if name in known else reader.add_service(name)
        for age in range(minutes):
            at_ms = now_ms - age * MINUTE_MS
            elapsed = 1.0 if age else now_ms % MINUTE_MS / MINUTE_MS
            done, latency_sum = _traffic(calls, latency_ms, at_ms // MINUTE_MS, elapsed)
            succeeded = done - round(done * failing)
            if done:
                row = row_of(
                    plan,
                    service_resp_time={"summation": latency_sum, "count": done},
                    service_sla={"total": done, "match": succeeded},
                )
                reader.put("Service", identifier, minute_bucket(at_ms, zone), row)
            calls_in_all += done
    reader.books = Ledger(calls_in_all + 12, calls_in_all, 12, {})


def _traffic(calls: int, latency_ms: int, minute: int, elapsed: float) -> tuple[int, int]:
    wave = 1 + 0.22 * math.sin(minute / 4 + calls) + 0.08 * math.sin(minute * 1.7 + latency_ms)
    busy = 1 + 0.18 * math.sin(minute / 3 + latency_ms) + 0.05 * math.sin(minute * 2.3 + calls)
    done = int(calls * wave * elapsed)
    return done, int(done * latency_ms * busy)
