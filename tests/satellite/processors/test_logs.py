from __future__ import annotations

import json
from typing import Any

import pytest

from satellite.processors.passes import Pass, made
from skyfarer.base.errors import ConfigError
from skyfarer.satellite.processors.lines import DEPTH_MAX, FIELDS_MAX, LINE_CHARACTERS_MAX
from skyfarer.satellite.processors.log_converter import LogConverter
from skyfarer.satellite.processors.log_parser import LogParser
from skyfarer.satellite.processors.meter_converter import MeterConverter
from skyfarer.wire.messages import KeyStringValuePair, log, meter
from skyfarer.wire.rpc import Kind

APACHE = r'^(?P<client>\S+) \S+ \S+ \[(?P<time>[^\]]+)\] "(?P<request>[^"]*)" (?P<status>\d{3})'
LINE = '10.0.0.1 - - [10/Oct/2026:13:55:36 +0200] "GET /index.html HTTP/1.1" 200 2326'


def logged(line: str, **tags: str) -> Any:
    data = [KeyStringValuePair(key=key, value=value) for key, value in tags.items()]
    return log.LogData(
        timestamp=5,
        service="order",
        body=log.LogDataBody(text=log.TextLog(text=line)),
        tags=log.LogTags(data=data),
    )


def tags_of(message: Any) -> dict[str, str]:
    return {tag.key: tag.value for tag in message.tags.data}


def test_fields_of_a_json_line_become_tags() -> None:
    line = json.dumps(
        {"level": "WARN", "user": {"id": 7, "name": "é"}, "ok": True, "n": None, "list": [1, 2]}
    )

    edited = Pass(made(LogParser)).one(Kind.LOG, logged(line))

    assert tags_of(edited) == {
        "level": "WARN",
        "user.id": "7",
        "user.name": "é",
        "ok": "true",
        "list": "[1, 2]",
    }
    assert edited.body.text.text == line


def test_named_groups_of_a_pattern_become_tags() -> None:
    parser = made(LogParser, format="regex", pattern=APACHE, fields=["status", "client"])

    assert tags_of(Pass(parser).one(Kind.LOG, logged(LINE))) == {
        "client": "10.0.0.1",
        "status": "200",
    }


def test_tags_are_named_as_told_and_one_that_is_there_stays() -> None:
    parser = made(
        LogParser,
        fields=["*", "!secret"],
        rename={"lvl": "level"},
        prefix="app.",
        value_characters_max=3,
    )
    line = json.dumps({"lvl": "WARN", "thread": "main-1", "secret": "x"})

    edited = Pass(parser).one(Kind.LOG, logged(line, level="INFO"))

    assert tags_of(edited) == {"level": "INFO", "app.thread": "mai"}


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("no json", "unparsable"),
        ("[1]", "unparsable"),
        ("[" * 100_000, "unparsable"),
        ("", "unparsable"),
        ('{"a": "' + "x" * LINE_CHARACTERS_MAX + '"}', "too_long"),
    ],
)
def test_a_line_that_is_not_of_the_format_follows_the_policy(line: str, reason: str) -> None:
    passing, dropping = Pass(made(LogParser)), Pass(made(LogParser, on_failure="drop"))
    one = logged(line)

    assert passing.payloads(Kind.LOG, [one]) == [one.SerializeToString()]
    assert dropping.payloads(Kind.LOG, [one]) == []
    assert f'reason="{reason}"}} 1' in passing.registry.render()


def test_the_number_of_fields_and_their_depth_are_bounded() -> None:
    deep: dict[str, Any] = {}
    at = deep
    for _ in range(DEPTH_MAX + 3):
        at["d"] = {"x": 1}
        at = at["d"]
    many = {f"k{n}": n for n in range(FIELDS_MAX * 3)}

    assert len(tags_of(Pass(made(LogParser)).one(Kind.LOG, logged(json.dumps(many))))) == FIELDS_MAX
    keys = tags_of(Pass(made(LogParser)).one(Kind.LOG, logged(json.dumps(deep))))
    assert max(key.count(".") for key in keys) == DEPTH_MAX - 1


def test_a_json_line_becomes_a_whole_log() -> None:
    line = json.dumps(
        {
            "@timestamp": "2026-11-15T10:00:00.250Z",
            "severity": "ERROR",
            "service": "pay",
            "instance": "pay-1",
            "endpoint": "/pay",
            "traceId": "abc",
            "traceSegmentId": "def",
            "spanId": 3,
            "message": "boom",
        }
    )

    edited = Pass(made(LogConverter)).one(Kind.LOG, logged(line, level="INFO"))

    assert edited.timestamp == 1_794_736_800_250
    assert (edited.service, edited.serviceInstance, edited.endpoint) == ("pay", "pay-1", "/pay")
    assert tags_of(edited) == {"level": "ERROR"}
    context = edited.traceContext
    assert (context.traceId, context.traceSegmentId, context.spanId) == ("abc", "def", 3)
    assert edited.body.WhichOneof("content") == "json"
    assert edited.body.json.json == line


