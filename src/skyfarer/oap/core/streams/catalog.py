"""All streams, and what follows of all of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from skyfarer.oap.core.expiry import Kept
from skyfarer.oap.core.streams.declaration import Model, Stream, model
from skyfarer.oap.core.streams.inventories import INVENTORIES
from skyfarer.oap.core.streams.management import MANAGEMENT
from skyfarer.oap.core.streams.metrics import METRICS, PREFIX, SOURCES
from skyfarer.oap.core.streams.records import RECORDS

STREAMS: Final[tuple[Stream, ...]] = (*INVENTORIES, *RECORDS, *METRICS, *MANAGEMENT)
MODELS: Final[Mapping[str, Model]] = {stream.name: model(stream) for stream in STREAMS}
LASTING: Final = tuple(one for one in MODELS.values() if not one.is_time_series)
"""One table each, made when a storage is; those of time series are made with their days."""
_ANY_SOURCE: Final = model(next(iter(SOURCES.values())))


def kept(name: str) -> Kept | None:
    """For how long the tables of days of that name are kept; None for what is no time series of
    ours. Metrics of a source that only an older or a newer program has expire like all others."""
    if (known := MODELS.get(name)) is not None:
        return known.kept
    return Kept.METRICS if name.startswith(PREFIX) else None


def begins(name: str) -> tuple[str, ...]:
    """The first columns of tables of days of that name, which tell them from tables that somebody
    else has given such a name; none for what is no time series of ours."""
    return MODELS.get(name, _ANY_SOURCE).first if kept(name) else ()
