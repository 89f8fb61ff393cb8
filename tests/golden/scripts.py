"""A golden script: segments in short form, what they must come to, and where a mistake stands.

README.md beside this says how one is written. Each script has a day of its own, counted from
`FIRST_DAY`, so any number of them can be analysed at once and told apart by their minutes.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from golden import kept
from golden.segments import NOON_MS, segments
from skyfarer.oap.oal.compiler import Text
from skyfarer.testing.plain_analysis.keeping import Keeping
from skyfarer.testing.plain_analysis.rules import Alias
from skyfarer.wire.messages import SegmentObject

HERE = Path(__file__).parent
FIRST_DAY = 20_454
"""Days since 1970; it is the first of January 2026."""
DAY_MINUTES = 24 * 60

KEYS = ("about", "settings", "oal", "protocol", "load", "expect")
PROTOCOLS = ("v3", "v2")
SETTINGS = (
    *("gateways", "aliases", "apdex", "traceAnalysis", "providers", "prices"),
    *kept.SETTINGS,
)


class ScriptError(AssertionError):
    """The script itself is wrong: which, where in it, and what to write instead."""


@dataclass(frozen=True)
class Script:
    """`gateways`, `aliases`, `apdex`, `providers` and `prices` are given to every script of a run,
    as an operator's are given to all traffic: addresses and names in them belong to one script
    alone. `keeping` is its own, if it expects records."""

    name: str
    about: str
    day: int
    segments: tuple[SegmentObject, ...]
    expect: Mapping[str, Any]
    oal: Text | None
    gateways: frozenset[str]
    aliases: Mapping[str, Alias]
    apdex: Mapping[str, int]
    providers: Mapping[str, str]
    prices: Mapping[str, tuple[float, float]]
    trace_analysis: bool
    keeping: Keeping
    v2: bool

    @property
    def noon_minute(self) -> int:
        return self.day * DAY_MINUTES + DAY_MINUTES // 2

    def of_day(self, minute: int) -> bool:
        return minute // DAY_MINUTES == self.day


def all_scripts(directory: Path = HERE) -> list[Script]:
    return [
        script(path.name, path.read_text(), FIRST_DAY + number)
        for number, path in enumerate(sorted(directory.glob("*.yaml")))
    ]


def script(name: str, text: str, day: int) -> Script:
    try:
        written = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ScriptError(f"{name}: no YAML: {error}") from error
    known(name, "the script", written, KEYS, needed=("about", "load", "expect"))
    settings = written.get("settings") or {}
    known(name, "settings", settings, SETTINGS)
    protocol = written.get("protocol", PROTOCOLS[0])
    known(name, "protocol", {protocol: None}, PROTOCOLS)
    try:
        v2 = protocol == "v2"
        loaded = tuple(segments(written["load"], day * DAY_MINUTES * 60_000 + NOON_MS, v2))
        keeping = kept.keeping(settings)
    except ValueError as error:
        raise ScriptError(f"{name}: {error}") from error
    oal = written.get("oal")
    return Script(
        name=name,
        about=written["about"],
        day=day,
        segments=loaded,
        expect=written["expect"],
        oal=Text(name, oal) if oal else None,
        gateways=frozenset(settings.get("gateways", ())),
        aliases={a: _alias(text) for a, text in settings.get("aliases", {}).items()},
        apdex=settings.get("apdex", {}),
        providers=settings.get("providers", {}),
        prices={model: tuple(both) for model, both in settings.get("prices", {}).items()},
        trace_analysis=settings.get("traceAnalysis", True),
        keeping=keeping,
        v2=v2,
    )


def known(
    name: str, where: str, written: object, keys: Iterable[str], needed: Sequence[str] = ()
) -> None:
    """ScriptError unless it is a mapping of those keys, the needed ones among them."""
    if not isinstance(written, dict):
        raise ScriptError(f"{name}: {where} must be a mapping, not {written!r}")
    keys = tuple(keys)
    for key in written:
        if key not in keys:
            near = difflib.get_close_matches(str(key), keys, 1)
            hint = f"did you mean '{near[0]}'?" if near else f"it has {', '.join(keys)}"
            raise ScriptError(f"{name}: {where} has no '{key}'; {hint}")
    for key in needed:
        if key not in written:
            raise ScriptError(f"{name}: {where} needs '{key}'")


def _alias(text: str) -> Alias:
    service, _, instance = text.partition(" / ")
    return service, instance
