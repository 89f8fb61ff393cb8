"""A script of metric expressions: what storage is given, what is asked, and what must come back.

README.md beside this says how one is written. Each script has a day of its own, counted from
`FIRST_DAY`, so that lists of all services show its services alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import yaml

from skyfarer.oap.core.entities import ENTITIES, Entity
from skyfarer.oap.core.slow import Slow

HERE = Path(__file__).parent
FIRST_DAY = date(2026, 3, 1)
TYPES = ("UNKNOWN", "SINGLE_VALUE", "TIME_SERIES_VALUES", "SORTED_LIST", "RECORD_LIST")
_PAIR = re.compile(r"(\w+)=('[^']*'|\S+)")
_STEPS = {4: "MINUTE", 2: "HOUR", 0: "DAY"}


class ScriptError(AssertionError):
    """The script itself is wrong: which line, and what to write instead."""


@dataclass(frozen=True)
class Load:
    """Items of one entity: minute of the day, how many, and their attributes."""

    source: str
    names: tuple[str, ...]
    options: dict[str, Any]
    items: tuple[tuple[int, int, dict[str, Any]], ...]

    @property
    def slow(self) -> bool:
        return self.source not in ENTITIES


@dataclass(frozen=True)
class Ask:
    entity: dict[str, Any]
    duration: dict[str, str]


@dataclass(frozen=True)
class Case:
    """Either `type` and `shown`, or an `error`. `where` names the script and the line."""

    where: str
    expression: str
    ask: Ask
    type: str
    shown: tuple[str, ...]
    error: str | None


@dataclass(frozen=True)
class Script:
    name: str
    day: date
    loads: tuple[Load, ...]
    cases: tuple[Case, ...]


def all_scripts(directory: Path = HERE) -> list[Script]:
    return [
        script(path.name, path.read_text(), FIRST_DAY + timedelta(days=2 * number))
        for number, path in enumerate(sorted(directory.glob("*.txt")))
    ]


def script(name: str, text: str, day: date) -> Script:
    loads, cases, ask = [], [], None
    for where, head, body in _blocks(name, text):
        verb, _, rest = head.partition(" ")
        if verb == "load":
            loads.append(_load(where, rest, body))
        elif verb == "ask":
            ask = _ask(where, rest, day)
        elif verb not in ("eval", "fail"):
            raise ScriptError(f"{where}: write load, ask, eval or fail, not '{verb}'")
        elif ask is None:
            raise ScriptError(f"{where}: nothing was asked about yet; write an 'ask' before")
        else:
            cases.append(_case(where, verb, rest, body, ask))
    return Script(name, day, tuple(loads), tuple(cases))


def _blocks(name: str, text: str) -> Iterator[tuple[str, str, list[str]]]:
    """A line at the margin with the indented ones below it; `#` begins a comment."""
    head, body, where = "", list[str](), ""
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        if line.startswith("  "):
            body.append(line.strip())
            continue
        if head:
            yield where, head, body
        head, body, where = line.strip(), [], f"{name}:{number}"
    if head:
        yield where, head, body


def _load(where: str, rest: str, body: list[str]) -> Load:
    source, _, named = rest.partition(" ")
    if source not in ENTITIES and source not in Slow.__members__:
        raise ScriptError(f"{where}: '{source}' is neither a source nor slow statements")
    options = _pairs(named)
    names = tuple(_PAIR.sub("", named).strip().replace(" -> ", " / ").split(" / "))
    return Load(source, names, options, tuple(_item(where, line) for line in body))


def _item(where: str, line: str) -> tuple[int, int, dict[str, Any]]:
    found = re.match(r"(\d\d)(\d\d)(?: x(\d+))?(?: |$)", line)
    if found is None:
        raise ScriptError(f"{where}: an item begins with its minute, as in 0800 x7: {line}")
    hour, minute, count = found.groups()
    return int(hour) * 60 + int(minute), int(count or 1), _pairs(line[found.end() :])


def _pairs(text: str) -> dict[str, Any]:
    return {key: yaml.safe_load(value) for key, value in _PAIR.findall(text)}


_NAMES = {
    "all": (),
    "service": ("serviceName",),
    "instance": ("serviceName", "serviceInstanceName"),
    "endpoint": ("serviceName", "endpointName"),
    "relation": ("serviceName", "destServiceName"),
}


def _ask(where: str, rest: str, day: date) -> Ask:
    """`service shop 0800 0803`; `virtual` before the kind says that it is only conjectured."""
    normal = not rest.startswith("virtual ")
    kind, *words = rest.removeprefix("virtual ").split(" ")
    if kind not in _NAMES:
        raise ScriptError(f"{where}: ask of one of {', '.join(_NAMES)}, not '{kind}'")
    *named, start, end = words
    names = " ".join(named).replace(" -> ", " / ").split(" / ") if named else []
    entity: dict[str, Any] = dict(zip(_NAMES[kind], names, strict=True))
    if kind != "all":
        entity["normal"] = normal
    if kind == "relation":
        entity["destNormal"] = True
    return Ask(entity, _duration(start, end, day))


def _duration(start: str, end: str, day: date) -> dict[str, str]:
    """Minutes 0800, hours 08, or days, counted from the script's: d0."""
    if start.startswith("d"):
        first, last = (str(day + timedelta(days=int(one[1:]))) for one in (start, end))
        return {"start": first, "end": last, "step": "DAY"}
    return {"start": f"{day} {start}", "end": f"{day} {end}", "step": _STEPS[len(start)]}


def _case(where: str, verb: str, expression: str, body: list[str], ask: Ask) -> Case:
    written = expression.replace("\\n", "\n")
    if verb == "fail":
        return Case(where, written, ask, "UNKNOWN", (), " ".join(body))
    if not body or body[0] not in TYPES:
        raise ScriptError(f"{where}: the line below says what comes, one of {', '.join(TYPES)}")
    return Case(where, written, ask, body[0], tuple(body[1:]), None)


KINDS = {
    Entity.SERVICE: ("service",),
    Entity.INSTANCE: ("service", "instance"),
    Entity.ENDPOINT: ("service", "endpoint"),
    Entity.SERVICE_RELATION: ("from_service", "service"),
}
"""The columns of the names in a `load`."""
