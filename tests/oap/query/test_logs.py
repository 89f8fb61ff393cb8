"""Lists of logs, through the HTTP door from a real storage."""

from __future__ import annotations

from typing import Any

import pytest

from skyfarer.oap.core import ids
from skyfarer.oap.query import limits
from skyfarer.wire.messages import log, otlp_logs, otlp_trace
from skyfarer.wire.rpc import Kind

# The fields that SkyWalking's page selects, and the reason.
QUERY_LOGS = """
query queryLogs($condition: LogQueryCondition) {
  queryLogs(condition: $condition) {
    errorReason
    logs {
      serviceName serviceId serviceInstanceName serviceInstanceId endpointName endpointId traceId
      timestamp contentType content tags { key value }
    }
  }
}"""
MORNING = {"start": "2026-11-15 080000", "end": "2026-11-15 085959", "step": "SECOND"}


def told(service: str, at_ms: int, text: str = "hello", **other: Any) -> log.LogData:
    body = log.LogDataBody(text=log.TextLog(text=text))
    message = log.LogData(timestamp=at_ms, service=service, body=body)
    message.MergeFrom(log.LogData(**other))
    return message


def tagged(**tags: str) -> log.LogTags:
    return log.LogTags(data=[{"key": key, "value": value} for key, value in tags.items()])


def condition(**other: Any) -> dict[str, Any]:
    return {
        "queryDuration": MORNING,
        "paging": {"pageNum": 1, "pageSize": 21},
        "keywordsOfContent": [],
        "excludingKeywordsOfContent": [],
    } | other


def page(shelf, **asked: Any) -> list[dict[str, Any]]:
    data = shelf.ask(QUERY_LOGS, condition=condition(**asked))["queryLogs"]
    assert data["errorReason"] is None
    logs = data["logs"]
    assert isinstance(logs, list)
    return logs


def listed(shelf, **asked: Any) -> list[str]:
    return [one["content"] for one in page(shelf, **asked)]


def test_a_log_is_listed_with_the_fields_the_page_selects(shelf, eight, fresh):
    context = log.TraceContext(traceId="t1", traceSegmentId="s1", spanId=3)
    names = {"serviceInstance": "i_ü", "endpoint": "/pay", "traceContext": context}
    shelf.put_logs(told(fresh, eight, "it’s ☕", **names, tags=tagged(level="ERROR", free="1")))
    service = ids.service_id(fresh)
    assert page(shelf, serviceId=service) == [
        {
            "serviceName": fresh,
            "serviceId": service,
            "serviceInstanceName": "i_ü",
            "serviceInstanceId": ids.instance_id(service, "i_ü"),
            "endpointName": "/pay",
            "endpointId": ids.endpoint_id(service, "/pay"),
            "traceId": "t1",
            "timestamp": eight,
            "contentType": "TEXT",
            "content": "it’s ☕",
            "tags": [{"key": "level", "value": "ERROR"}, {"key": "free", "value": "1"}],
        }
    ]


def test_what_a_log_does_not_name_is_null(shelf, eight, fresh):
    shelf.put_logs(told(fresh, eight))
    (one,) = page(shelf, serviceId=ids.service_id(fresh))
    absent = ("serviceInstanceName", "serviceInstanceId", "endpointName", "endpointId", "traceId")
    assert [one[name] for name in absent] == [None] * 5
    assert one["tags"] == []


@pytest.mark.parametrize(
    ("body", "type_", "content"),
    [
        (log.LogDataBody(text=log.TextLog(text="plain")), "TEXT", "plain"),
        (log.LogDataBody(json=log.JSONLog(json='{"a": 1}')), "JSON", '{"a": 1}'),
        (log.LogDataBody(yaml=log.YAMLLog(yaml="a: 1")), "YAML", "a: 1"),
        (log.LogDataBody(text=log.TextLog()), "TEXT", ""),
        (log.LogDataBody(type="text"), "NONE", ""),
        (None, "NONE", ""),
    ],
)
def test_each_content_has_its_type(shelf, eight, fresh, body, type_, content):
    shelf.put_logs(log.LogData(timestamp=eight, service=fresh, body=body))
    (one,) = page(shelf, serviceId=ids.service_id(fresh))
    assert (one["contentType"], one["content"]) == (type_, content)


