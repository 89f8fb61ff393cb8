"""What an analysis came to, whichever made it: rows, and the columns of every entity and minute."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from skyfarer.oap.core.entities import ENTITIES, Entity
from skyfarer.oap.oal.interpreter import accumulate, merge
from skyfarer.oap.oal.plan import Plan
from skyfarer.oap.oal.values import Columns
from skyfarer.testing.plain_analysis import Row, oal_row

NAMES = {
    Entity.SERVICE: ("service",),
    Entity.INSTANCE: ("service", "instance"),
    Entity.ENDPOINT: ("service", "endpoint"),
    Entity.SERVICE_RELATION: ("from_service", "service"),
    Entity.INSTANCE_RELATION: ("from_service", "from_instance", "service", "instance"),
    Entity.ENDPOINT_RELATION: ("from_service", "from_endpoint", "service", "endpoint"),
}


@dataclass(frozen=True)
class Of:
    """Whose columns: an entity as a script names it, `a / x -> b / y`, in an epoch minute."""

    source: str
    entity: str
    minute: int


@dataclass(frozen=True)
class Seen:
    rows: Sequence[Row]
    columns: Mapping[Of, Columns]


def entity_name(row: Row) -> str:
    names = [row[name] for name in NAMES[ENTITIES[row["source"]]]]
    if ENTITIES[row["source"]] is Entity.SERVICE_RELATION:
        return " -> ".join(names)
    sides = [" / ".join(names[at : at + 2]) for at in range(0, len(names), 2)]
    return " -> ".join(sides)


def counted(rows: Sequence[Row], plan: Plan, apdex: Mapping[str, int]) -> Seen:
    """By the plain interpreter."""
    plans = {source.source: source for source in plan.sources}
    by_entity: dict[Of, list[Row]] = {}
    for row in rows:
        if row["source"] in plans:
            of = Of(row["source"], entity_name(row), row["minute"])
            by_entity.setdefault(of, []).append(row)
    threshold: Callable[[str | None], int] = lambda name: apdex.get(name or "", 500)  # noqa: E731
    columns = {
        of: accumulate(plans[of.source], map(oal_row, its), threshold)
        for of, its in by_entity.items()
    }
    return Seen(rows, columns)


def merged(plan: Plan, source: str, parts: Iterable[Columns]) -> Columns:
    """Of several rows of one entity: its components, or the minutes of an hour."""
    own = next(one for one in plan.sources if one.source == source)
    whole: Columns = {}
    for part in parts:
        whole = merge(own, whole, part)
    return whole
