"""Texts → one plan, or every reason why not."""

from __future__ import annotations

from collections.abc import Iterable, Set
from dataclasses import dataclass
from importlib import resources

from skyfarer.base.binding import nearest
from skyfarer.base.errors import ConfigError
from skyfarer.oap.core.streams.records import OPTIONAL
from skyfarer.oap.oal.checker import Checked, check
from skyfarer.oap.oal.functions import FUNCTIONS
from skyfarer.oap.oal.parser import parse
from skyfarer.oap.oal.plan import Accumulator, Metric, Plan, SourcePlan
from skyfarer.oap.oal.problems import OalMistake, Place, Problem
from skyfarer.oap.oal.syntax import Disable

PROBLEMS_SHOWN_MAX = 50


@dataclass(frozen=True)
class Text:
    """`file` is only named in places."""

    file: str
    text: str


@dataclass(frozen=True)
class Compiled:
    """The plan has everything that is right; only without problems is it what was meant. `defined`
    are the names of all metrics, also of those that are disabled."""

    plan: Plan
    problems: tuple[Problem, ...]
    defined: frozenset[str] = frozenset()

    @property
    def metrics(self) -> tuple[Metric, ...]:
        return tuple(metric for source in self.plan.sources for metric in source.metrics)


def shipped() -> tuple[Text, ...]:
    """The files that come with the program, by name."""
    files = (f for f in resources.files(__package__).joinpath("files").iterdir())
    found = (Text(f.name, f.read_text("utf-8")) for f in files if f.name.endswith(".oal"))
    return tuple(sorted(found, key=lambda text: text.file))


def compile_texts(texts: Iterable[Text]) -> Compiled:
    """`disable` concerns the metrics of every text, whichever comes first, and may name a shipped
    one that is not among them."""
    problems: list[Problem] = []
    checked: list[Checked] = []
    disables: list[Disable] = []
    places: dict[str, Place] = {}
    for text in texts:
        script, unread = parse(text.text, text.file)
        problems += unread
        disables += script.disables
        for statement in script.statements:
            try:
                if statement.name in places:
                    earlier = f"'{statement.name}' is defined already, at {places[statement.name]}"
                    raise OalMistake(statement.place, earlier)
                places[statement.name] = statement.place
                checked.append(check(statement))
            except OalMistake as mistake:
                problems.append(mistake.problem)
    problems += _unknown(disables, places.keys() | OPTIONAL)
    plan = _plan(checked, frozenset(disable.name for disable in disables))
    return Compiled(plan, tuple(sorted(problems)), frozenset(places))


def _unknown(disables: Iterable[Disable], known: Set[str]) -> list[Problem]:
    """What is neither a metric of any text nor shipped, nor a stream of records."""
    if not (strange := [disable for disable in disables if disable.name not in known]):
        return []
    scripts = (parse(text.text, text.file)[0] for text in shipped())
    every = known | {statement.name for script in scripts for statement in script.statements}
    return [
        Problem(one.place, f"there is no stream '{one.name}'{_meant(one.name, every)}")
        for one in strange
        if one.name not in every
    ]


def _meant(name: str, every: Set[str]) -> str:
    """All metrics are too many to be listed."""
    near = nearest(name, every)
    if "did you mean" in near:
        return near
    return f"; name a metric or one of: {', '.join(sorted(OPTIONAL))}"


def plan_of(texts: Iterable[Text]) -> Plan:
    """For a start: a text with mistakes is a ConfigError that lists them."""
    compiled = compile_texts(texts)
    if compiled.problems:
        raise ConfigError(listed(compiled.problems))
    return compiled.plan


def listed(problems: tuple[Problem, ...]) -> str:
    """One line each, and how many more there are."""
    lines = [str(problem) for problem in problems[:PROBLEMS_SHOWN_MAX]]
    more = len(problems) - len(lines)
    return "\n".join([*lines, f"and {more} more"] if more else lines)


def _plan(checked: Iterable[Checked], disabled: frozenset[str]) -> Plan:
    by_source: dict[str, list[Checked]] = {}
    for one in checked:
        if one.name not in disabled:
            by_source.setdefault(one.source.name, []).append(one)
    return Plan(tuple(_source_plan(each) for each in by_source.values()), disabled)


def _source_plan(checked: list[Checked]) -> SourcePlan:
    accumulators: dict[Accumulator, None] = {}
    metrics = []
    for one in checked:
        parts = FUNCTIONS[one.function].parts(one.use)
        accumulators.update(dict.fromkeys(accumulator for _, accumulator in parts))
        columns = tuple((part, accumulator.column) for part, accumulator in parts)
        use = one.use
        metrics.append(
            Metric(one.name, one.function, use.numbers, columns, one.decorator, use.labels)
        )
    source = checked[0].source
    return SourcePlan(source.name, source.scope, tuple(accumulators), tuple(metrics))
