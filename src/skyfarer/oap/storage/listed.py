"""Rows of what there is, as the values that the query room shows."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final

from skyfarer.oap.core.storage import Instance, Service

_LANGUAGE: Final = "language"
_UNKNOWN: Final = "UNKNOWN"


def service(service_id: str, name: str, layers: Sequence[str]) -> Service:
    group, separator, short = name.partition("::")
    return Service(
        id=service_id,
        name=name,
        short_name=short if separator else name,
        group=group if separator else "",
        layers=tuple(layers),
        normal=service_id.endswith(".1"),
    )


def instance(service_id: str, part: str, name: str, properties: str | None) -> Instance:
    """`properties` are JSON."""
    attributes: dict[str, str] = json.loads(properties) if properties else {}
    language = attributes.pop(_LANGUAGE, _UNKNOWN).upper()
    return Instance(part, name, service_id, language, tuple(sorted(attributes.items())))
