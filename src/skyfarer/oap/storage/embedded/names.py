"""Ids of the segments' entities, said in DuckDB's SQL: segments nearly all differ."""

from __future__ import annotations

from typing import Final

from skyfarer.oap.core.ids import BLANK, SHOWS


def _named(column: str) -> str:
    """To look into a name costs more than all the rest: only one that begins with a blank is."""
    return f"""base64(encode(CASE WHEN ascii({column}) > 32 THEN {column}
        WHEN NOT regexp_matches({column}, '{SHOWS}') THEN '{BLANK}' ELSE {column} END))"""


SERVICE_NAME: Final = _named("service")
SEGMENT_SERVICE: Final = f"{SERVICE_NAME} || '.1'"
SEGMENT_INSTANCE: Final = f"{SEGMENT_SERVICE} || '_' || {_named('instance')}"
SEGMENT_ENDPOINT: Final = f"{SEGMENT_SERVICE} || '_' || {_named('endpoint')}"
