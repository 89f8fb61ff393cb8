"""`ttl.plan` and `ttl.run`: what has expired, and to delete it now instead of with the next run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import groupby
from typing import Any

from skyfarer.base.errors import PermanentError
from skyfarer.oap.admin.door import Answers, Verb
from skyfarer.oap.core.expiry import DayTable
from skyfarer.oap.ttl.keeper import Keeper
from skyfarer.oap.ttl.policy import Plan


class TtlDesk:
    """Any thread. Whoever has the keeper opens it; before that it knows nothing."""

    def __init__(self) -> None:
        self._keeper: Keeper | None = None

    def open(self, keeper: Keeper) -> None:
        self._keeper = keeper

    @property
    def verbs(self) -> Mapping[str, Verb]:
        return {"ttl.plan": self.planning, "ttl.run": self.running}

    def planning(self, question: Mapping[str, Any]) -> Answers:
        """A line a model, and the last one with what all have in common."""
        force, keeper = _flag(question, "force"), self._known()
        plan = keeper.planned(force)
        days = {
            "goes": _days(plan.going),
            "waits": _days(plan.waiting),
            "stays": _days(plan.staying),
        }
        for model, kept in sorted(_models(plan).items()):
            told = {where: tables.get(model, []) for where, tables in days.items()}
            yield {"model": {"model": model, "kept": kept, **told}}
        first_days = {kept.value: day for kept, day in plan.first_days.items()}
        days_now = {"today": plan.today, "clocks_day": plan.clocks_day}
        yield {**days_now, "first_days": first_days, "why": keeper.not_my_turn()}

    def running(self, question: Mapping[str, Any]) -> Answers:
        """A line a table, and the last one with how it went."""
        force, keeper = _flag(question, "force"), self._known()
        run = keeper.run(force)
        for table in run.dropped:
            yield {"dropped": _told(table)}
        for table, problem in run.failed:
            yield {"failed": _told(table), "why": problem}
        yield {"outcome": run.outcome, "why": run.why, "left": run.left}

    def _known(self) -> Keeper:
        if self._keeper is None:
            raise PermanentError("this OAP is still starting; ask it again")
        return self._keeper


def _models(plan: Plan) -> dict[str, str]:
    everything = (*plan.going, *plan.waiting, *plan.staying)
    return {table.model: table.kept.value for table in everything}


def _days(tables: Iterable[DayTable]) -> dict[str, list[int]]:
    by_model = groupby(tables, lambda table: table.model)
    return {model: [table.day for table in some] for model, some in by_model}


def _told(table: DayTable) -> dict[str, Any]:
    return {"model": table.model, "day": table.day, "kept": table.kept.value}


def _flag(question: Mapping[str, Any], key: str) -> bool:
    value = question.get(key, False)
    if not isinstance(value, bool):
        raise PermanentError(f'"{key}" must be true or false')
    return value
