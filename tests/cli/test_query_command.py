"""`skyfarer query`, against a query server with a real storage, or with a shop in memory."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import datetime, timedelta, timezone
from http.server import BaseHTTPRequestHandler, HTTPServer
from math import inf, nan
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from contracts import log_contract
from contracts.metrics_contract import called
from contracts.storage_contract import batch, delta, deltas_of, segment
from skyfarer.cli.main import main
from skyfarer.cli.query.drawing import sparkline
from skyfarer.oap.core import ids
from skyfarer.oap.core.layers import Layer
from skyfarer.oap.core.storage import Heartbeat
from skyfarer.oap.oal.compiler import plan_of, shipped
from skyfarer.oap.query import QueryServer
from skyfarer.oap.storage.embedded import EmbeddedStorage
from skyfarer.telemetry.health import Health
from skyfarer.telemetry.metrics import Registry
from skyfarer.testing import traces
from skyfarer.testing.clock import HandClock
from skyfarer.testing.memory_reader import MemoryReader, fill_with_shop
from skyfarer.wire.messages import log

ZONE = timezone(timedelta(hours=8))
NOW_MS = int(datetime(2026, 11, 15, 8, 17, 42, tzinfo=ZONE).timestamp() * 1000)
EIGHT_MS = int(datetime(2026, 11, 15, 8, 0, tzinfo=ZONE).timestamp() * 1000)
MINUTE = EIGHT_MS // 60_000
PLAN = plan_of(shipped())


@contextmanager
def serving(reader: Any, health: Health | None = None) -> Iterator[str]:
    """The address of a server on the reader."""
    if health is None:
        health = Health()
        health.started()
    server = QueryServer(
        *(socket.create_server(("127.0.0.1", 0)), reader, MemoryReader().ledger, health),
        *(Registry(), HandClock(NOW_MS), ZONE),
        plan=PLAN,
    )
    server.start()
    try:
        yield f"http://127.0.0.1:{server.port}"
    finally:
        server.stop(5)


@pytest.fixture(scope="module")
def shop() -> Iterator[str]:
    """Services with figures: they have no calls, traces and logs."""
    reader = MemoryReader()
    fill_with_shop(reader, PLAN, NOW_MS, ZONE)
    gateway = ids.service_id("gateway")
    reader.add_instance(gateway, "gateway-1", "python", (202611150800, 202611150817))
    for number in (1, 2):
        name = f"payment-{number}"
        reader.add_instance(ids.service_id("payment"), name, "go", (202611150800, 202611150817))
    reader.add_endpoint(gateway, "GET:/\x1b[31mred")
    with serving(reader) as url:
        yield url


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Two services that call each other, with traces and logs."""
    storage = EmbeddedStorage()
    storage.start(tmp_path_factory.mktemp("storage") / "skyfarer.duckdb", ZONE)
    _fill(storage)
    with serving(storage) as url:
        yield url
    storage.stop()


def _fill(storage: EmbeddedStorage) -> None:
    front = delta(MINUTE, service="front", instance="f-1", endpoint="/buy")
    back = delta(MINUTE, service="back", instance="b-1", endpoint="/pay")
    between = {"from_service": "front", "from_instance": "f-1", "from_endpoint": "/buy"}
    to = {"service": "back", "instance": "b-1", "endpoint": "/pay", "component": 1}
    seen = [called(MINUTE) | between | to]
    seen.append(seen[0] | {"component": 2, "detect_point": "CLIENT"})
    calls = ("ServiceRelation", "ServiceInstanceRelation", "EndpointRelation")
    metrics = {source: deltas_of([front, back]) for source in ("Service", "ServiceInstance")}
    metrics |= {"Endpoint": deltas_of([front, back])}
    metrics |= {source: deltas_of(seen, {}) for source in calls}
    base = seen[0] | {"service": "db:1", "layer": Layer.VIRTUAL_DATABASE, "component": 33}
    metrics["ServiceRelation"] = deltas_of([*seen, base | {"detect_point": "CLIENT"}], {})
    alive = Heartbeat("front", "f-1", "GENERAL", MINUTE, {"language": "python"})
    rows = [_row(one) for one in _trace()]
    storage.apply(batch(0, 1, rows, metrics=metrics, heartbeats=[alive]))
    told = [("WARN", "it is\nslow", EIGHT_MS), ("ERROR", "it failed", EIGHT_MS + 1500)]
    log_contract.apply(storage, *(_log(*one) for one in told))


