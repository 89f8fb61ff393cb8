"""top_n: entities by the mean of a metric over a time, and records by their latency.

The mean is that of the buckets that have a value, truncated to a whole number. Entities of equal
means stand by their ids.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from skyfarer.oap.core.entities import Entity
from skyfarer.oap.core.slow import SlowStatement
from skyfarer.oap.core.storage import Reader
from skyfarer.oap.query import limits
from skyfarer.oap.query.durations import Window
from skyfarer.oap.query.errors import QueryError
from skyfarer.oap.query.expressions import columns
from skyfarer.oap.query.expressions.catalogue import Derived, Sampled
from skyfarer.oap.query.expressions.owners import service_of
from skyfarer.oap.query.expressions.reading import columns_of, range_of

_OF_A_SERVICE = (Entity.SERVICE, Entity.INSTANCE, Entity.ENDPOINT)


@dataclass(frozen=True)
class Top:
    """So many, the greatest first or the least."""

    limit: int
    ascending: bool


@dataclass(frozen=True)
class LayerIs:
    """Entities of services that are, or are not, of a layer."""

    layer: str
    equal: bool


def ranked(
    reader: Reader,
    of: Derived,
    window: Window,
    top: Top,
    service_id: str | None = None,
    layers: Sequence[LayerIs] = (),
) -> list[tuple[str, int]]:
    """Entity ids and their means; of a service, itself or its parts. Blocks on storage."""
    if service_id is not None and of.kind not in _OF_A_SERVICE:
        raise QueryError(f"{of.name} is of two services; ask for its top without a service")
    rows = reader.rows(of.source, columns_of(of), *range_of(of, window), service_id)
    entities, means = _means(*columns.values(of, rows, window))
    if wanted := _wanted(reader, layers):
        takes = [
            all((service_of(entity) in services) is equal for services, equal in wanted)
            for entity in entities.to_pylist()
        ]
        entities, means = entities.filter(pa.array(takes, pa.bool_())), means[takes]
    return _first(entities, means, top)


def _wanted(reader: Reader, layers: Sequence[LayerIs]) -> list[tuple[frozenset[str], bool]]:
    return [
        (frozenset(service.id for service in reader.services(one.layer)), one.equal)
        for one in layers
    ]


def _means(entities: pa.ChunkedArray, values: columns.Numbers) -> tuple[pa.Array, columns.Numbers]:
    """Of each entity that has any value; whole numbers."""
    encoded = entities.dictionary_encode().combine_chunks()
    groups = encoded.indices.to_numpy().astype(np.intp)
    counts = np.bincount(groups, minlength=len(encoded.dictionary))
    there = np.flatnonzero(counts)
    sums = np.bincount(groups, values, minlength=len(encoded.dictionary))[there]
    return encoded.dictionary.take(pa.array(there)), np.trunc(sums / counts[there])


def _first(entities: pa.Array, means: columns.Numbers, top: Top) -> list[tuple[str, int]]:
    """Only what is no worse than the last of them is looked at one by one."""
    sign = 1 if top.ascending else -1
    if not 0 < top.limit < len(means):
        best = np.arange(len(means))
    else:
        best = np.flatnonzero(
            sign * means <= np.partition(sign * means, top.limit - 1)[top.limit - 1]
        )
    found = zip(
        map(int, sign * means[best]), entities.take(pa.array(best)).to_pylist(), strict=True
    )
    return [(entity, sign * mean) for mean, entity in heapq.nsmallest(top.limit, found)]


def sampled(
    reader: Reader, of: Sampled, service_id: str, between: tuple[int, int], top: Top
) -> list[SlowStatement]:
    """`between` is a range of second buckets. Storage has the slowest first: for the fastest of
    them all are read, and QueryError says when they are too many."""
    if not top.ascending:
        return reader.slowest(of.slow, service_id, between, top.limit)
    found = reader.slowest(of.slow, service_id, between, limits.RECORDS_MAX + 1)
    if len(found) > limits.RECORDS_MAX:
        raise QueryError(
            f"there are more than {limits.RECORDS_MAX} records; ask for a shorter duration, or des"
        )
    return sorted(found, key=lambda one: (one.latency, one.id))[: top.limit]
