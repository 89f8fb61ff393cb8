"""Whether what was seen is what a script expects; every difference is one sentence."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from golden import records
from golden.scripts import Script, ScriptError, known
from golden.seen import Of, Seen, merged
from skyfarer.oap.core.entities import ADDRESS_ALIAS, ENDPOINT_META, GEN_AI, SERVICE_META, TRACED
from skyfarer.oap.core.layers import Layer
from skyfarer.oap.oal.plan import Metric, Plan
from skyfarer.oap.oal.values import Value, value_of
from skyfarer.testing.plain_analysis import Row, entity_id

SOURCES = (*TRACED, *GEN_AI, SERVICE_META, ENDPOINT_META, ADDRESS_ALIAS)
PARTS = ("count", "rows", "relations", "ids", "hour", "day", *records.PARTS)
SIDES = ("server", "client")
MINUTE = re.compile(r"minute( \d+)?")
LABEL = re.compile(r"\{(p)=(\d+)\}|\{n=(.*)\}")


def differences(script: Script, seen: Seen, plan: Plan) -> list[str]:
    """Each names the script, the expectation and what was seen."""
    minutes = [part for part in script.expect if MINUTE.fullmatch(str(part))]
    known(script.name, "expect", script.expect, (*PARTS, *minutes, "minute"))
    if not script.expect:
        raise ScriptError(f"{script.name}: expect needs one of minute, {', '.join(PARTS)}")
    known(script.name, "expect.relations", script.expect.get("relations", {}), SIDES)
    known(script.name, "expect.ids", script.expect.get("ids", {}), {**TRACED, **GEN_AI})
    rows = [row for row in seen.rows if script.of_day(row["minute"])]
    found = [
        *_count(script.expect.get("count"), rows),
        *_rows(script, rows),
        *_relations(script.expect.get("relations", {}), rows),
        *_ids(script.expect.get("ids", {}), rows),
    ]
    for part in (*minutes, "hour", "day"):
        found += _metrics(script, part, seen, plan)
    return [f"{script.name}: {one}" for one in found]


def _count(expected: Mapping[str, int] | None, rows: list[Row]) -> Iterator[str]:
    counts = dict(Counter(row["source"] for row in rows))
    if expected is not None and counts != expected:
        yield f"count: expected {expected}, seen {counts}"


def _rows(script: Script, rows: list[Row]) -> Iterator[str]:
    for number, one in enumerate(script.expect.get("rows", [])):
        where, wanted = f"rows[{number}]", dict(one)
        times = wanted.pop("times", 1)
        known(script.name, where, wanted, SOURCES)
        (source, columns), *_ = wanted.items()
        of_source = [row for row in rows if row["source"] == source]
        matching = [row for row in of_source if _matches(script, where, row, columns)]
        if len(matching) != times:
            yield (
                f"{where}: expected {times} of {source} {columns}, seen {len(matching)}; "
                f"rows of {source}: {[_short(row, columns) for row in of_source]}"
            )


def _matches(script: Script, where: str, row: Row, columns: Mapping[str, Any]) -> bool:
    for column in columns:
        if column not in row:
            raise ScriptError(f"{script.name}: {where}: a row has no column '{column}'")
    return _short(row, columns) == dict(columns)


def _short(row: Row, columns: Mapping[str, Any]) -> dict[str, Any]:
    layers = {name: Layer(row[name]).name for name in ("layer", "from_layer")}
    return {name: layers.get(name, row[name]) for name in columns}


def _relations(expected: Mapping[str, list[str]], rows: list[Row]) -> Iterator[str]:
    for side, wanted in expected.items():
        found = {
            f"{row['from_service']} -> {row['service']}"
            for row in rows
            if row["source"] == "ServiceRelation" and row["detect_point"] == side.upper()
        }
        if found != set(wanted):
            yield f"relations.{side}: expected {sorted(wanted)}, seen {sorted(found)}"


def _ids(expected: Mapping[str, list[str]], rows: list[Row]) -> Iterator[str]:
    for source, wanted in expected.items():
        found = {entity_id(row) for row in rows if row["source"] == source}
        if found != set(wanted):
            yield f"ids.{source}: expected {sorted(wanted)}, seen {sorted(found)}"


def _metrics(script: Script, part: str, seen: Seen, plan: Plan) -> Iterator[str]:
    metrics = {m.name: (s.source, m) for s in plan.sources for m in s.metrics}
    for name, by_entity in script.expect.get(part, {}).items():
        known(script.name, part, {name: by_entity}, metrics)
        source, metric = metrics[name]
        for entity, wanted in by_entity.items():
            value = _value(script, part, Of(source, str(entity), 0), metric, seen, plan)
            if _plain(wanted) != _plain(value):
                yield f"{part}: {name} of '{entity}': expected {wanted}, seen {_plain(value)}"


def _value(
    script: Script, part: str, of: Of, metric: Metric, seen: Seen, plan: Plan
) -> Value | None:
    minutes = {"hour": 60, "day": 1440}.get(part, 1)
    first = script.noon_minute if minutes < 1440 else script.day * 1440
    if minutes == 1:
        first += int(part.removeprefix("minute") or 0)
    parts = [
        columns
        for at, columns in seen.columns.items()
        if (at.source, at.entity) == (of.source, of.entity) and first <= at.minute < first + minutes
    ]
    return value_of(metric, merged(plan, of.source, parts), minutes) if parts else None


def _plain(value: Any) -> Any:
    """Labels as a script writes them: p50 for {p=50}, h2 for {n=h2}."""
    if not isinstance(value, Mapping):
        return value
    return {_label(str(key)): number for key, number in value.items()}


def _label(text: str) -> str:
    found = LABEL.fullmatch(text)
    if found is None:
        return text
    return f"p{found[2]}" if found[1] else found[3]