def test_every_condition_narrows_the_list(shelf, eight, fresh):
    context = log.TraceContext(traceId=fresh, traceSegmentId="s", spanId=0)
    deeper = log.TraceContext(traceId=fresh, traceSegmentId="s", spanId=1)
    shelf.put_logs(
        told(fresh, eight, "a", serviceInstance="i1", endpoint="/a", traceContext=context),
        told(fresh, eight + 1, "b", serviceInstance="i2", traceContext=deeper),
        told(f"{fresh}-other", eight + 2, "c"),
    )
    service = ids.service_id(fresh)

    def of_trace(**asked: Any) -> list[str]:
        return listed(shelf, relatedTrace={"traceId": fresh} | asked, queryDuration=None)

    assert listed(shelf, serviceId=service) == ["b", "a"]
    assert listed(shelf, serviceId=service, queryOrder="DES") == ["b", "a"]
    assert listed(shelf, serviceId=service, queryOrder="ASC") == ["a", "b"]
    assert listed(shelf, serviceInstanceId=ids.instance_id(service, "i2")) == ["b"]
    assert listed(shelf, endpointId=ids.endpoint_id(service, "/a")) == ["a"]
    assert of_trace() == of_trace(segmentId="s") == of_trace(segmentId="") == ["b", "a"]
    assert of_trace(spanId=0) == ["a"]
    assert of_trace(segmentId="s", spanId=1) == ["b"]
    assert of_trace(segmentId="r") == []
    assert listed(shelf, relatedTrace={"traceId": fresh}, serviceId=ids.service_id("x")) == []
    assert listed(shelf, serviceId="x' OR 1=1 --") == []
    night = {"start": "2026-11-15 0000", "end": "2026-11-15 0759", "step": "MINUTE"}
    assert listed(shelf, relatedTrace={"traceId": fresh}, queryDuration=night) == []


def test_logs_are_searched_by_all_their_tags_and_tags_are_proposed(shelf, eight, fresh):
    shelf.put_logs(
        told(fresh, eight, "a", tags=tagged(**{fresh: "1", "level": "ERROR"})),
        told(fresh, eight + 1, "b", tags=tagged(**{fresh: "2", "level": "ERROR"})),
    )

    def having(*pairs: tuple[str, str]) -> list[str]:
        asked = [{"key": key, "value": value} for key, value in pairs]
        return listed(shelf, serviceId=ids.service_id(fresh), tags=asked)

    assert having(("level", "ERROR")) == ["b", "a"]
    assert having(("level", "ERROR"), (fresh, "1")) == ["a"]
    assert having((fresh, "1"), (fresh, "2")) == having((fresh, "3")) == []
    proposed = shelf.ask(
        """query ($key: String!, $duration: Duration!) {
          keys: queryLogTagAutocompleteKeys(duration: $duration)
          values: queryLogTagAutocompleteValues(tagKey: $key, duration: $duration)
          traces: queryTraceTagAutocompleteValues(tagKey: $key, duration: $duration)
        }""",
        key=fresh,
        duration=MORNING,
    )
    assert {"level", fresh} <= set(proposed["keys"])
    assert (proposed["values"], proposed["traces"]) == (["1", "2"], [])


def test_pages_are_numbered_from_one_and_do_not_overlap(shelf, eight, fresh):
    shelf.put_logs(*(told(fresh, eight, str(n)) for n in range(5)))

    def numbered(number: int, size: int = 2) -> list[str]:
        paging = {"pageNum": number, "pageSize": size}
        return listed(shelf, serviceId=ids.service_id(fresh), paging=paging)

    assert [numbered(number) for number in (1, 2, 3, 4)] == [["4", "3"], ["2", "1"], ["0"], []]
    assert numbered(1, 0) == []


def test_bytes_that_are_no_log_are_a_log_without_content(shelf, eight, fresh):
    shelf.put_log_as(told(fresh, eight), Kind.LOG, b"\xff\xff\xff")
    shelf.put_log_as(told(fresh, eight + 1), Kind.OTLP_LOGS, b"")
    first, second = page(shelf, serviceId=ids.service_id(fresh))
    for one in (first, second):
        assert (one["contentType"], one["content"], one["tags"]) == ("NONE", "", [])
        assert one["serviceName"] == fresh


def test_text_that_is_not_utf_8_is_shown_all_the_same(shelf, eight, fresh):
    message = told(fresh, eight, "abcd", tags=tagged(level="abcd"))
    data = message.SerializeToString().replace(b"abcd", b"a\xffcd")
    shelf.put_log_as(message, Kind.LOG, data)
    (one,) = page(shelf, serviceId=ids.service_id(fresh))
    assert (one["content"], one["tags"][0]["value"]) == ("a�cd", "a�cd")