def _trace() -> Iterator[Any]:
    """The front calls the back, which fails."""
    front = traces.segment("front", "f-1", "/buy", EIGHT_MS, 100, segment_id="s1", trace_id="t1")
    yield front
    back = traces.segment(
        "back", "b-1", "/pay", EIGHT_MS + 25, 50, True, segment_id="s2", trace_id="t1"
    )
    back.spans[0].refs.add(traceId="t1", parentTraceSegmentId="s1", parentSpanId=0)
    back.spans[0].tags.add(key="http.method", value="GET")
    yield back


def _row(message: Any) -> dict[str, Any]:
    span = message.spans[-1]
    return segment(
        message.traceSegmentId,
        span.startTime,
        trace_id=message.traceId,
        service=message.service,
        instance=message.serviceInstance,
        endpoint=span.operationName,
        latency=span.endTime - span.startTime,
        is_error=span.isError,
        tags=[f"{tag.key}={tag.value}" for tag in span.tags],
        data_binary=message.SerializeToString(),
    )


def _log(level: str, text: str, at_ms: int) -> dict[str, Any]:
    body = log.LogDataBody(text=log.TextLog(text=text))
    tags = log.LogTags(data=[{"key": "level", "value": level}])
    message = log.LogData(timestamp=at_ms, service="back", body=body, tags=tags)
    of = {"service": "back", "instance": "b-1", "trace_id": "t1"}
    data = message.SerializeToString()
    return log_contract.log(data, at_ms, tags=[f"level={level}"], **of)


