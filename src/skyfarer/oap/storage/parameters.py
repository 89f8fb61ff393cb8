"""Parameters of events as storage keeps them: one text, of a bounded length."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final

import pyarrow as pa

PARAMETERS_CHARS_MAX: Final = 20_000
"""Of an event's keys and values in all; those that go beyond it are left out, by their keys."""


def written(rows: pa.Table) -> pa.Table:
    """With the `parameters` as JSON, sorted by their keys; empty where there are none."""
    texts = [_written(pairs or ()) for pairs in rows["parameters"].to_pylist()]
    place = rows.schema.get_field_index("parameters")
    return rows.set_column(place, "parameters", pa.array(texts, pa.string()))


def _written(pairs: Sequence[tuple[str, str | None]]) -> str:
    kept, left = dict[str, str](), PARAMETERS_CHARS_MAX
    for key, value in sorted((key, value or "") for key, value in pairs):
        left -= len(key) + len(value)
        if left < 0:
            break
        kept[key] = value
    return json.dumps(kept) if kept else ""


def read(text: str) -> tuple[tuple[str, str], ...]:
    pairs: dict[str, str] = json.loads(text or "{}")
    return tuple(pairs.items())
