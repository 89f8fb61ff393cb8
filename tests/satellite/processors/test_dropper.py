from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from satellite.processors.passes import Pass, made
from skyfarer.base.errors import ConfigError
from skyfarer.satellite.contracts import Verdict
from skyfarer.satellite.processors.dropper import Dropper
from skyfarer.testing.traces import Exit, segment
from skyfarer.wire.messages import InstancePingPkg, KeyStringValuePair, event, log, meter
from skyfarer.wire.rpc import Kind


def dropper(*rules: dict[str, object]) -> Any:
    return made(Dropper, drop=list(rules))


def drops(rule: dict[str, object], kind: int, message: Any) -> bool:
    return Pass(dropper(rule)).payloads(kind, [message]) == []


def seg(endpoint: str = "GET:/orders", **more: Any) -> Any:
    return segment("order", "order-1", endpoint, 1_700_000_000_000, 50, **more)


def logged(text: str = "", **tags: str) -> Any:
    data = [KeyStringValuePair(key=key, value=value) for key, value in tags.items()]
    body = log.LogDataBody(text=log.TextLog(text=text))
    return log.LogData(
        service="order", endpoint="/buy", layer="GENERAL", body=body, tags=log.LogTags(data=data)
    )


CALL = Exit("HTTP/GET", "pay:80", 1, 2, tags={"http.status_code": "503"})


@pytest.mark.parametrize(
    ("rule", "holds"),
    [
        ({"service": "order"}, True),
        ({"service": "ord"}, False),
        ({"service": ["pay*", "ord*"]}, True),
        ({"service": "!ord*"}, False),
        ({"service": "!pay*"}, True),
        ({"instance": "order-?"}, True),
        ({"endpoint": "GET:/ord*"}, True),
        ({"endpoint": "HTTP/GET"}, False),
        ({"tags": {"http.status_code": "5*"}}, True),
        ({"tags": {"http.status_code": ["5*", "!200"]}}, False),
        ({"tags": {"missing": "*"}}, False),
        ({"error": True}, False),
        ({"error": False}, True),
        ({"faster_than": "51ms"}, True),
        ({"faster_than": "50ms"}, False),
        ({"level": "debug"}, False),
        ({"message": "*"}, False),
        ({"service": "order", "faster_than": "1ms"}, False),
        ({"kind": "segment", "service": "order"}, True),
        ({"kind": "log", "service": "order"}, False),
    ],
)
def test_segments_are_dropped_by_condition(rule: dict[str, object], holds: bool) -> None:
    assert drops(rule, Kind.SEGMENT, seg(exits=[CALL])) is holds


@pytest.mark.parametrize(
    ("rule", "holds"),
    [
        ({"level": "debug"}, True),
        ({"level": ["TRACE", "Debug"]}, True),
        ({"level": "info"}, False),
        ({"message": "*heartbeat*"}, True),
        ({"message": "heartbeat"}, False),
        ({"endpoint": "/buy"}, True),
        ({"layer": "GENERAL"}, True),
        ({"error": False}, False),
        ({"tags": {"thread": "main", "level": "DEBUG"}}, True),
        ({"tags": {"thread": "main", "level": "INFO"}}, False),
    ],
)
def test_logs_are_dropped_by_condition(rule: dict[str, object], holds: bool) -> None:
    one = logged("the heartbeat of it", level="DEBUG", thread="main")

    assert drops(rule, Kind.LOG, one) is holds


def test_meters_events_and_pings_have_services_too() -> None:
    gauge = meter.MeterData(service="order")
    collection = meter.MeterDataCollection(meterData=[gauge])
    happened = event.Event(source=event.Source(service="order", endpoint="/"), type="Error")
    rule: dict[str, object] = {"service": "order"}

    assert drops(rule, Kind.METER, gauge)
    assert drops(rule, Kind.METER_COLLECTION, collection)
    assert not drops(rule, Kind.METER_COLLECTION, meter.MeterDataCollection())
    assert drops(rule, Kind.EVENT, happened)
    assert drops({"error": True, "endpoint": "/"}, Kind.EVENT, happened)
    assert drops(rule, Kind.INSTANCE_PING, InstancePingPkg(service="order"))


def test_one_rule_that_holds_is_enough() -> None:
    passing = Pass(dropper({"kind": "log", "level": "debug"}, {"kind": "segment", "error": False}))

    assert passing.payloads(Kind.SEGMENT, [seg(), seg(error=True)]) != []
    assert len(passing.payloads(Kind.SEGMENT, [seg(), seg(error=True)])) == 1
    assert len(passing.payloads(Kind.LOG, [logged(level="DEBUG"), logged(level="INFO")])) == 1


def test_a_rule_by_kind_alone_drops_without_a_look_and_concerns_no_other_kind() -> None:
    by_kind = dropper({"kind": ["otlp_traces", "log"]})

    assert by_kind.verdict(Kind.LOG) is by_kind.verdict(Kind.OTLP_TRACES) is Verdict.DROP
    assert by_kind.verdict(Kind.SEGMENT) is Verdict.PASS
    done = Pass(by_kind, names=["no-logs"]).of(Kind.LOG, [b"not", b"even", b"protobuf"])
    assert [(loss.end, loss.reason) for loss in done.losses] == [(3, "filter:no-logs")]


def test_a_filter_that_needs_no_decoding_brings_no_protobuf() -> None:
    program = """
import sys
from skyfarer.satellite.processors.chain import Chain
from skyfarer.satellite.processors.dropper import DropConfig, Dropper, DropperConfig
Dropper(DropperConfig((DropConfig(kind=("log",)),)))
loaded = {"google.protobuf", "re2"} & set(sys.modules)
assert not loaded, loaded
Dropper(DropperConfig((DropConfig(service=("x",)),)))
assert "google.protobuf" in sys.modules
"""

    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def test_a_record_that_cannot_be_read_passes_unless_told_otherwise() -> None:
    rule = {"service": "*"}

    assert Pass(dropper(rule)).of(Kind.LOG, [b"\x0a\xff"]).losses == ()
    parking = made(Dropper, drop=[rule], on_failure="park")
    assert Pass(parking).of(Kind.LOG, [b"\x0a\xff"]).losses[0].payloads == (b"\x0a\xff",)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ([], "from 1 to 50"),
        ([{}], "would drop everything"),
        ([{"kind": "segmnt"}], "did you mean 'segment'"),
        ([{"servce": "x"}], "did you mean 'service'"),
        ([{"faster_than": "soon"}], "no duration"),
        ([{"service": ["x"] * 101}], "at most 100"),
    ],
)
def test_a_wrong_configuration_is_refused_at_start(wrong: list[object], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        made(Dropper, drop=wrong)