Run = Callable[..., list[str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs a command, which must succeed, and gives the lines it printed."""

    def lines(*arguments: str, url: str) -> list[str]:
        code = main(["query", *arguments, "--url", url])
        printed = capsys.readouterr()
        assert (code, printed.err) == (0, "")
        return printed.out.splitlines()

    return lines


@pytest.fixture
def fails(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Runs a command, which must fail with that code, and gives the one line it said."""

    def line(*arguments: str, code: int = 1) -> str:
        assert main(["query", *arguments]) == code
        printed = capsys.readouterr()
        assert printed.out == ""
        (said,) = printed.err.splitlines()
        return said.removeprefix("skyfarer: ")

    return line


def words(line: str) -> list[str]:
    return line.split()


def test_services_are_shown_with_their_figures_and_a_line_of_their_load(shop: str, run: Run):
    head, *rows = run("services", url=shop)
    assert words(head)[:6] == ["service", "layers", "load", "/min", "success", "%"]
    assert [words(row)[0] for row in rows] == sorted(words(row)[0] for row in rows)
    gateway = next(row for row in rows if row.startswith("gateway"))
    _, layer, load, success, latency, *_ = words(gateway)
    assert (layer, success) == ("GENERAL", "100")
    assert 600 < float(load) < 1100 and 30 < float(latency) < 70
    assert set(gateway) & set("▃▄▅▆▇█")
    mailer = next(row for row in rows if row.startswith("mailer"))
    assert 80 < float(words(mailer)[3]) < 100


def test_more_services_than_the_limit_are_counted(shop: str, run: Run):
    lines = run("services", "--limit", "2", url=shop)
    assert len(lines) == 4
    assert lines[-1] == "4 more: raise --limit"


def test_lists_may_be_had_as_json(shop: str, run: Run):
    found = json.loads("\n".join(run("services", "--json", "--layer", "GENERAL", url=shop)))
    first = found[0]
    assert first == {
        "id": ids.service_id("catalog"),
        "name": "catalog",
        "layers": ["GENERAL"],
        "normal": True,
    }
    assert json.loads("\n".join(run("services", "--json", "--layer", "MESH", url=shop))) == []


def test_json_has_no_more_than_the_limit_either(shop: str, run: Run):
    found = json.loads("\n".join(run("services", "--json", "--limit", "2", url=shop)))
    assert [one["name"] for one in found] == ["catalog", "checkout"]
    found = json.loads("\n".join(run("instances", "payment", "--json", "--limit", "1", url=shop)))
    assert [one["name"] for one in found] == ["payment-1"]


def test_instances_and_endpoints_of_a_service_are_listed_without_control_characters(
    shop: str, run: Run
):
    _, row = run("instances", "gateway", url=shop)
    assert words(row)[:2] == ["gateway-1", "PYTHON"]
    _, row = run("endpoints", "gateway", url=shop)
    assert row.startswith("GET:/ [31mred")
    assert run("endpoints", "gateway", "--keyword", "x", url=shop) == ["no endpoints in that time"]


def test_a_map_is_a_line_a_call(town: str, run: Run):
    head, *rows = run("topology", url=town)
    assert words(head) == ["from", "to", "type", "by", "answered", "by", "seen", "by"]
    assert [row.split() for row in rows] == [
        ["front", "back", "Tomcat", "HttpClient", "Tomcat", "client", "and", "server"],
        ["front", "db:1", "Mysql", "mysql-connector-java", "-", "client"],
    ]
    (only,) = run("topology", "--service", "back", url=town)[1:]
    assert words(only)[:2] == ["front", "back"]
    assert run("topology", "--layer", "MESH", url=town) == ["no calls in that time"]


def test_a_map_may_be_of_instances_and_of_an_endpoint(town: str, run: Run):
    _, row = run("topology", "--service", "front", "--to", "back", url=town)
    assert words(row)[:4] == ["front", "f-1", "back", "b-1"]
    _, row = run("topology", "--service", "back", "--endpoint", "/pay", url=town)
    assert words(row)[:4] == ["front", "/buy", "back", "/pay"]
    found = json.loads("\n".join(run("topology", "--service", "front", "--json", url=town)))
    assert {node["name"] for node in found["nodes"]} == {"front", "back", "db:1"}


def test_traces_are_listed_by_what_is_asked_of_them(town: str, run: Run):
    head, *rows = run("traces", url=town)
    assert words(head) == ["start", "ms", "state", "endpoint", "trace", "id"]
    assert [words(row) for row in rows] == [
        ["2026-11-15", "08:00:00.025", "50", "error", "/pay", "t1"],
        ["2026-11-15", "08:00:00.000", "100", "ok", "/buy", "t1"],
    ]

    def endpoints(*arguments: str) -> list[str]:
        return [words(row)[4] for row in run("traces", *arguments, url=town)[1:] if "t1" in row]

    assert endpoints("--order", "duration") == ["/buy", "/pay"]
    assert endpoints("--state", "error") == ["/pay"]
    assert endpoints("--service", "front", "--instance", "f-1") == ["/buy"]
    assert endpoints("--service", "back", "--endpoint", "/pay") == ["/pay"]
    assert endpoints("--tag", "http.method=GET") == ["/pay"]
    assert endpoints("--min-duration", "60") == ["/buy"]
    assert endpoints("--max-duration", "60") == ["/pay"]
    assert endpoints("--limit", "1", "--page", "2") == ["/buy"]
    assert run("traces", "--limit", "1", url=town)[-1] == "there may be more: --page 2"


def test_the_time_is_the_last_half_hour_unless_it_is_told(town: str, run: Run):
    def found(*arguments: str) -> int:
        lines = run("traces", *arguments, url=town)
        return sum("t1" in line for line in lines)

    assert found() == found("--last", "1h") == found("--last", "400d") == 2
    assert found("--last", "17m") == 0
    assert found("--start", "2026-11-15 08:00", "--end", "2026-11-15 08:01") == 2
    assert found("--start", "2026-11-15 0801") == 0
    assert found("--end", "2026-11-15 07:59:59") == 0
    assert found("--start", "2026-11-15") == found("--start", "2026-11-15 08") == 2


def test_a_trace_is_a_tree_with_bars(town: str, run: Run):
    title, head, front, back = run("trace", "t1", url=town)
    assert title == "trace t1: 100 ms, 2 spans, 2 services"
    assert words(head) == ["span", "service", "component", "at", "ms"]
    assert front.startswith("/buy (") and back.startswith("  /pay (")
    assert "+0" in words(front) and "+25" in words(back)
    assert "█" * 24 in front
    assert "·" * 6 + "█" * 12 + "·" * 6 in back and back.endswith("ERROR")
    spans = json.loads("\n".join(run("trace", "t1", "--json", url=town)))
    assert [span["segmentId"] for span in spans] == ["s1", "s2"]


def test_logs_are_lines_the_newest_last(town: str, run: Run):
    both = [
        "2026-11-15 08:00:00.000 WARN  back/b-1: it is slow",
        "2026-11-15 08:00:01.500 ERROR back/b-1: it failed",
    ]
    assert run("logs", url=town) == run("logs", "--service", "back", url=town) == both
    assert run("logs", "--tag", "level=ERROR", url=town) == both[1:]
    assert run("logs", "--keyword", "IT", "--keyword", "fail", url=town) == both[1:]
    assert run("logs", "--keyword", "error", url=town) == ["no logs like that in that time"]
    assert run("logs", "--trace", "t1", "--last", "1m", url=town) == both
    assert run("logs", "--last", "1m", url=town) == ["no logs like that in that time"]
    (first, _) = json.loads("\n".join(run("logs", "--json", url=town)))
    assert first["content"] == "it is\nslow"


def test_metrics_are_drawn_by_series(shop: str, run: Run):
    head, row = run("metrics", "service_cpm", "--service", "gateway", url=shop)
    assert words(head)[:5] == ["labels", "least", "average", "most", "last"]
    assert len(row.rstrip()) - row.index("▇") < 40
    least, mean, most = (float(text.replace(",", "")) for text in words(row)[1:4])
    assert least <= mean <= most
    points = run("metrics", "service_cpm", "--service", "gateway", "--points", url=shop)
    assert len(points) == 32
    assert words(points[1])[1:3] == ["2026-11-15", "07:47:00"]
    found = json.loads(
        "\n".join(run("metrics", "service_cpm", "--service", "gateway", "--json", url=shop))
    )
    assert found["type"] == "TIME_SERIES_VALUES"


@pytest.mark.parametrize(
    ("expression", "figures", "bars"),
    [
        ("service_cpm / 0", ["∞"] * 4, "█"),
        ("0 - service_cpm / 0", ["-∞"] * 4, "▁"),
        ("(service_cpm - service_cpm) / 0", ["NaN"] * 4, ""),
    ],
)
def test_values_without_an_end_and_those_that_are_no_numbers_are_drawn(
    shop: str, run: Run, expression: str, figures: list[str], bars: str
):
    _, row = run("metrics", expression, "--service", "gateway", url=shop)
    assert words(row)[1:5] == figures
    assert set("".join(words(row)[5:])) == set(bars)
    points = run("metrics", expression, "--service", "gateway", "--points", url=shop)
    assert words(points[-1])[-1] == figures[0]


def test_what_has_no_end_reaches_the_top_and_the_rest_keeps_its_scale():
    assert sparkline([inf, 8.0, 4.0, nan, None, -inf]) == "██▅  ▁"
    assert sparkline([inf, inf]) == "██"


def test_a_metric_of_something_else_has_no_values(shop: str, run: Run):
    (line,) = run("metrics", "endpoint_cpm", "--service", "gateway", url=shop)
    assert line.startswith("no values: ")


def test_a_name_that_nobody_has_is_told_with_the_nearest(shop: str, town: str, fails: Any):
    assert fails("instances", "gatewai", "--url", shop) == (
        "there is no service 'gatewai'; did you mean 'gateway'?"
    )
    assert "; there are catalog, checkout," in fails("instances", "x", "--url", shop)
    said = fails("traces", "--service", "front", "--instance", "f-2", "--url", town)
    assert said == "there is no instance 'f-2' of front in that time; did you mean 'f-1'?"
    said = fails("topology", "--service", "back", "--endpoint", "/none", "--url", town)
    assert said == "there is no endpoint '/none' of back"
    assert fails("trace", "t9", "--url", town) == "there is no trace 't9'"


def test_an_expression_that_cannot_be_evaluated_is_told_in_the_servers_words(shop: str, fails: Any):
    said = fails("metrics", "no_such_metric", "--service", "gateway", "--url", shop)
    assert said.startswith("no_such_metric: ")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["services", "--last", "soon"], "--last 'soon' is no time such as 45s"),
        (["services", "--last", "0m"], "--last '0m' is no time such as 45s"),
        (["services", "--last", "999999d"], "is no time such as 45s"),
        (["services", "--start", "8 o'clock"], "is no time such as '2026-11-15 08:30'"),
        (["services", "--start", "2026-11-16"], "--start 2026-11-16 is after the end"),
        (["services", "--last", "1h", "--start", "2026-11-15"], "say the same"),
        (["topology", "--start", "2020-01-01"], "that time is longer than 499 days"),
        (["topology", "--layer", "MESH", "--service", "a"], "--layer and --service are two maps"),
        (["topology", "--to", "b"], "--to and --endpoint need a --service"),
        (["traces", "--tag", "level"], "--tag 'level' is not like http.method=GET"),
        (["traces", "--instance", "i"], "--instance and --endpoint need a --service"),
        (["metrics", "service_cpm", "--to", "b"], "needs a --service"),
    ],
)
def test_a_wrong_command_line_is_one_sentence_and_code_2(
    town: str, fails: Any, arguments: list[str], says: str
):
    assert says in fails(*arguments, "--url", town, code=2)


