"""Golden scripts of meters: what agents report of their runtimes, and the metrics of a minute.

README.md beside this says how one is written.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import yaml

from golden.scripts import known
from golden.segments import duration_ms
from skyfarer.oap.oal.compiler import Text
from skyfarer.oap.oal.plan import Plan
from skyfarer.oap.oal.series import SEPARATOR, labels_of
from skyfarer.oap.oal.values import Columns, value_of
from skyfarer.wire.messages import meter

HERE = Path(__file__).parent
KEYS = ("about", "oal", "load", "expect")
NEEDED = ("about", "load", "expect")
LOADED = ("by", "at", "meters", "histograms")

Seen: TypeAlias = Mapping[tuple[str, str, int], Columns]
"""Source, `service` or `service / instance`, and epoch minute → columns."""


@dataclass(frozen=True)
class Script:
    name: str
    noon_ms: int
    messages: Sequence[meter.MeterDataCollection]
    expect: Mapping[str, Mapping[str, Any]]
    oal: Text


def all_scripts(noon_ms: int) -> list[Script]:
    return [script(path.name, path.read_text(), noon_ms) for path in sorted(HERE.glob("*.yaml"))]


def script(name: str, text: str, noon_ms: int) -> Script:
    written = yaml.safe_load(text)
    known(name, "the script", written, KEYS, needed=NEEDED)
    messages = [*_messages(name, written["load"], noon_ms)]
    return Script(
        name, noon_ms, messages, written["expect"], Text(f"{name}.oal", written.get("oal", ""))
    )


def _messages(name: str, load: Any, noon_ms: int) -> Iterator[meter.MeterDataCollection]:
    for number, one in enumerate(load):
        where = f"load[{number}]"
        known(name, where, one, LOADED, needed=("by",))
        service, _, instance = one["by"].partition(" / ")
        time = noon_ms + duration_ms(f"{where}.at", one.get("at", "0ms"))
        told = meter.MeterDataCollection()
        for told_name, value, labels in _values(one.get("meters", {})):
            data = told.meterData.add(service=service, serviceInstance=instance, timestamp=time)
            data.singleValue.name, data.singleValue.value = told_name, value
            for label, text in labels.items():
                data.singleValue.labels.add(name=label, value=str(text))
        for told_name, buckets in one.get("histograms", {}).items():
            data = told.meterData.add(service=service, serviceInstance=instance, timestamp=time)
            data.histogram.name = told_name
            for begins, count in buckets.items():
                data.histogram.values.add(bucket=begins, count=count)
        yield told


def _values(meters: Mapping[str, Any]) -> Iterator[tuple[str, float, Mapping[str, Any]]]:
    for name, told in meters.items():
        for one in told if isinstance(told, list) else [{"value": told}]:
            yield name, one["value"], {key: one[key] for key in one if key != "value"}


def differences(one: Script, seen: Seen, plan: Plan) -> list[str]:
    metrics = {m.name: (s.source, m) for s in plan.sources for m in s.metrics}
    known(one.name, "expect", one.expect, metrics)
    found = []
    for name, by_entity in one.expect.items():
        source, metric = metrics[name]
        for entity, wanted in by_entity.items():
            columns = seen.get((source, entity, one.noon_ms // 60_000), {})
            value = _plain(value_of(metric, columns, 1)) if columns else None
            if value != _as_text(wanted):
                found.append(f"{one.name}: {name} of '{entity}': expected {wanted}, seen {value}")
    return found


def _as_text(wanted: Any) -> Any:
    """Labels that yaml has taken for numbers."""
    if not isinstance(wanted, Mapping):
        return wanted
    return {str(label): number for label, number in wanted.items()}


def _plain(value: Any) -> Any:
    """Labels as a script writes them: `pipe=a, status=all`, `p=50`."""
    if not isinstance(value, Mapping):
        return value
    return {_label(key): number for key, number in value.items()}


def _label(written: str) -> str:
    if written.startswith(SEPARATOR):
        return ", ".join("=".join(pair) for pair in labels_of(written))
    return written.strip("{}")
