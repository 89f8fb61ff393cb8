"""What was written, as it was written: nothing here is known to make sense."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from skyfarer.oap.oal.problems import Place


@dataclass(frozen=True)
class Part:
    """One step of a path: `latency`, or `tag["key"]`."""

    name: str
    key: str | None
    place: Place


@dataclass(frozen=True)
class Path:
    """`cast` is "long" or "int". Without parts it is the whole source, `Service.*`."""

    parts: tuple[Part, ...]
    cast: str | None
    place: Place


@dataclass(frozen=True)
class Literal:
    value: str | int | float | bool | None
    place: Place


@dataclass(frozen=True)
class EnumValue:
    """`RequestType.MQ`."""

    type: str
    name: str
    place: Place


@dataclass(frozen=True)
class ListValue:
    items: tuple[Literal | EnumValue, ...]
    place: Place


Value: TypeAlias = Literal | EnumValue | ListValue


@dataclass(frozen=True)
class Comparison:
    left: Path
    operator: str
    right: Value
    place: Place


Argument: TypeAlias = Literal | Path | Comparison


@dataclass(frozen=True)
class Call:
    function: str
    arguments: tuple[Argument, ...]
    place: Place


@dataclass(frozen=True)
class Statement:
    """`name = from(source.path).filter(…)….function(…).decorator("…");`"""

    name: str
    source: Part
    path: Path
    filters: tuple[Comparison, ...]
    call: Call
    decorator: Literal | None
    place: Place


@dataclass(frozen=True)
class Disable:
    """A stream that is not to be made: a metric of any file, or a stream of the program itself. The
    place is that of its name."""

    name: str
    place: Place


@dataclass(frozen=True)
class Script:
    statements: tuple[Statement, ...]
    disables: tuple[Disable, ...]
