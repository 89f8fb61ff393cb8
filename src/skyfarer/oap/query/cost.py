"""What a document would read, reckoned from its arguments before anything is read, in points.

A point is one value of one entity at one time. What storage is searched for counts as many as it
takes the same time for. The size of the document itself is bounded before (`limits.check_size`);
this is what a small one may ask for: lists of lists over a long time.

Arguments are looked at as they came: what does not fit its type costs nothing, since it is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, TypeAlias

from graphql import (
    DocumentNode,
    FieldNode,
    FragmentDefinitionNode,
    FragmentSpreadNode,
    InlineFragmentNode,
    OperationDefinitionNode,
    SelectionSetNode,
    ValueNode,
    value_from_ast_untyped,
)

from skyfarer.oap.query import limits
from skyfarer.oap.query.durations import POINTS_MAX, Duration, Step
from skyfarer.oap.query.errors import QueryError
from skyfarer.oap.query.expressions.parser import parsed
from skyfarer.oap.query.expressions.problems import Mistake
from skyfarer.oap.query.expressions.reads import Reads, reads_of

Arguments: TypeAlias = Mapping[str, Any]
Cost: TypeAlias = Callable[[Arguments], int]

A_LIST: Final = 100
"""A ranking reads a row of each entity at each time: so many entities a service list may have."""
A_CALL: Final = 10
"""Of a map, a bucket of time."""
A_ROW: Final = 10
"""Of a page of records, and of those before it."""
_MINUTES: Final = {Step.HOUR: 60, Step.DAY: 24 * 60}
_DURATIONS_REMEMBERED_MAX: Final = 256


@dataclass(frozen=True)
class Asked:
    """The root fields of an operation that read, with their arguments as they are written."""

    fields: Sequence[tuple[Cost, Sequence[tuple[str, ValueNode]]]]
    defaults: Mapping[str, Any]

    @classmethod
    def of(cls, document: DocumentNode, operation: str | None) -> Asked:
        """Of a valid document; directives are not looked at, so what is skipped counts too."""
        fragments = {
            node.name.value: node
            for node in document.definitions
            if isinstance(node, FragmentDefinitionNode)
        }
        chosen = [
            node
            for node in document.definitions
            if isinstance(node, OperationDefinitionNode)
            and (operation is None or (node.name and node.name.value == operation))
        ]
        fields = [field for one in chosen for field in _roots(one.selection_set, fragments)]
        defaults = {
            variable.variable.name.value: value_from_ast_untyped(variable.default_value)
            for one in chosen
            for variable in one.variable_definitions or ()
            if variable.default_value is not None
        }
        costs = ((COSTS.get(field.name.value), field.arguments or ()) for field in fields)
        return cls(
            [(cost, [(a.name.value, a.value) for a in given]) for cost, given in costs if cost],
            defaults,
        )

    def points(self, variables: Mapping[str, Any]) -> int:
        told = {**self.defaults, **variables}
        return sum(
            cost({name: value_from_ast_untyped(value, told) for name, value in given})
            for cost, given in self.fields
        )

    def check(self, variables: Mapping[str, Any]) -> None:
        """QueryError when it is more than one document may read."""
        if (points := self.points(variables)) > limits.POINTS_READ_MAX:
            raise QueryError(
                f"the document would read {points} points, more than {limits.POINTS_READ_MAX}: "
                "ask for a shorter time, or for fewer metrics and lists at once"
            )


def _roots(
    selected: SelectionSetNode, fragments: Mapping[str, FragmentDefinitionNode]
) -> Iterator[FieldNode]:
    for node in selected.selections:
        if isinstance(node, FieldNode):
            yield node
        elif isinstance(node, FragmentSpreadNode):
            yield from _roots(fragments[node.name.value].selection_set, fragments)
        elif isinstance(node, InlineFragmentNode):
            yield from _roots(node.selection_set, fragments)


def _points(arguments: Arguments, name: str = "duration") -> int:
    given = arguments.get(name)
    if not isinstance(given, Mapping):
        return 0
    written = [given.get(part) for part in ("start", "end", "step")]
    return _buckets(*written) if all(isinstance(one, str) for one in written) else 0


@lru_cache(_DURATIONS_REMEMBERED_MAX)
def _buckets(start: str, end: str, step: str) -> int:
    """No more than a chart may have: a longer one is refused, and a map of it read by its days."""
    try:
        duration = Duration.of({"start": start, "end": end, "step": step})
    except (QueryError, ValueError):
        return 0
    minutes = (duration.end - duration.start).total_seconds() / 60
    return min(int(minutes / _MINUTES.get(duration.step, 1)) + 1, POINTS_MAX)


def _expression(arguments: Arguments) -> int:
    text = arguments.get("expression")
    try:
        reads = reads_of(parsed(text)) if isinstance(text, str) else Reads()
    except Mistake:
        return 0
    return (reads.series + A_LIST * reads.lists) * _points(arguments)


def _ids(arguments: Arguments) -> int:
    metric = arguments.get("metric")
    ids = metric.get("ids") if isinstance(metric, Mapping) else None
    return (len(ids) if isinstance(ids, list) else 1) * _points(arguments)


def _ranking(arguments: Arguments) -> int:
    return A_LIST * _points(arguments)


def _map(arguments: Arguments) -> int:
    return A_CALL * _points(arguments)


def _page(arguments: Arguments) -> int:
    condition = arguments.get("condition")
    paging = condition.get("paging") if isinstance(condition, Mapping) else None
    if not isinstance(paging, Mapping):
        return 0
    reach = max(_number(paging.get("pageNum")), 1) * _number(paging.get("pageSize"))
    return A_ROW * min(reach, limits.REACH_MAX)  # what lies further is refused for that


def _limit(arguments: Arguments) -> int:
    return A_ROW * min(_number(arguments.get("limit")), limits.ENDPOINTS_MAX)


def _number(given: object) -> int:
    """No greater than any that is allowed: JSON may have one that has no end."""
    return int(min(max(given, 0), limits.POINTS_READ_MAX)) if isinstance(given, int | float) else 0


COSTS: Final[Mapping[str, Cost]] = {
    "execExpression": _expression,
    "getValues": _ids,
    **dict.fromkeys(("readMetricsValue", "readNullableMetricsValue", "readMetricsValues"), _points),
    **dict.fromkeys(("readLabeledMetricsValues", "readHeatMap", "getLinearIntValues"), _points),
    **dict.fromkeys(("getMultipleLinearIntValues", "getThermodynamic"), _points),
    "getSubsetOfMultipleLinearIntValues": _points,
    **dict.fromkeys(("sortMetrics", "getServiceTopN", "getAllServiceInstanceTopN"), _ranking),
    **dict.fromkeys(("getServiceInstanceTopN", "getAllEndpointTopN", "getEndpointTopN"), _ranking),
    **dict.fromkeys(
        (
            *("getGlobalTopology", "getServiceTopology", "getServiceTopologyByName"),
            *("getServicesTopology", "getServicesTopologyByNames", "getEndpointTopology"),
            *("getServiceInstanceTopology", "getServiceInstanceTopologyByName"),
            *("getEndpointDependencies", "getEndpointDependenciesByName"),
        ),
        _map,
    ),
    **dict.fromkeys(("queryBasicTraces", "queryBasicTracesByName", "queryTraces"), _page),
    **dict.fromkeys(("queryLogs", "queryLogsByName", "queryEvents"), _page),
    **dict.fromkeys(("findEndpoint", "findEndpointByName", "searchEndpoint"), _limit),
}
