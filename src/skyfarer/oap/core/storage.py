"""The storage contract: what the pipeline writes and what the query room reads.

A provider implements `Writer`, `Reader` and `core.inventory.InventoryReader`. All may block on the
database; all may be called from any thread. A read has a bound on its time, and no more than is
left to whoever asked (`core.deadline`). A `Writer.apply` is one transaction: results and the
offsets they came from become durable together or not at all, which is what makes a replayed batch
harmless (ADR 001).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

from skyfarer.base.errors import RetryableError
from skyfarer.base.units import MIB
from skyfarer.oap.core.entities import DetectPoint, Entity
from skyfarer.oap.core.events import EventReader
from skyfarer.oap.core.expiry import Kept
from skyfarer.oap.core.inventory import Inventory
from skyfarer.oap.core.logs import LogReader
from skyfarer.oap.core.slow import SlowReader
from skyfarer.oap.core.traces import TraceReader

if TYPE_CHECKING:
    import pyarrow as pa


COLUMN_NAME: Final = re.compile("[a-zA-Z_][a-zA-Z0-9_]{0,62}")
KEYS_MAX: Final = 65_536
ALIASES_MAX: Final = 1_000_000
RELATIONS_MAX: Final = 100_000
METADATA_ROWS_MAX: Final = 5000
"""Services, or instances of one, that are listed where a storage is not told otherwise."""
PARKED_MAX: Final = 1000
PARKED_BYTES_MAX: Final = 64 * MIB
ROWS_MAX: Final = 1_000_000
"""Of `Reader.rows`: a million rows of three numbers are about 100 MB."""
Value: TypeAlias = int | float | dict[str, int]
"""Of a column of a metric row; a table is a dict."""


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
class Relation:
    """Who called whom. `source_id` and `dest_id` are ids of services, instances or endpoints, as
    the relation is one of; `components` are sorted, and none for a relation of instances."""

    id: str
    source_id: str
    dest_id: str
    detect_point: DetectPoint
    components: tuple[int, ...]


class Merge(Enum):
    """How a column of a metric row takes in another value of its time bucket; null is none. Tables
    do so key by key."""

    SUM = "sum"
    MAX = "max"
    MIN = "min"


@dataclass(frozen=True)
class Deltas:
    """What a batch adds to the rows of one source, by entity and epoch minute.

    `rows`: the columns of `ENTITY_COLUMNS`, `minute`, and those of `merges`: int64, double, or a
    table map<string, int64>, where a null counts as none. An entity may have several rows in a
    minute. Any other column is ignored. A name of `merges` must look like a column
    (`COLUMN_NAME`), and keeps its type for good: a PermanentError says which one does not.

    `bounds`: of tables, how many keys the table of one bucket may have; KEYS_MAX where not told.
    Keys that are stored stay, of new ones those that come first by text are taken.
    """

    rows: pa.Table
    merges: Mapping[str, Merge]
    bounds: Mapping[str, int] = field(default_factory=dict)


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
    is_error, tags, kind, data_binary; one row a stored segment. `kind` (wire.rpc.Kind) says what
    its bytes are, `tags` (a list of `key=value`) what it is found by. `unsampled`: segment_id and
    minute of segments that are not stored, but known, so that a resend counts only once. `metrics`:
    by source (a key of `core.entities.ENTITIES`, or one of its sources without metrics) what it
    adds; from the same rows follow services, instances, endpoints, relations and aliases.
    `slow`: what (the name of a `core.slow.Slow`), service, statement, latency, start_time, minute,
    id, trace_id; of these the slowest of a service and minute are kept. `logs`: sequence, part (of
    an export, else 0), kind, service, instance, endpoint, layer (a number), trace_id,
    log_segment_id, span_id, start_time, minute, tags, payload; times in epoch ms. `events`:
    sequence, uuid, service, instance, endpoint, name, type, message, parameters (map of texts),
    begun, ended, layer (a name), minute; rows of one uuid are one event, of which the later row
    says more. `records`: sequence, kind, minute (of its arrival), payload; what nothing analyses
    yet, kept whole. `minute` is an epoch minute everywhere: the provider turns it into buckets.
    `inventories` are distinct, and have no id: each is combined with what is stored, or given the
    next id of its scope.
    """

    partition: str
    first: int
    end: int
    segments: pa.Table
    metrics: Mapping[str, Deltas]
    unsampled: pa.Table | None = None
    slow: pa.Table | None = None
    logs: pa.Table | None = None
    events: pa.Table | None = None
    records: pa.Table | None = None
    inventories: Sequence[Inventory] = ()
    heartbeats: Sequence[Heartbeat] = ()
    parked: Sequence[Parked] = ()
    dropped: Mapping[str, int] = field(default_factory=dict)


