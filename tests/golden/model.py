"""What must be in the tables after a queue of segments: a plain model of all that stores.

Written from the design: a segment counts once, whenever it is repeated; what ends further ahead
than clocks differ is parked, what began before the days that are kept is given up, and everything
between goes to the bucket of its own time. An address stands for whoever claimed it newest, from
the next batch on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, TypeAlias

from golden.queued import Window
from skyfarer.oap.core.entities import ADDRESS_ALIAS, ENDPOINT_META, SERVICE_META
from skyfarer.oap.core.layers import Layer
from skyfarer.oap.oal.interpreter import accumulate, merge
from skyfarer.oap.oal.plan import Plan
from skyfarer.oap.oal.values import Columns
from skyfarer.testing.plain_analysis import Row, Rules, entity_id, oal_row, plain_rows, spans
from skyfarer.testing.plain_analysis.keeping import Keeping
from skyfarer.testing.plain_analysis.records import Records, plain_records
from skyfarer.testing.plain_analysis.rows import encoded
from skyfarer.wire.messages import SegmentObject

Facts: TypeAlias = dict[tuple[Any, ...], Any]
"""Where something stands, the name of its table first → what stands there."""

RELATIONS = {
    "ServiceRelation": "service_relation",
    "ServiceInstanceRelation": "service_instance_relation",
    "EndpointRelation": "endpoint_relation",
}


def buckets(minute: int) -> tuple[int, int, int]:
    """Of an epoch minute, its hour and its day, in UTC."""
    number = int(datetime.fromtimestamp(minute * 60, UTC).strftime("%Y%m%d%H%M"))
    return number, number // 100, number // 10_000


@dataclass
class Model:
    rules: Rules
    keeping: Keeping
    plan: Plan
    window: Window
    outcomes: Counter[str] = field(default_factory=Counter)
    parked: list[tuple[int, str, bytes]] = field(default_factory=list)
    facts: Facts = field(default_factory=dict)
    _metrics: dict[tuple[str, str, int], Columns] = field(default_factory=dict)
    _aliases: dict[str, tuple[int, str, str]] = field(default_factory=dict)
    _taken: dict[str, SegmentObject] = field(default_factory=dict)

    @property
    def records(self) -> Records:
        return plain_records(self._taken.values(), self.rules, self.keeping)

    def apply(self, batch: Sequence[SegmentObject]) -> None:
        known = {address: (of, at) for address, (_, of, at) in self._aliases.items()}
        new = [one for one in batch if self._is_new(one)]
        rows = plain_rows(new, replace(self.rules, aliases=known))
        self._measure(rows)
        self._relate(rows)
        self._meet(rows)
        self._claim([row for row in rows if row["source"] == ADDRESS_ALIAS])

    def _is_new(self, one: SegmentObject) -> bool:
        times = [time for span in one.spans for time in (span.startTime, span.endTime)]
        sequence, name = self.outcomes.total(), one.traceSegmentId
        if max(times) > self.window.newest_ms:
            outcome = "future"
            self.parked.append((sequence, outcome, bytes(one.SerializeToString())))
        elif min(span.startTime for span in one.spans) < self.window.oldest_ms:
            outcome = "expired"
        else:
            outcome = "duplicate" if name in self._taken else "delivered"
        self.outcomes[outcome] += 1
        if outcome == "delivered":
            self._taken[name] = one
        return outcome == "delivered"

    def _measure(self, rows: Iterable[Row]) -> None:
        plans = {source.source: source for source in self.plan.sources}
        by_entity: dict[tuple[str, str, int], list[Row]] = {}
        for row in rows:
            if row["source"] in plans:
                of = row["source"], entity_id(row), row["minute"]
                by_entity.setdefault(of, []).append(row)
        for (source, identifier, minute), its in by_entity.items():
            added = accumulate(plans[source], map(oal_row, its))
            for bucket in buckets(minute):
                key = source, identifier, bucket
                whole = merge(plans[source], self._metrics.get(key, {}), added)
                self._metrics[key] = whole
                self.facts |= {("metrics", *key, name): value for name, value in whole.items()}

    def _relate(self, rows: Iterable[Row]) -> None:
        """Components of services add up. Of endpoints that one stays which was told first, and of
        a batch the least."""
        told: dict[tuple[str, str, int], set[int]] = {}
        for row in rows:
            if row["source"] in RELATIONS:
                table = f"{RELATIONS[row['source']]}_{row['detect_point'].lower()}_side"
                for bucket in buckets(row["minute"]):
                    key = table, entity_id(row), bucket
                    told.setdefault(key, set()).add(row["component"])
        for key, components in told.items():
            if key[0].startswith("service_relation"):
                self.facts[key] = sorted({*self.facts.get(key, ()), *components})
            elif key[0].startswith("endpoint"):
                self.facts.setdefault(key, min(components))
            else:
                self.facts[key] = None

    def _meet(self, rows: Iterable[Row]) -> None:
        for row in rows:
            source, bucket = row["source"], buckets(row["minute"])[0]
            if source in ("Service", "GenAIProviderAccess", SERVICE_META):
                layer = Layer(row["layer"])
                key = "service_traffic", f"{encoded(row['service'])}.{int(layer)}"
                _, _, first, _ = self.facts.get(key, (None, None, bucket, 0))
                self.facts[key] = shown(row["service"]), layer.name, min(first, bucket), 0
            elif source in ("ServiceInstance", "GenAIModelAccess") and row["instance"]:
                self._sign("instance_traffic", entity_id(row), row["instance"], bucket, bucket)
            elif source == "Endpoint" and row["endpoint"]:
                self._sign("endpoint_traffic", entity_id(row), row["endpoint"], bucket, bucket)
            elif source == ENDPOINT_META and row["endpoint"]:
                identifier = entity_id({**row, "source": "Endpoint"})
                self._sign("endpoint_traffic", identifier, row["endpoint"], bucket, 0)

    def _sign(self, table: str, identifier: str, name: str, first: int, last: int) -> None:
        known = self.facts.get((table, identifier), (None, None, first, last))
        first, last = min(first, known[2]), max(last, known[3])
        self.facts[table, identifier] = shown(name), None, first, last

    def _claim(self, rows: Iterable[Row]) -> None:
        """In one minute the greater name has it."""
        newest: dict[str, tuple[int, str, str]] = {}
        first: dict[str, int] = {}
        for row in rows:
            address, minute = row["endpoint"], row["minute"]
            if address:
                claim = minute, row["service"], row["instance"]
                newest[address] = max(newest.get(address, claim), claim)
                first[address] = min(first.get(address, minute), minute)
        for address, claim in newest.items():
            known = self._aliases.get(address, claim)
            self._aliases[address] = claim if claim[0] >= known[0] else known
            minute, service, instance = self._aliases[address]
            key, bucket = ("network_address_alias", address), buckets(first[address])[0]
            before, *_ = self.facts.get(key, (bucket,))
            self.facts[key] = min(before, bucket), buckets(minute)[0], service, instance


def shown(name: str) -> str:
    """Names without a letter share one id, and any of them may stand there."""
    return "" if spans.blank(name) else name
