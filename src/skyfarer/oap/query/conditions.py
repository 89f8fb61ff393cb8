"""What conditions have in common: pages, tags, and entities by their names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from skyfarer.oap.core import ids
from skyfarer.oap.core.layers import layer_named
from skyfarer.oap.core.traces import TAG_SEPARATOR
from skyfarer.oap.query import limits
from skyfarer.oap.query.errors import QueryError


def page(
    paging: Mapping[str, int | None], of: str, size_max: int = limits.PAGE_MAX
) -> tuple[int, int]:
    """Offset and limit; QueryError where a page lies further than anyone pages."""
    number, size = max(paging.get("pageNum") or 1, 1), max(paging["pageSize"] or 0, 0)
    if size > size_max:
        raise QueryError(f"a page of {size} {of} is larger than {size_max}")
    if number * size > limits.REACH_MAX:
        raise QueryError(
            f"page {number} of {size} lies beyond the first {limits.REACH_MAX} {of}; "
            "ask for a shorter duration or a narrower condition"
        )
    return (number - 1) * size, size


def tags(asked: Sequence[Mapping[str, str | None]]) -> Iterator[str]:
    """As storage has them."""
    if len(asked) > limits.TAGS_ASKED_MAX:
        raise QueryError(f"{len(asked)} tags are more than the {limits.TAGS_ASKED_MAX} allowed")
    for tag in asked:
        if tag.get("value") is None:
            raise QueryError(f"the tag {tag['key']!r} needs a value to be searched for")
        yield f"{tag['key']}{TAG_SEPARATOR}{tag['value']}"


def ids_of(condition: Mapping[str, Any]) -> dict[str, str]:
    """The ids that a condition by names stands for, as one by ids has them."""
    makers = {
        "serviceId": ("service", service_id),
        "serviceInstanceId": ("instance", instance_id),
        "endpointId": ("endpoint", endpoint_id),
    }
    return {
        field: made(condition[key]) for field, (key, made) in makers.items() if condition.get(key)
    }


def service_id(named: Mapping[str, str | None]) -> str:
    """A conjectured service is told by its layer; one without a layer is a real one."""
    layer = named.get("layer")
    return ids.service_id(str(named["serviceName"]), layer_named(layer).normal if layer else True)


def instance_id(named: Mapping[str, str | None]) -> str:
    return ids.instance_id(service_id(named), str(named["instanceName"]))


def endpoint_id(named: Mapping[str, str | None]) -> str:
    return ids.endpoint_id(service_id(named), str(named["endpointName"]))
