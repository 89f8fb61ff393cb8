"""Prometheus text, format 0.0.4: families of series, one line each.

Rendered here because prometheus-client costs 3 MB of resident memory in a 30 MB sidecar.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, TypedDict

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"

Key = tuple[str, ...]


@dataclass
class Family:
    """One metric with all its series; `series` belongs to the family and may grow by `add`."""

    name: str
    kind: str
    help: str
    labels: tuple[str, ...]
    series: dict[Key, float] = field(default_factory=dict)

    def add(self, series: Mapping[Key, float]) -> None:
        for key, value in series.items():
            self.series[key] = self.series.get(key, 0) + value


class Snapshot(TypedDict):
    """One family as JSON can carry it: what it is, and `[label values, value]` per series."""

    name: str
    kind: str
    help: str
    labels: list[str]
    series: list[tuple[list[str], float]]


def to_snapshot(family: Family) -> Snapshot:
    return {
        "name": family.name,
        "kind": family.kind,
        "help": family.help,
        "labels": list(family.labels),
        "series": [(list(key), value) for key, value in family.series.items()],
    }


def from_snapshot(entry: Snapshot) -> Family:
    """ValueError when a series has not as many values as the family has labels."""
    labels = tuple(entry["labels"])
    series = {tuple(key): value for key, value in entry["series"]}
    if any(len(key) != len(labels) for key in series):
        raise ValueError(f"snapshot of {entry['name']} does not match its labels {labels}")
    return Family(entry["name"], entry["kind"], entry["help"], labels, series)


def render(families: Iterable[Family], constant: Mapping[str, str] | None = None) -> str:
    """Families without a series are left out. A label of a metric's own hides a constant one."""
    lines: list[str] = []
    constant = constant or {}
    for family in (family for family in families if family.series):
        lines.append(f"# HELP {family.name} {_escaped(family.help)}")
        lines.append(f"# TYPE {family.name} {family.kind}")
        added = {name: text for name, text in constant.items() if name not in family.labels}
        names, before = (*added, *family.labels), tuple(added.values())
        for key, value in sorted(family.series.items()):
            lines.append(f"{family.name}{_labels(names, (*before, *key))} {_number(value)}")
    return "\n".join(lines) + "\n" if lines else ""


def _labels(names: tuple[str, ...], values: Key) -> str:
    if not names:
        return ""
    pairs = zip(names, values, strict=True)
    return "{" + ",".join(f'{name}="{_quoted(value)}"' for name, value in pairs) + "}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n")


def _quoted(text: str) -> str:
    # A lone surrogate cannot be sent as UTF-8, and one bad label must not cost the scrape.
    safe = text.encode("utf-8", "replace").decode("utf-8")
    return _escaped(safe).replace('"', '\\"')


def _number(value: float) -> str:
    if value != value:
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "+Inf" if value > 0 else "-Inf"
    return str(value) if isinstance(value, int) else repr(value)
