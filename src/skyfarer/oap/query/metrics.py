"""Root fields about expressions and the metrics there are, in the protocol's shapes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import tzinfo
from typing import Any

from skyfarer.oap.core.storage import Reader
from skyfarer.oap.query import patterns
from skyfarer.oap.query.durations import Duration
from skyfarer.oap.query.expressions import Expressions
from skyfarer.oap.query.expressions.arithmetic import text
from skyfarer.oap.query.expressions.catalogue import CATALOGS, Catalogue, MetricsType
from skyfarer.oap.query.expressions.results import Owner, Result, Series, Value
from skyfarer.oap.query.rows import Rows
from skyfarer.oap.query.traces.span import View


class Metrics:
    """Any thread; blocks on storage."""

    def __init__(self, reader: Reader, catalogue: Catalogue, zone: tzinfo) -> None:
        self._catalogue = catalogue
        self._expressions = Expressions(reader, catalogue, zone)

    def table(self) -> dict[str, Callable[..., object]]:
        return {
            "execExpression": self.expression,
            "returnTypeOfMQE": self.type_of_expression,
            "typeOfMetrics": self.type_of,
            "listMetrics": self.all,
        }

    def expression(
        self,
        expression: str,
        entity: Mapping[str, Any],
        duration: Mapping[str, str],
        debug: bool | None = None,
        dumpDBRsp: bool | None = None,  # noqa: N803
    ) -> View:
        return _result(self._expressions.evaluate(expression, entity, Duration.of(duration)))

    def type_of_expression(self, expression: str) -> str:
        return self._expressions.type_of(expression).value

    def type_of(self, name: str) -> str:
        found = self._catalogue.find(name)
        return (MetricsType.UNKNOWN if found is None else found.type).value

    def all(self, regex: str | None = None) -> list[View]:
        found = list(self._catalogue)
        names = [one.name for one in found]
        fits = patterns.fits(names, regex) if regex else [True] * len(found)
        return [
            {"name": one.name, "type": one.type.value, "catalog": CATALOGS[one.kind]}
            for one, fit in zip(found, fits, strict=True)
            if fit
        ]


def _result(result: Result) -> View:
    return {
        "type": result.type.value,
        "results": [_series(series) for series in result.series],
        "error": result.error,
    }


def _series(series: Series) -> View:
    labels = [{"key": key, "value": value} for key, value in series.labels]
    return {"metric": {"labels": labels}, "values": _values(series.values) if series.values else []}


def _values(values: Sequence[Value]) -> Rows:
    numbers, identifiers, owners, traces = zip(*values, strict=True)
    return Rows(
        {
            "id": identifiers,
            "value": [None if number is None else text(number) for number in numbers],
            "owner": [None if owner is None else _owner(owner) for owner in owners],
            "traceID": traces,
        }
    )


def _owner(owner: Owner) -> View:
    return {
        "scope": owner.scope,
        "serviceID": owner.service_id,
        "serviceName": owner.service,
        "normal": owner.normal,
        "serviceInstanceID": owner.instance_id,
        "serviceInstanceName": owner.instance,
        "endpointID": owner.endpoint_id,
        "endpointName": owner.endpoint,
    }