class StoredMeanwhileError(RetryableError):
    """Another node has stored one of the batch's segments since it was asked which are known:
    analysed again, the batch leaves it out, and its metrics too."""


class Writer(Protocol):
    def applied(self, partition: str) -> int:
        """The next sequence wanted of that partition; 0 for one never seen."""

    def known_segments(self, ids: pa.Array, minutes: pa.Array) -> Iterable[str]:
        """Which of the ids came already; `minutes` (epoch) says in which days to look."""

    def apply(self, batch: Analysed) -> None:
        """Store it and move the offset, in one transaction; durable on return.

        `batch.first` must be the applied offset: anything else raises PermanentError and stores
        nothing, because it would lose or repeat records. Rows of a model and day that was dropped,
        or of an older one, raise DroppedDayError, which stores nothing either: late data must not
        bring back a table that has expired. So does StoredMeanwhileError, for a segment that is
        known since: what was counted of it is counted already, so it cannot just be left out here.
        """

    def expired(self) -> Mapping[Kept, int]:
        """The last day of which a table was dropped, by how it was kept; nothing where none was.
        The sink asks before each batch, so it must cost little."""

    def aliases(self) -> pa.Table:
        """As `Reader.aliases`. The sink asks before each batch: it costs nothing while no alias
        has changed."""


class Reader(TraceReader, SlowReader, LogReader, EventReader, Protocol):
    def services(self, layer: str | None, of: Collection[str] | None = None) -> list[Service]:
        """All, or those of a layer; the virtual ones (databases, caches, queues) too. By name, and
        so many at most as the storage is told, METADATA_ROWS_MAX else; instances as well. With
        `of`, every one that there is of these ids."""

    def instances(self, service_id: str, start_bucket: int, end_bucket: int) -> list[Instance]:
        """Alive in the range of minute buckets: last sign ≥ start and first sign ≤ end."""

    def endpoints(
        self, service_id: str, keyword: str, limit: int, between: tuple[int, int] | None = None
    ) -> list[Endpoint]:
        """Newest first. `between` is a range of minute buckets: called last ≥ its start and first
        ≤ its end, as instances are."""

    def series(
        self,
        source: str,
        entity_id: str,
        columns: Sequence[str],
        start_bucket: int,
        end_bucket: int,
    ) -> dict[int, dict[str, Value]]:
        """Bucket → column → value, of the buckets from start to end, both included.

        Both are minutes, hours or days (12, 10 or 8 digits), and so are the buckets found; two of
        different precision raise ValueError. A column is left out of a bucket that has no value of
        it, and a bucket of which nothing is left too: what was never written is no mistake. The
        caller bounds the range.
        """

    def rows(
        self,
        source: str,
        columns: Sequence[str],
        start_bucket: int,
        end_bucket: int,
        service_id: str | None = None,
    ) -> pa.Table:
        """Of all entities of the source, or of one service: entity_id, time_bucket and the columns.

        One row an entity and bucket of the range (as in `series`), in no order: for what compares
        entities, each by the mean of its buckets' values, which no sum over the range can tell. An
        id is a text or one of a dictionary (int32), which may have ids without a row. A value that
        is not there is null; a column that no table of the range has is left out. With `service_id`
        the service itself, its instances or its endpoints; a source of relations with it raises
        ValueError. More than ROWS_MAX rows raise PermanentError: a part of them would give wrong
        means.
        """

    def relations(
        self,
        entity: Entity,
        detect_point: DetectPoint,
        start_bucket: int,
        end_bucket: int,
        of: Collection[str] | None = None,
    ) -> list[Relation]:
        """Those seen at that end in the range (as in `series`), one a relation, by id.

        `of` are ids of services, or of endpoints for relations of endpoints: only relations that
        begin or end at one of them. At most RELATIONS_MAX. Relations of endpoints are seen at the
        server alone; an entity that is no relation has none.
        """

    def aliases(self) -> pa.Table:
        """address, alias_service, alias_instance: which addresses have turned out to be whose.

        One row an address, the newest ALIASES_MAX. The table is shared: nobody changes it.
        """

    def records(self, kind: int, start_bucket: int, end_bucket: int, limit: int) -> list[Record]:
        """Of that kind in a range of minute buckets, both ends included; oldest first."""

    def parked(
        self, partition: str, limit: int = PARKED_MAX, bytes_max: int = PARKED_BYTES_MAX
    ) -> list[Parked]:
        """The first, at least one of them however large; `ParkedRecords` has the rest."""

    def progress(self, partition: str) -> Applied:
        """For the ledger: read in one snapshot, so that its sums are exact."""
