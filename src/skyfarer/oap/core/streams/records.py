"""Records: rows that are kept as they came, found by what is declared of them.

Segments, logs, events and slow statements are SkyWalking's. `unsampled` has the ids of segments
that are not stored, so that a resend counts once; `record` what nothing analyses yet. Tags to
complete what is typed are a record here, not metrics: they are those of a day's segments and logs,
and go when these do.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from skyfarer.oap.core.events import MESSAGE_CHARS_MAX
from skyfarer.oap.core.slow import STATEMENT_CHARS_MAX, Slow
from skyfarer.oap.core.streams.declaration import (
    TIME_BUCKET,
    Column,
    ColumnType,
    Index,
    Precision,
    Processor,
    Stream,
)
from skyfarer.oap.core.streams.scopes import Scope
from skyfarer.oap.core.traces import TAG_CHARS_MAX

_PLACE: Final = (Column("partition", ColumnType.TEXT), Column("sequence", ColumnType.LONG))
"""In the ingest queue."""
_KIND: Final = Column("kind", ColumnType.INT)
_PAYLOAD: Final = Column("payload", ColumnType.BINARY, required=False)
_TIMESTAMP: Final = Column("timestamp", ColumnType.LONG)
_TAGS: Final = Column("tags", ColumnType.TEXTS, required=False, length=TAG_CHARS_MAX)
_SEGMENT_ID: Final = Column("segment_id", ColumnType.TEXT)
MESSAGE: Final = Column("message", ColumnType.TEXT, length=MESSAGE_CHARS_MAX)
STATEMENT: Final = Column("statement", ColumnType.TEXT, length=STATEMENT_CHARS_MAX)

SEGMENT: Final = Stream(
    "segment",
    Scope.SEGMENT,
    Processor.RECORD,
    key=(_SEGMENT_ID,),
    columns=(
        Column("trace_id", ColumnType.TEXT, required=False),
        Column("service_id", ColumnType.TEXT, required=False),
        Column("service_instance_id", ColumnType.TEXT, required=False),
        Column("endpoint_id", ColumnType.TEXT, required=False),
        TIME_BUCKET,
        Column("start_time", ColumnType.LONG),
        Column("latency", ColumnType.LONG),
        Column("is_error", ColumnType.BOOLEAN, required=False),
        Column("data_binary", ColumnType.BINARY, required=False),
        Column("kind", ColumnType.INT, required=False),
        _TAGS,
    ),
    indexes=(
        Index("trace", ("trace_id",)),
        Index("start", ("start_time",)),
        Index("latency", ("latency",)),
        Index("service", ("service_id", "latency")),
        Index("endpoint", ("endpoint_id", "latency")),
        Index("error", ("start_time",), only="is_error"),
        Index("tags", ("tags",)),
    ),
    tag_type="TRACE",
)
UNSAMPLED: Final = Stream(
    "unsampled", Scope.SEGMENT, Processor.RECORD, key=(_SEGMENT_ID,), precisions=(Precision.DAY,)
)
LOG: Final = Stream(
    "log",
    Scope.LOG,
    Processor.RECORD,
    key=(*_PLACE, Column("part", ColumnType.INT)),
    columns=(
        Column("service_id", ColumnType.TEXT),
        Column("service_instance_id", ColumnType.TEXT),
        Column("endpoint_id", ColumnType.TEXT),
        Column("trace_id", ColumnType.TEXT),
        Column("trace_segment_id", ColumnType.TEXT),
        Column("span_id", ColumnType.INT),
        *(TIME_BUCKET, _TIMESTAMP, _TAGS, _KIND, _PAYLOAD),
    ),
    indexes=(
        Index("time", ("timestamp",)),
        Index("service", ("service_id",)),
        Index("trace", ("trace_id",), only="trace_id"),
        Index("tags", ("tags",)),
    ),
    tag_type="LOG",
)
EVENT: Final = Stream(
    "event",
    Scope.EVENT,
    Processor.RECORD,
    key=(Column("uuid", ColumnType.TEXT),),
    columns=(
        Column("service", ColumnType.TEXT),
        Column("service_instance", ColumnType.TEXT),
        Column("endpoint", ColumnType.TEXT),
        Column("event_name", ColumnType.TEXT),
        Column("type", ColumnType.INT),
        MESSAGE,
        Column("parameters", ColumnType.TEXT),
        Column("start_time", ColumnType.LONG),
        Column("end_time", ColumnType.LONG),
        Column("layer", ColumnType.TEXT),
        *(_TIMESTAMP, TIME_BUCKET),
    ),
    indexes=(Index("time", ("time_bucket",)),),
)
RECORD: Final = Stream(
    "record",
    Scope.ALL,
    Processor.RECORD,
    key=_PLACE,
    columns=(_KIND, TIME_BUCKET, _PAYLOAD),
    precisions=(Precision.MINUTE,),
)
TAG_AUTOCOMPLETE: Final = Stream(
    "tag_autocomplete",
    Scope.TAG_AUTOCOMPLETE,
    Processor.RECORD,
    key=(
        Column("tag_type", ColumnType.TEXT),
        Column("tag_key", ColumnType.TEXT),
        Column("tag_value", ColumnType.TEXT, length=TAG_CHARS_MAX),
    ),
    columns=(TIME_BUCKET,),
    precisions=(Precision.MINUTE,),
)

_SLOW_SCOPES: Final = {
    Slow.DATABASE: Scope.DATABASE_SLOW_STATEMENT,
    Slow.SERVICE_DATABASE: Scope.SERVICE_DATABASE_SLOW_STATEMENT,
    Slow.CACHE_READ: Scope.CACHE_SLOW_ACCESS,
    Slow.CACHE_WRITE: Scope.CACHE_SLOW_ACCESS,
}
SLOW: Final[Mapping[Slow, Stream]] = {
    what: Stream(
        what.value,
        scope,
        Processor.TOP_N,
        key=(Column("id", ColumnType.TEXT),),
        columns=(
            Column("entity_id", ColumnType.TEXT),
            STATEMENT,
            Column("latency", ColumnType.LONG),
            Column("trace_id", ColumnType.TEXT),
            *(_TIMESTAMP, TIME_BUCKET),
        ),
        indexes=(Index("time", ("time_bucket",)), Index("latency", ("latency",))),
    )
    for what, scope in _SLOW_SCOPES.items()
}

RECORDS: Final = (SEGMENT, UNSAMPLED, LOG, EVENT, RECORD, TAG_AUTOCOMPLETE, *SLOW.values())
OPTIONAL: Final = frozenset(one.name for one in (SEGMENT, LOG, EVENT, *SLOW.values()))
"""What `disable` may leave out: nothing is stored of it, and all else is made as ever."""
