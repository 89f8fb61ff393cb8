"""The root field about errors of browsers, from the records that they are kept as.

They have no table of their own: what is asked for is picked out of all that came in the time, so
the time must be short enough.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from datetime import tzinfo
from typing import Any, Final

from google.protobuf.message import DecodeError

from skyfarer.oap.core import ids
from skyfarer.oap.core.storage import Reader, Record
from skyfarer.oap.core.time_bucket import epoch_ms
from skyfarer.oap.query import conditions, limits
from skyfarer.oap.query.durations import Duration
from skyfarer.oap.query.errors import QueryError
from skyfarer.oap.query.mending import parsed
from skyfarer.oap.query.traces.span import View, name, text
from skyfarer.wire.messages import browser
from skyfarer.wire.rpc import Kind

log = logging.getLogger(__name__)

ALL: Final = "ALL"
_CATEGORIES: Final = {number: word.upper() for word, number in browser.ErrorCategory.items()}
_UNKNOWN: Final = "UNKNOWN"


class BrowserLogs:
    """Any thread; blocks on storage."""

    def __init__(self, reader: Reader, zone: tzinfo) -> None:
        self._reader = reader
        self._zone = zone

    def table(self) -> dict[str, Callable[..., object]]:
        return {"queryBrowserErrorLogs": self.page}

    def page(self, condition: Mapping[str, Any] | None = None) -> View:
        if condition is None:
            raise QueryError("the condition is missing")
        offset, limit = conditions.page(condition["paging"], "errors")
        errors = [one for one in self._told(condition) if _fits(one, condition)]
        errors.sort(key=lambda one: one.time, reverse=True)
        return {"logs": [_view(one) for one in errors[offset : offset + limit]]}

    def _told(self, condition: Mapping[str, Any]) -> Iterator[browser.BrowserErrorLog]:
        if condition.get("queryDuration") is None:
            raise QueryError("the condition needs a queryDuration")
        span, most = Duration.of(condition["queryDuration"]), limits.BROWSER_ERRORS_MAX
        if (span.end - span.start).days > limits.BROWSER_ERROR_DAYS_MAX:
            raise QueryError(
                f"errors are looked for in {limits.BROWSER_ERROR_DAYS_MAX} days at most"
            )
        minutes = (span.start_minute, span.end_minute)
        found = self._reader.records(Kind.BROWSER_ERROR, *minutes, most + 1)
        if len(found) > most:
            raise QueryError(f"more than {most} errors came in that time: ask for a shorter one")
        for record in reversed(found):
            yield from self._read(record)

    def _read(self, record: Record) -> Iterator[browser.BrowserErrorLog]:
        try:
            error = parsed(browser.BrowserErrorLog, record.payload)
        except DecodeError as failure:
            log.warning("an error of a browser cannot be decoded: %s", failure)
            return
        if error.time <= 0:
            error.time = epoch_ms(record.time_bucket, self._zone)
        yield error


def _fits(error: browser.BrowserErrorLog, condition: Mapping[str, Any]) -> bool:
    service_id = ids.service_id(error.service)
    version_id = ids.instance_id(service_id, error.serviceVersion)
    told = {
        "serviceId": service_id,
        "serviceVersionId": version_id,
        "pagePathId": ids.endpoint_id(service_id, error.pagePath),
        "category": _CATEGORIES.get(error.category, _UNKNOWN),
    }
    asked = {field: condition.get(field) for field in told}
    return all(value in (None, "", ALL, told[field]) for field, value in asked.items())


def _view(error: browser.BrowserErrorLog) -> View:
    return {
        "service": name(error.service),
        "serviceVersion": name(error.serviceVersion),
        "time": error.time,
        "pagePath": name(error.pagePath),
        "category": _CATEGORIES.get(error.category, _UNKNOWN),
        "grade": name(error.grade),
        "message": text(error.message),
        "line": error.line,
        "col": error.col,
        "stack": text(error.stack),
        "errorUrl": text(error.errorUrl),
        "firstReportedError": error.firstReportedError,
    }
