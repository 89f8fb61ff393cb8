"""What a stream declares, and the model that follows from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final

from skyfarer.oap.core.expiry import Kept

COLUMNS_TOLD: Final = 2
"""Of a table, to know that it is ours."""


class Processor(Enum):
    """What becomes of a stream's rows on their way to storage."""

    INVENTORY = "inventory"  # distinct, combined with its row, given an id
    METRICS = "metrics"  # combined with what is stored under its key
    RECORD = "record"  # kept whole
    TOP_N = "top_n"  # the slowest of a minute
    MANAGEMENT = "management"  # stored at once, when somebody says so


class Precision(Enum):
    """Of a time bucket: how many digits it has."""

    SECOND = 14
    MINUTE = 12
    HOUR = 10
    DAY = 8

    @property
    def minute_divisor(self) -> int:
        """What a minute bucket is divided by to become one of this precision, if a coarser one."""
        return int(10 ** (Precision.MINUTE.value - self.value))


class ColumnType(Enum):
    BOOLEAN = "boolean"
    INT = "int"  # 32 bits
    LONG = "long"  # 64 bits
    TEXT = "text"
    BINARY = "binary"
    INTS = "ints"  # a list
    TEXTS = "texts"


@dataclass(frozen=True)
class Column:
    """`length` is how many characters of a text are kept, or of each in a list of them; a text
    without one is kept whole. `field` is its name in the program, where that is another one."""

    name: str
    type: ColumnType
    required: bool = True
    length: int | None = None
    field: str = ""

    @property
    def attribute(self) -> str:
        return self.field or self.name


@dataclass(frozen=True)
class Index:
    """What rows are looked for by, beside their key. `name` is the last part of the index's own;
    `only` a column that says something in the rows that are looked for so."""

    name: str
    columns: tuple[str, ...]
    only: str = ""
    unique: bool = False


@dataclass(frozen=True)
class Stream:
    """`name` is that of its table, `scope` SkyWalking's number of what it speaks of. `columns` are
    those beside the `key`; a later one is added behind them, as to the tables that are there, where
    it may be null. `precisions` are those of its time buckets, where they are not what its
    processor has; none for what is no time series. `tag_type` names the tags that its rows, which
    have them in a column `tags`, are found by; empty where there are none."""

    name: str
    scope: int
    processor: Processor
    key: tuple[Column, ...] = ()
    columns: tuple[Column, ...] = ()
    indexes: tuple[Index, ...] = ()
    precisions: tuple[Precision, ...] | None = None
    tag_type: str = ""


@dataclass(frozen=True)
class Model:
    """A table, or one a day for a time series: the columns of its key, and those beside it.

    `kept` says for how long; None for what does not expire, which is all that is no time series.
    """

    name: str
    key: tuple[Column, ...]
    columns: tuple[Column, ...]
    indexes: tuple[Index, ...]
    precisions: tuple[Precision, ...]
    kept: Kept | None

    @property
    def is_time_series(self) -> bool:
        return bool(self.precisions)

    def of_day(self, day: int) -> str:
        """The name of the day's table."""
        return f"{self.name}_{day:08d}"

    @property
    def first(self) -> tuple[str, ...]:
        """The columns that tell its tables from those of somebody else."""
        return tuple(column.name for column in (*self.key, *self.columns)[:COLUMNS_TOLD])

    def column(self, name: str) -> Column:
        """KeyError for one that it does not have."""
        return {column.name: column for column in (*self.key, *self.columns)}[name]

    def without(self, name: str) -> Model:
        """For a provider that keeps that column elsewhere."""
        left = tuple(column for column in self.columns if column.name != name)
        return replace(self, columns=left)

    def beside(self, *own: Column) -> Model:
        """With columns that are a provider's own, behind all others."""
        return replace(self, columns=(*self.columns, *own))


TIME_BUCKET: Final = Column("time_bucket", ColumnType.LONG)
SEQUENCE: Final = Column("sequence", ColumnType.INT)
DOWN_SAMPLED: Final = (Precision.MINUTE, Precision.HOUR, Precision.DAY)

_PRECISIONS: Final[Mapping[Processor, tuple[Precision, ...]]] = {
    Processor.INVENTORY: (),
    Processor.METRICS: DOWN_SAMPLED,
    Processor.RECORD: (Precision.SECOND,),
    Processor.TOP_N: (Precision.SECOND,),
    Processor.MANAGEMENT: (),
}
_KEPT: Final = {
    Processor.METRICS: Kept.METRICS,
    Processor.RECORD: Kept.RECORD,
    Processor.TOP_N: Kept.RECORD,
}
_KEYS: Final = {Processor.INVENTORY: (Column("id", ColumnType.TEXT),)}
_COLUMNS: Final = {
    Processor.INVENTORY: (
        SEQUENCE,
        Column("register_time", ColumnType.LONG),
        Column("heartbeat_time", ColumnType.LONG),
        Column("last_update_time", ColumnType.LONG, field="update_time"),
    ),
}
_INDEXES: Final = {Processor.INVENTORY: (Index("sequence", (SEQUENCE.name,), unique=True),)}


def model(stream: Stream) -> Model:
    """What all streams of its processor have, and what is its own."""
    of = stream.processor
    precisions = _PRECISIONS[of] if stream.precisions is None else stream.precisions
    return Model(
        stream.name,
        key=(*_KEYS.get(of, ()), *stream.key),
        columns=(*_COLUMNS.get(of, ()), *stream.columns),
        indexes=(*_INDEXES.get(of, ()), *stream.indexes),
        precisions=precisions,
        kept=_KEPT[of] if precisions else None,
    )
