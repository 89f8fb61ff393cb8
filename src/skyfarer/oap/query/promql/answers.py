"""Results in the shapes of Prometheus' API. What is empty is not there at all."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from skyfarer.oap.query.expressions.results import Result, ResultType, Series


def is_scalar(result: Result) -> bool:
    """Made of numbers alone."""
    return result.type is ResultType.SINGLE_VALUE and not result.labelled


def scalar(result: Result, at_s: float) -> dict[str, Any]:
    number = result.series[0].values[0].number
    return {"resultType": "scalar", "result": [at_s, _text(math.nan if number is None else number)]}


def constant(result: Result, points_ms: Sequence[int]) -> dict[str, Any]:
    number = result.series[0].values[0].number or 0.0
    values = [[at_ms / 1000, _text(number)] for at_ms in points_ms]
    return {"resultType": "matrix", "result": [{"metric": {}, "values": values}]}


def vector(result: Result, name: str | None) -> dict[str, Any]:
    found = [
        {"metric": _labels(one, name), "value": pairs[-1]}
        for one in result.series
        if (pairs := _pairs(one))
    ]
    return {"resultType": "vector", "result": found}


def matrix(result: Result, name: str | None) -> dict[str, Any]:
    found = [
        {"metric": _labels(one, name), "values": pairs}
        for one in result.series
        if (pairs := _pairs(one))
    ]
    return {"resultType": "matrix", "result": found}


def label_sets(result: Result, name: str) -> list[dict[str, str]]:
    return [_labels(one, name) for one in result.series if _pairs(one)]


def _labels(series: Series, name: str | None) -> dict[str, str]:
    return ({} if name is None else {"__name__": name}) | dict(series.labels)


def _pairs(series: Series) -> list[list[Any]]:
    return [
        [int(value.id) / 1000, _text(value.number)]
        for value in series.values
        if value.number is not None and value.id is not None
    ]


def _text(number: float) -> str:
    if math.isnan(number):
        return "NaN"
    if math.isinf(number):
        return "+Inf" if number > 0 else "-Inf"
    return str(int(number)) if number.is_integer() else repr(number)
