"""Stacks as agents sent them. They are found by the minute they came in, which is soon after."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from datetime import tzinfo
from typing import Final

from google.protobuf.message import DecodeError

from skyfarer.oap.core.storage import Reader, Record
from skyfarer.oap.core.time_bucket import MINUTE_MS, minute_bucket
from skyfarer.oap.query import limits
from skyfarer.oap.query.errors import QueryError
from skyfarer.oap.query.mending import parsed
from skyfarer.wire.messages import profile
from skyfarer.wire.rpc import Kind

log = logging.getLogger(__name__)

LATE_MS: Final = 60 * MINUTE_MS
"""So long after a dump it may still come in."""
EARLY_MS: Final = MINUTE_MS
"""So much an agent's clock may be ahead of ours."""
SPAN_MS_MAX: Final = 24 * 60 * MINUTE_MS
_LATEST_MS: Final = 253_402_128_000_000  # 9999-12-30: later times have no bucket in every zone


class Snapshots:
    """Any thread; blocks on storage."""

    def __init__(self, reader: Reader, zone: tzinfo) -> None:
        self._reader = reader
        self._zone = zone

    def between(self, start_ms: int, end_ms: int) -> list[profile.ThreadSnapshot]:
        """Those dumped then, and others; SNAPSHOTS_MAX at most. QueryError for no such time."""
        found = self._records(Kind.PROFILE_SNAPSHOT, start_ms, end_ms, limits.SNAPSHOTS_MAX)
        return [one for record in found for one in _snapshot(record)]

    def finished(self, start_ms: int, end_ms: int) -> list[tuple[Record, str, str, str]]:
        """Record, task, service and instance of what agents said to have finished then."""
        found = self._records(Kind.PROFILE_FINISH, start_ms, end_ms, limits.PROFILE_LOGS_MAX)
        return [(record, *told) for record in found for told in _finish(record)]

    def _records(self, kind: Kind, start_ms: int, end_ms: int, limit: int) -> list[Record]:
        if not EARLY_MS <= start_ms <= end_ms <= _LATEST_MS:
            raise QueryError(f"{start_ms} to {end_ms} is no time in milliseconds since the epoch")
        first = minute_bucket(start_ms - EARLY_MS, self._zone)
        last = minute_bucket(end_ms + LATE_MS, self._zone)
        return self._reader.records(kind, first, last, limit)


def _snapshot(record: Record) -> Iterator[profile.ThreadSnapshot]:
    try:
        yield parsed(profile.ThreadSnapshot, record.payload)
    except DecodeError as error:
        log.warning("a snapshot of %d cannot be decoded: %s", record.time_bucket, error)


def _finish(record: Record) -> Iterator[tuple[str, str, str]]:
    try:
        told = parsed(profile.ProfileTaskFinishReport, record.payload)
    except DecodeError as error:
        log.warning("a finished profile of %d cannot be decoded: %s", record.time_bucket, error)
    else:
        yield told.taskId, told.service, told.serviceInstance
