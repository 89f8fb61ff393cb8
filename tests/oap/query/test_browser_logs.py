"""Errors that browsers report, through the HTTP door from a real storage."""

from __future__ import annotations

from typing import Any

from skyfarer.oap.core import ids
from skyfarer.oap.query import limits
from skyfarer.wire.messages import browser
from skyfarer.wire.rpc import Kind

QUERY = """
query ($condition: BrowserErrorLogQueryCondition) {
  queryBrowserErrorLogs(condition: $condition) {
    logs { service serviceVersion time pagePath category grade message line col stack errorUrl
      firstReportedError }
  }
}"""
MORNING = {"start": "2026-11-15 0800", "end": "2026-11-15 0859", "step": "MINUTE"}


def error(service: str, at_ms: int, message: str, **other: Any) -> browser.BrowserErrorLog:
    told = {"serviceVersion": "v1", "pagePath": "/cart", "category": browser.ErrorCategory.js}
    return browser.BrowserErrorLog(service=service, time=at_ms, message=message, **told | other)


def logs(shelf, **asked: Any) -> list[dict[str, Any]]:
    condition = {"queryDuration": MORNING, "paging": {"pageNum": 1, "pageSize": 20}} | asked
    found = shelf.ask(QUERY, condition=condition)["queryBrowserErrorLogs"]["logs"]
    assert isinstance(found, list)
    return found


def messages(shelf, **asked: Any) -> list[str]:
    return [one["message"] for one in logs(shelf, **asked)]


def test_an_error_is_shown_as_the_browser_told_it(shelf, eight, fresh):
    told = {"grade": "Error", "line": 7, "col": 9, "stack": "at <b>", "errorUrl": "http://x/"}
    shelf.put_records(
        Kind.BROWSER_ERROR, eight, error(fresh, eight + 5, "no ☕", firstReportedError=True, **told)
    )
    assert logs(shelf, serviceId=ids.service_id(fresh)) == [
        {
            "service": fresh,
            "serviceVersion": "v1",
            "time": eight + 5,
            "pagePath": "/cart",
            "category": "JS",
            "message": "no ☕",
            "firstReportedError": True,
            **told,
        }
    ]


def test_errors_are_told_apart_by_every_condition_and_the_newest_come_first(shelf, eight, fresh):
    promise = browser.ErrorCategory.promise
    shelf.put_records(
        Kind.BROWSER_ERROR,
        eight,
        error(fresh, eight + 1, "a"),
        error(fresh, eight + 3, "c", serviceVersion="v2", category=promise),
        error(fresh, eight + 2, "b", pagePath="/pay", category=77),
        error(f"{fresh}-other", eight, "d"),
    )
    service = ids.service_id(fresh)
    assert messages(shelf, serviceId=service) == ["c", "b", "a"]
    assert messages(shelf, serviceId=service, category="ALL") == ["c", "b", "a"]
    assert messages(shelf, serviceId=service, category="PROMISE") == ["c"]
    assert messages(shelf, serviceId=service, category="UNKNOWN") == ["b"]
    assert messages(shelf, serviceVersionId=ids.instance_id(service, "v2")) == ["c"]
    assert messages(shelf, pagePathId=ids.endpoint_id(service, "/pay")) == ["b"]
    assert messages(shelf, serviceId=service, paging={"pageNum": 2, "pageSize": 2}) == ["a"]
    night = MORNING | {"start": "2026-11-15 0700", "end": "2026-11-15 0759"}
    assert messages(shelf, serviceId=service, queryDuration=night) == []


def test_an_error_without_a_time_is_of_the_minute_it_came(shelf, eight, fresh):
    shelf.put_records(Kind.BROWSER_ERROR, eight + 59_999, error(fresh, 0, "late"))
    (one,) = logs(shelf, serviceId=ids.service_id(fresh))
    assert one["time"] == eight


def test_what_cannot_be_answered_says_why(shelf, eight, fresh, monkeypatch):
    paging = {"pageNum": 1, "pageSize": 9}
    assert shelf.errors(QUERY) == ["the condition is missing"]
    (needs,) = shelf.errors(QUERY, condition={"paging": paging})
    assert needs == "the condition needs a queryDuration"
    ever = {"start": "1970-01-01", "end": "2026-11-15", "step": "DAY"}
    asked = {"paging": paging, "queryDuration": ever}
    assert shelf.errors(QUERY, condition=asked) == ["errors are looked for in 366 days at most"]
    shelf.put_records(Kind.BROWSER_ERROR, eight, *(error(fresh, eight, str(n)) for n in range(3)))
    monkeypatch.setattr(limits, "BROWSER_ERRORS_MAX", 2)
    (many,) = shelf.errors(QUERY, condition={"paging": paging, "queryDuration": MORNING})
    assert many == "more than 2 errors came in that time: ask for a shorter one"