def test_a_content_that_is_too_long_is_cut_and_says_so(shelf, eight, fresh):
    shelf.put_logs(told(fresh, eight, "x" * 1_000_001))
    (content,) = listed(shelf, serviceId=ids.service_id(fresh))
    assert content == "x" * 1_000_000 + "… (1000001 characters)"


def test_logs_too_large_to_be_shown_together_say_so(shelf, eight, fresh, monkeypatch):
    monkeypatch.setattr(limits, "LOGS_BYTES_MAX", 100)
    shelf.put_logs(told(fresh, eight, "x" * 100), told(fresh, eight + 1, "small"))
    asked = condition(serviceId=ids.service_id(fresh))
    answer = shelf.ask(QUERY_LOGS, condition=asked)["queryLogs"]
    assert [one["content"] for one in answer["logs"]] == ["small", ""]
    assert "ask for fewer at a time" in answer["errorReason"]


def test_logs_are_found_by_the_words_of_their_content_alone(shelf, eight, fresh):
    shelf.put_logs(
        told(fresh, eight, "Disk full: café", tags=tagged(note="unplugged")),
        told(fresh, eight + 1, "disk unplugged", endpoint="/disk"),
        told(fresh, eight + 2, "all well", serviceInstance="disk", tags=tagged(of="disk")),
    )
    assert shelf.ask("{ support: supportQueryLogsByKeywords }") == {"support": True}

    def having(wanted: list[str], unwanted: list[str] | None = None) -> list[str]:
        words = {"keywordsOfContent": wanted, "excludingKeywordsOfContent": unwanted}
        return listed(shelf, serviceId=ids.service_id(fresh), **words)

    assert having(["disk"]) == having(["DISK", ""]) == ["disk unplugged", "Disk full: café"]
    assert having(["disk", "full"]) == having(["café"]) == ["Disk full: café"]
    assert having(["disk"], ["unplugged"]) == ["Disk full: café"]
    assert having([], ["DISK", ""]) == ["all well"]
    assert having(["d_sk"]) == having(["%"]) == having(["' OR 1=1 --"]) == having(["CAFÉ"]) == []
    assert having([""], [""]) == ["all well", "disk unplugged", "Disk full: café"]


def test_pages_of_logs_with_a_word_count_only_those_that_have_it(shelf, eight, fresh, monkeypatch):
    monkeypatch.setattr(limits, "LOGS_LOOKED_AT_FIRST", 2)
    words = ("odd" if n % 2 else "even" for n in range(12))
    shelf.put_logs(
        *(
            told(fresh, eight + n, f"{word} {n}", tags=tagged(of="odd"))
            for n, word in enumerate(words)
        )
    )

    def numbered(number: int, **asked: Any) -> list[str]:
        paging = {"pageNum": number, "pageSize": 4}
        return listed(shelf, serviceId=ids.service_id(fresh), paging=paging, **asked)

    for asked in ({"keywordsOfContent": ["odd"]}, {"excludingKeywordsOfContent": ["even"]}):
        assert numbered(1, **asked) == ["odd 11", "odd 9", "odd 7", "odd 5"]
        assert numbered(2, **asked) == ["odd 3", "odd 1"]
        assert numbered(3, **asked) == []


def test_a_search_for_words_that_finds_no_end_says_how_far_it_went(
    shelf, eight, fresh, monkeypatch
):
    monkeypatch.setattr(limits, "LOGS_LOOKED_AT_FIRST", 1)
    monkeypatch.setattr(limits, "LOG_SEARCHES_MAX", 2)
    shelf.put_logs(*(told(fresh, eight + n, f"entry {n}") for n in range(7)))
    asked = condition(serviceId=ids.service_id(fresh), excludingKeywordsOfContent=["6", "5"])
    answer = shelf.ask(QUERY_LOGS, condition=asked)["queryLogs"]
    assert [one["content"] for one in answer["logs"]] == ["entry 4", "entry 3", "entry 2"]
    assert answer["errorReason"].startswith("only the first 5 logs that could have these keywords")


def test_a_page_of_logs_with_a_word_holds_no_more_bytes_than_any_other(
    shelf, eight, fresh, monkeypatch
):
    shelf.put_logs(*(told(fresh, eight + n, f"word {'x' * 60}") for n in range(4)))
    monkeypatch.setattr(limits, "LOGS_BYTES_MAX", 200)
    asked = condition(serviceId=ids.service_id(fresh), keywordsOfContent=["word"])
    answer = shelf.ask(QUERY_LOGS, condition=asked)["queryLogs"]
    lengths = [len(one["content"]) for one in answer["logs"]]
    assert lengths == [65, 65, 0, 0]
    assert "ask for fewer at a time" in answer["errorReason"]