def test_an_oap_that_is_not_there_is_told_with_what_to_do(fails: Any):
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        port = taken.getsockname()[1]
    said = fails("services", "--url", f"http://127.0.0.1:{port}")
    assert said.startswith(f"no OAP answers at http://127.0.0.1:{port}: ")
    assert said.endswith("start one with 'skyfarer oap start', or say where it is with --url")


def test_an_oap_that_is_starting_says_so(fails: Any):
    with serving(MemoryReader(), Health()) as url:
        assert fails("services", "--url", url) == (
            f"the OAP at {url} cannot answer now: the OAP is starting; try again in a moment"
        )


def test_what_the_oap_refuses_is_told_in_its_own_words(town: str, fails: Any):
    said = fails("traces", "--limit", "1000", "--page", "11", "--url", town)
    assert "refuses: page 11 of 1000 lies beyond the first 10000 traces" in said


@pytest.mark.parametrize(
    ("code", "body"), [(404, b"<html>"), (200, b"<html>"), (200, b"[]"), (200, b'{"data": 1}')]
)
def test_a_server_that_is_no_oap_is_recognised(fails: Any, code: int, body: bytes):
    class Stranger(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            self.send_response(code)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            """It has nothing to say."""

    with HTTPServer(("127.0.0.1", 0), Stranger) as server:
        Thread(target=server.handle_request, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}"
        assert fails("services", "--url", url).startswith(f"what answers at {url} is no OAP (")


def test_an_address_that_is_none_is_told(fails: Any, tmp_path: Path):
    for strange in ("nonsense", f"file://{tmp_path}", "http://a:b:c", "http://[", "http://a b"):
        said = fails("services", "--url", strange, code=2)
        assert said == f"--url '{strange}' is no address such as http://127.0.0.1:12800"
