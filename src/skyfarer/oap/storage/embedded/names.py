"""Ids of the segments' entities, said in DuckDB's SQL: segments nearly all differ."""

from __future__ import annotations

from typing import Final

from skyfarer.oap.core.ids import BLANK

_WHITESPACE: Final = "".join(chr(n) for n in range(0x3001) if chr(n).isspace())


def _named(column: str) -> str:
    """To look for every kind of blank costs more than all the rest: only what begins oddly is."""
    return f"""base64(encode(CASE WHEN ascii({column}) BETWEEN 33 AND 126 THEN {column}
        WHEN trim({column}, '{_WHITESPACE}') = '' THEN '{BLANK}' ELSE {column} END))"""


SERVICE_NAME: Final = _named("service")
SEGMENT_SERVICE: Final = f"{SERVICE_NAME} || '.1'"
SEGMENT_INSTANCE: Final = f"{SEGMENT_SERVICE} || '_' || {_named('instance')}"
SEGMENT_ENDPOINT: Final = f"{SEGMENT_SERVICE} || '_' || {_named('endpoint')}"
