"""Ids of entities over the columns of delta rows (`core.entities`), as `core.ids` makes them.

Names are encoded once each, however many rows have them: a batch has many rows and few names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from skyfarer.oap.core.entities import Entity
from skyfarer.oap.core.ids import encoded
from skyfarer.oap.core.layers import Layer

_CONJECTURED: Final = pa.array([layer for layer in Layer if not layer.normal], pa.int32())
_FLAGS: Final = pa.scalar("1"), pa.scalar("0")
_DOT, _PART, _RELATION = pa.scalar("."), pa.scalar("_"), pa.scalar("-")
FROM: Final = "from_"
NAMES_KEPT_MAX: Final = 65_536
_encoded: Final = lru_cache(NAMES_KEPT_MAX)(encoded)


def names(rows: pa.Table, column: str) -> pa.Array:
    """As they stand in an id."""
    told = rows[column].combine_chunks().dictionary_encode()
    parts = pa.array([_encoded(name) for name in told.dictionary.to_pylist()], pa.string())
    return parts.take(told.indices)


def services(rows: pa.Table, of: str = "") -> pa.Array:
    """Whether a service is a real one follows from its layer."""
    layers = rows[f"{of}layer"].combine_chunks()
    real, conjectured = _FLAGS
    flags = pc.if_else(pc.is_in(layers, _CONJECTURED), conjectured, real)
    return pc.binary_join_element_wise(names(rows, f"{of}service"), flags, _DOT)


def instances(rows: pa.Table, of: str = "") -> pa.Array:
    return pc.binary_join_element_wise(services(rows, of), names(rows, f"{of}instance"), _PART)


def endpoints(rows: pa.Table, of: str = "") -> pa.Array:
    return pc.binary_join_element_wise(services(rows, of), names(rows, f"{of}endpoint"), _PART)


def identified(rows: pa.Table) -> pa.Table:
    """Logs with the ids of whom they are of; those of what they do not name are empty."""
    rows = rows.append_column("service_id", services(rows))
    rows = rows.append_column("instance_id", _where_told(rows, "instance", instances(rows)))
    return rows.append_column("endpoint_id", _where_told(rows, "endpoint", endpoints(rows)))


def _where_told(rows: pa.Table, column: str, ids: pa.Array) -> pa.ChunkedArray:
    return pc.if_else(pc.equal(rows[column], ""), "", ids)


def _relation(of: Callable[[pa.Table, str], pa.Array]) -> Callable[[pa.Table], pa.Array]:
    return lambda rows: pc.binary_join_element_wise(of(rows, FROM), of(rows, ""), _RELATION)


def _endpoint_relation(rows: pa.Table) -> pa.Array:
    ends = [(services(rows, of), names(rows, f"{of}endpoint")) for of in (FROM, "")]
    return pc.binary_join_element_wise(*ends[0], *ends[1], _RELATION)


ENTITY_IDS: Final[Mapping[Entity, Callable[[pa.Table], pa.Array]]] = {
    Entity.SERVICE: services,
    Entity.INSTANCE: instances,
    Entity.ENDPOINT: endpoints,
    Entity.SERVICE_RELATION: _relation(services),
    Entity.INSTANCE_RELATION: _relation(instances),
    Entity.ENDPOINT_RELATION: _endpoint_relation,
}