@pytest.mark.parametrize("field", ["keywordsOfContent", "excludingKeywordsOfContent"])
@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["x"] * 11, "11 {} are more than the 10 allowed"),
        (["x" * 257], "one of {} has more than 256 characters"),
    ],
)
def test_keywords_that_nobody_searches_for_are_refused_with_a_reason(shelf, field, words, why):
    asked = condition(**{field: words})
    assert shelf.errors(QUERY_LOGS, condition=asked) == [why.format(field)]


def test_a_condition_that_cannot_be_answered_says_why(shelf):
    needs = "the condition needs a relatedTrace or a queryDuration"
    assert shelf.errors(QUERY_LOGS, condition=condition(queryDuration=None)) == [needs]
    nothing = condition(queryDuration=None, relatedTrace={"traceId": ""})
    assert shelf.errors(QUERY_LOGS, condition=nothing) == [needs]
    (error,) = shelf.errors(QUERY_LOGS, condition=condition(tags=[{"key": "level"}]))
    assert error == "the tag 'level' needs a value to be searched for"
    for paging, why in (
        ({"pageNum": 10**9, "pageSize": 20}, "lies beyond the first 10000 logs"),
        ({"pageNum": 1, "pageSize": 10**6}, "a page of 1000000 logs is larger than"),
    ):
        (error,) = shelf.errors(QUERY_LOGS, condition=condition(paging=paging))
        assert why in error
    assert shelf.errors(QUERY_LOGS) == ["the condition is missing"]


def any_value(value: str | int) -> otlp_trace.AnyValue:
    if isinstance(value, int):
        return otlp_trace.AnyValue(int_value=value)
    return otlp_trace.AnyValue(string_value=value)


def part(record: otlp_logs.LogRecord) -> bytes:
    of_scope = otlp_logs.ScopeLogs(log_records=[record])
    return bytes(otlp_logs.ResourceLogs(scope_logs=[of_scope]).SerializeToString())


def test_a_log_of_opentelemetry_shows_its_body_its_severity_and_its_attributes(shelf, eight, fresh):
    code = otlp_trace.KeyValue(key="code", value=any_value(500))
    pairs = otlp_trace.KeyValueList(values=[code])
    written = otlp_logs.LogRecord(
        body=any_value("sold ☕"), severity_text="Warn", attributes=[code]
    )
    numbered = otlp_logs.LogRecord(body=otlp_trace.AnyValue(kvlist_value=pairs), severity_number=21)
    silent = otlp_logs.LogRecord(severity_number=99)
    for record in (written, numbered, silent):
        shelf.put_log_as(told(fresh, eight), Kind.OTLP_LOGS, part(record))
    shelf.put_log_as(told(fresh, eight), Kind.OTLP_LOGS, b"")
    shown = page(shelf, serviceId=ids.service_id(fresh), queryOrder="ASC")
    assert [(one["contentType"], one["content"], one["tags"]) for one in shown] == [
        ("TEXT", "sold ☕", [{"key": "level", "value": "Warn"}, {"key": "code", "value": "500"}]),
        ("JSON", '{"code": 500}', [{"key": "level", "value": "FATAL"}]),
        ("NONE", "", []),
        ("NONE", "", []),
    ]


def test_logs_may_be_asked_for_by_the_names_of_whom_they_are_of(shelf, eight, fresh):
    shelf.put_logs(
        told(fresh, eight, "one", serviceInstance="i1", endpoint="/a"),
        told(fresh, eight + 1, "two", serviceInstance="i2", endpoint="/a"),
    )
    query = QUERY_LOGS.replace("LogQueryCondition", "LogQueryConditionByName")
    query = query.replace("queryLogs(condition:", "queryLogs: queryLogsByName(condition:")

    def by_name(**asked: Any) -> list[str]:
        logs = shelf.ask(query, condition=condition(**asked))["queryLogs"]["logs"]
        return [one["content"] for one in logs]

    service = {"serviceName": fresh}
    assert by_name(service=service) == ["two", "one"]
    assert by_name(instance={**service, "instanceName": "i1"}) == ["one"]
    assert by_name(endpoint={**service, "endpointName": "/a"}, queryOrder="ASC") == ["one", "two"]
    assert by_name(service={**service, "layer": "VIRTUAL_CACHE"}) == []
    assert shelf.errors(query) == ["the condition is missing"]
