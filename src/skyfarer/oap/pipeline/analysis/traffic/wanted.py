"""What metrics ask of the rows beyond the columns that every row has: few ask for anything."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from skyfarer.oap.core.entities import TRACED
from skyfarer.oap.oal.plan import Field, Plan

ENDS: Final[Mapping[tuple[str, str], str]] = {
    ("Service", "serviceInstanceName"): "dest_instance",
    ("Service", "endpointName"): "dest_endpoint",
    ("ServiceInstance", "endpointName"): "dest_endpoint",
    ("Endpoint", "serviceInstanceName"): "dest_instance",
    ("ServiceRelation", "sourceServiceInstanceName"): "source_instance",
    ("ServiceRelation", "destServiceInstanceName"): "dest_instance",
    ("ServiceRelation", "endpoint"): "dest_endpoint",
    ("ServiceInstanceRelation", "endpoint"): "dest_endpoint",
    ("EndpointRelation", "serviceInstanceName"): "source_instance",
    ("EndpointRelation", "childServiceInstanceName"): "dest_instance",
}
"""What only a row with the columns of `Wanted.ends` can say."""


@dataclass(frozen=True)
class Wanted:
    """`tag_keys` get a column each, in this order; `tags` is the whole list, one column.

    `ends` are the columns `dest_instance`, `dest_endpoint` and `source_instance`: the names of a
    call that are no part of the entity its row speaks of (Service.serviceInstanceName).
    """

    tag_keys: tuple[str, ...] = ()
    tags: bool = False
    ends: bool = False


def wanted_by(plan: Plan) -> Wanted:
    fields = set(_fields(plan))
    return Wanted(
        tag_keys=tuple(sorted({one.key for _, one in fields if one.key is not None})),
        tags=any(one.path == "tags" for _, one in fields),
        ends=any((source, one.path) in ENDS for source, one in fields),
    )


def _fields(plan: Plan) -> Iterator[tuple[str, Field]]:
    """(source, field) of all that the metrics of traces read."""
    for of in plan.sources:
        for accumulator in of.accumulators if of.source in TRACED else ():
            for one in (*accumulator.inputs, *(where.field for where in accumulator.where)):
                yield of.source, one