def test_what_a_line_does_not_say_stays_as_it_was() -> None:
    edited = Pass(made(LogConverter)).one(Kind.LOG, logged('{"a": 1}'))

    assert (edited.timestamp, edited.service) == (5, "order")
    assert not edited.HasField("traceContext")


def test_a_text_line_becomes_a_whole_log_and_its_message_the_body() -> None:
    converter = made(
        LogConverter,
        format="regex",
        pattern=APACHE,
        timestamp_format="%d/%b/%Y:%H:%M:%S %z",
        endpoint=["request"],
        message=["request"],
    )

    edited = Pass(converter).one(Kind.LOG, logged(LINE))

    assert edited.timestamp == 1_791_633_336_000
    assert edited.endpoint == edited.body.text.text == "GET /index.html HTTP/1.1"


@pytest.mark.parametrize(
    ("written", "milliseconds"),
    [
        (1_700_000_000, 1_700_000_000_000),
        (1_700_000_000.5, 1_700_000_000_500),
        (1_700_000_000_123, 1_700_000_000_123),
        (1_700_000_000_123_456, 1_700_000_000_123),
        ("1700000000123456789", 1_700_000_000_123),
        ("2023-11-14T22:13:20", 1_700_000_000_000),
        ("2023-11-14 23:13:20+01:00", 1_700_000_000_000),
    ],
)
def test_times_are_read_as_people_write_them(written: object, milliseconds: int) -> None:
    edited = Pass(made(LogConverter)).one(Kind.LOG, logged(json.dumps({"time": written})))

    assert edited.timestamp == milliseconds


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"time": "yesterday"}, "timestamp"),
        ({"time": -5}, "timestamp"),
        ({"time": "nan"}, "timestamp"),
        ({"spanId": "x"}, "span_id"),
        ({"spanId": 2**31}, "span_id"),
    ],
)
def test_a_field_that_cannot_be_read_leaves_the_log_untouched(
    fields: dict[str, object], reason: str
) -> None:
    passing, one = Pass(made(LogConverter)), logged(json.dumps(fields))

    assert passing.payloads(Kind.LOG, [one]) == [one.SerializeToString()]
    assert f'reason="{reason}"}} 1' in passing.registry.render()


def test_a_number_of_a_line_becomes_a_meter_beside_the_log() -> None:
    converter = made(MeterConverter, name="order_amount", value="amount", labels=["shop", "none"])
    lines = ['{"amount": 12.5, "shop": "a"}', '{"other": 1}', '{"amount": 3}']
    payloads = [logged(line).SerializeToString() for line in lines]

    done = Pass(converter).of(Kind.LOG, payloads)

    assert [list(batch.payloads) for batch in done.outgoing] == [payloads]
    (batch,) = done.emitted
    assert batch.kind == Kind.METER_COLLECTION
    first, second = (meter.MeterDataCollection.FromString(bytes(one)) for one in batch.payloads)
    (sample,) = first.meterData
    assert (sample.service, sample.timestamp) == ("order", 5)
    assert (sample.singleValue.name, sample.singleValue.value) == ("order_amount", 12.5)
    labels = {label.name: label.value for label in sample.singleValue.labels}
    assert labels == {"shop": "a", "none": ""}
    assert second.meterData[0].singleValue.value == 3


@pytest.mark.parametrize("value", ["NaN", "Infinity", '"many"', "true"])
def test_what_is_no_number_makes_no_meter(value: str) -> None:
    passing = Pass(made(MeterConverter, name="m", value="v"))

    done = passing.of(Kind.LOG, [logged(f'{{"v": {value}}}').SerializeToString()])

    assert (len(done.outgoing), done.emitted) == (1, ())
    assert 'reason="no_number"} 1' in passing.registry.render()


@pytest.mark.parametrize("filter_", [LogParser, LogConverter])
@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"format": "regex"}, "pattern goes with"),
        ({"pattern": "(?P<a>x)"}, "pattern goes with"),
        ({"format": "regex", "pattern": "x"}, "needs groups"),
        ({"format": "xml"}, "format is 'xml'"),
    ],
)
def test_a_wrong_configuration_is_refused_at_start(
    filter_: Any, wrong: dict[str, object], says: str
) -> None:
    with pytest.raises(ConfigError, match=says):
        made(filter_, **wrong)
