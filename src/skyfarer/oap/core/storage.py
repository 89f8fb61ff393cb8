"""The storage contract: what the pipeline writes and what the query room reads.

A provider implements `Writer`, `Reader` and `core.inventory.InventoryReader`. All may block on the
database; all may be called from any thread. A `Writer.apply` is one transaction: results and the
offsets they came from become durable together or not at all, which is what makes a replayed batch
harmless (ADR 001).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Protocol

from skyfarer.oap.core.inventory import Inventory
from skyfarer.oap.core.traces import TraceReader

if TYPE_CHECKING:
    import pyarrow as pa


class Scope(Enum):
    """What a metric row speaks of. The value is the name of its table."""

    SERVICE = "service"
    INSTANCE = "service_instance"
    ENDPOINT = "endpoint"


@dataclass(frozen=True)
class Service:
    id: str
    name: str
    short_name: str
    group: str
    layers: tuple[str, ...]
    normal: bool


@dataclass(frozen=True)
class Instance:
    id: str
    name: str
    service_id: str
    language: str
    attributes: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Endpoint:
    id: str
    name: str
    service_id: str


@dataclass(frozen=True)
class Accumulators:
    """The one wide row of an entity in a time bucket; every metric is derived from it when read."""

    calls: int
    latency_sum: int
    errors: int


class Merge(Enum):
    """How a column of a metric row takes in another value of its time bucket; null is none."""

    SUM = "sum"  # of tables, key by key
    MAX = "max"
    MIN = "min"


@dataclass(frozen=True)
class Deltas:
    """What a batch adds to the rows of one source, by entity and epoch minute.

    `rows`: the columns of `ENTITY_COLUMNS`, `minute`, and those of `merges`: int64, double, or a
    table map<string, int64>. An entity may have several rows in a minute.
    """

    rows: pa.Table
    merges: Mapping[str, Merge]


@dataclass(frozen=True)
class Applied:
    """How far storage has taken a source partition, and what became of its records."""

    next_sequence: int
    delivered: int
    dropped: Mapping[str, int]


@dataclass(frozen=True)
class Parked:
    """A record that could not be analysed, kept whole with the reason."""

    sequence: int
    kind: int
    reason: str
    payload: bytes


@dataclass(frozen=True)
class Record:
    """A record that nothing analyses yet, as it came; `time_bucket` is the minute of arrival."""

    partition: str
    sequence: int
    kind: int
    time_bucket: int
    payload: bytes


@dataclass(frozen=True)
class Heartbeat:
    """A sign of life of an instance; `properties` is None for a plain ping."""

    service: str
    instance: str
    layer: str
    minute: int
    properties: Mapping[str, str] | None


@dataclass(frozen=True)
class Analysed:
    """What one micro-batch says of one source partition, and how far it has read it.

    `segments`: segment_id, trace_id, service, instance, endpoint, minute, start_time, latency,
    is_error, kind, data_binary; one row a stored segment, and `kind` (wire.rpc.Kind) says what its
    bytes are. `metrics`: per scope one Arrow table of deltas: service, instance or endpoint (as the
    scope has them), minute, calls, latency_sum, errors. `records`: sequence, kind, minute (of its
    arrival), payload; what nothing analyses yet, kept whole. `minute` is an epoch minute
    everywhere: the provider turns it into buckets. `inventories` are distinct, and have no id:
    each is combined with what is stored, or given the next id of its scope.
    """

    partition: str
    first: int
    end: int
    segments: pa.Table
    metrics: Mapping[Scope, pa.Table]
    records: pa.Table | None = None
    inventories: Sequence[Inventory] = ()
    heartbeats: Sequence[Heartbeat] = ()
    parked: Sequence[Parked] = ()
    dropped: Mapping[str, int] = field(default_factory=dict)


class Writer(Protocol):
    def applied(self, partition: str) -> int:
        """The next sequence wanted of that partition; 0 for one never seen."""

    def known_segments(self, ids: pa.Array, minutes: pa.Array) -> Iterable[str]:
        """Which of the ids are stored already; `minutes` (epoch) says in which days to look."""

    def apply(self, batch: Analysed) -> None:
        """Store it and move the offset, in one transaction; durable on return.

        `batch.first` must be the applied offset: anything else raises PermanentError and stores
        nothing, because it would lose or repeat records.
        """


class Reader(TraceReader, Protocol):
    def services(self, layer: str | None) -> list[Service]: ...

    def instances(self, service_id: str, start_bucket: int, end_bucket: int) -> list[Instance]:
        """Alive in the range of minute buckets: last sign ≥ start and first sign ≤ end."""

    def endpoints(
        self, service_id: str, keyword: str, limit: int, between: tuple[int, int] | None = None
    ) -> list[Endpoint]:
        """Newest first. `between` is a range of minute buckets: called last ≥ its start and first
        ≤ its end, as instances are."""

    def series(
        self, scope: Scope, entity_id: str, start_bucket: int, end_bucket: int
    ) -> dict[int, Accumulators]:
        """Minute bucket → accumulators, those that exist, both ends included."""

    def records(self, kind: int, start_bucket: int, end_bucket: int, limit: int) -> list[Record]:
        """Of that kind in a range of minute buckets, both ends included; oldest first."""

    def parked(self, partition: str) -> list[Parked]: ...

    def progress(self, partition: str) -> Applied:
        """For the ledger: read in one snapshot, so that its sums are exact."""
