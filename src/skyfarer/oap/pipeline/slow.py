"""A batch's slow statements and commands, out of the small rows of its segments.

A database tells its type, or it is never slow; a cache likewise, and whether it was read or
written. Of a tag that is there several times the last one holds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from skyfarer.oap.core.slow import STATEMENT_CHARS_MAX, Slow
from skyfarer.oap.core.time_bucket import MINUTE_MS
from skyfarer.oap.pipeline.analysis.slow import DATABASE, SlowSettings

DEFAULT: Final = "default"
_OWNERS: Final = ["segment_id", "trace_id", "service"]
_SCHEMA: Final = pa.schema(
    {
        **dict.fromkeys(("what", "service", "statement", "id", "trace_id"), pa.string()),
        **dict.fromkeys(("latency", "start_time", "minute"), pa.int64()),
    }
)


def slow_statements(
    segments: pa.Table, settings: SlowSettings, service_chars_max: int
) -> pa.Table | None:
    """As `core.storage.Analysed.slow` has them. A statement of a database is kept of it, and of
    the service that asked it."""
    lists = segments["slow"].combine_chunks()
    spans = pc.list_flatten(lists).to_pylist()
    if not spans:
        return None
    owners = segments.select(_OWNERS).take(pc.list_parent_indices(lists)).to_pylist()
    rows = []
    for span, owner in zip(spans, owners, strict=True):
        for what, asked, statement in _named(span, settings):
            service = owner["service"] if asked is None else asked
            rows.append(
                {
                    "what": what.name,
                    "service": service[:service_chars_max],
                    "statement": statement[:STATEMENT_CHARS_MAX],
                    "id": f"{owner['segment_id']}-{span['span_id']}",
                    "trace_id": owner["trace_id"],
                    "latency": span["latency"],
                    "start_time": span["start_time"],
                    "minute": span["start_time"] // MINUTE_MS,
                }
            )
    return pa.Table.from_pylist(rows, _SCHEMA) if rows else None


def _named(
    span: Mapping[str, Any], settings: SlowSettings
) -> Iterator[tuple[Slow, str | None, str]]:
    """What it is one of, whose, and what it asked for; nobody's name is the asker's."""
    tags = {tag["key"]: tag["value"] for tag in span["tags"]}
    latency_ms, peer = span["latency"], span["peer"]
    if span["layer"] == DATABASE:
        asked = tags.get("db.statement", "")
        if asked.strip() and _slow(latency_ms, tags.get("db.type"), settings.database_ms):
            yield Slow.DATABASE, peer, asked
            yield Slow.SERVICE_DATABASE, None, asked
        return
    type_ = tags.get("cache.type", "")
    told = {"read": Slow.CACHE_READ, "write": Slow.CACHE_WRITE}.get(tags.get("cache.op", ""))
    by_type = settings.cache_read_ms if told is Slow.CACHE_READ else settings.cache_write_ms
    if told is not None and type_.strip() and _slow(latency_ms, type_, by_type):
        command = " ".join(tags[key] for key in ("cache.cmd", "cache.key") if key in tags)
        yield told, peer if peer.strip() else f"{type_}-local", command


def _slow(latency_ms: int, type_: str | None, by_type: Mapping[str, int]) -> bool:
    """In lower case; a type without a threshold of its own has that of `default`, if there is."""
    if type_ is None:
        return False
    most_ms = by_type.get(type_.lower(), by_type.get(DEFAULT))
    return most_ms is not None and latency_ms > most_ms
