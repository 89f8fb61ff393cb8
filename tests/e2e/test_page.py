"""The whole way once: agents → satellite → OAP → page, in a real browser.

`SKYFARER_SHOTS=docs/images` keeps the screenshot that the README shows (`make screenshots`).
"""

from __future__ import annotations

import asyncio
import os
import re
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random
from urllib.parse import parse_qs, urlsplit

import grpc
import pytest

from e2e.registering import Fire, Registry
from skyfarer.base.clock import SystemClock
from skyfarer.testing import reports
from skyfarer.testing.browser import Browser
from skyfarer.testing.programs import (
    SATELLITE_ANYWHERE,
    Oap,
    Program,
    free_port,
    ledger_since,
)
from skyfarer.testing.traffic import DemoTraffic

pytestmark = pytest.mark.e2e

MINUTES, AHEAD_MINUTES = 26, 8
TRACES_A_MINUTE = 40
METRICS = ("service_cpm", "service_resp_time", "service_percentile", "service_sla")
CHARTS = tuple(f".chart-{metric} canvas" for metric in METRICS)

CALLS = {"gateway → order", "order → stock"}


@pytest.fixture
def satellite_port(tmp_path: Path, oap: Oap) -> Iterator[int]:
    port = free_port()
    environ = {
        **SATELLITE_ANYWHERE,
        "SKYFARER_SATELLITE_DATA_DIR": str(tmp_path / "satellite"),
        "SATELLITE_GRPC_ADDRESS": f"127.0.0.1:{port}",
        "SATELLITE_GRPC_CLIENT": f"127.0.0.1:{oap.grpc_port}",
    }
    satellite = Program(["satellite", "start"], environ, tmp_path / "satellite.log")
    satellite.start()
    yield port
    assert satellite.stop() == 0


@pytest.fixture
def page_url(tmp_path: Path, oap: Oap) -> Iterator[str]:
    port = str(free_port())
    page = Program(["ui", "start", "--oap", oap.url, "--port", port], {}, tmp_path / "ui.log")
    page.start()
    yield f"http://127.0.0.1:{port}"
    assert page.stop() == 0


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[Browser]:
    browser = Browser(tmp_path / "profile")
    browser.start()
    yield browser
    browser.stop()


def send(port: int, minutes: int) -> int:
    """Lively minutes of the demo's shop with their logs, all at once; the number of records. Into
    the future too, so that a slow run has figures of its last minute."""
    traffic, now = DemoTraffic(Random(3), SystemClock()), int(time.time() * 1000)
    segments, lines = list[bytes](), list[bytes]()
    for minute in range(minutes, -1 - AHEAD_MINUTES, -1):
        lively = TRACES_A_MINUTE + 15 * (minute % 7) - 8 * (minute % 3)
        for number in range(lively):
            trace = traffic.trace(now - minute * 60_000 - number * 1_000)
            segments += [one.SerializeToString() for one in trace]
            lines += [one.SerializeToString() for one in reports.logs(trace)]
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        for service, records in (("TraceSegment", segments), ("Log", lines)):
            collect = channel.stream_unary(f"/skywalking.v3.{service}ReportService/collect")
            collect(iter(records), timeout=60)
    return len(segments) + len(lines)


def test_a_browser_shows_the_services_and_draws_their_charts(
    oap: Oap, satellite_port: int, page_url: str, browser: Browser, tmp_path: Path
) -> None:
    before = oap.ledger()
    sent = send(satellite_port, MINUTES)
    ledger = oap.await_applied(before["accepted"] + sent)
    added = ledger_since(before, ledger)
    assert (added["accepted"], added["dropped"]) == (sent, {})
    browser.resize(1280, 800)
    browser.open(f"{page_url}/?service=order")
    browser.wait_for(
        "the three services",
        lambda: {"gateway", "order", "stock"} <= set(browser.text(".row-name").splitlines()),
    )
    for chart in CHARTS:
        browser.wait_for("a drawn chart", lambda chart=chart: browser.ink(chart) > 500)
    assert browser.text(".detail-name") == "order"
    for table in ("slow", "busy"):
        browser.wait_for(
            "its endpoints",
            lambda table=table: "POST:/orders" in browser.text(f".{table}-endpoints"),
        )
    browser.wait_for("its instance", lambda: "order-1" in browser.text(".instances"))
    browser.wait_for("the ledger", lambda: f"{ledger['accepted']:,}" in browser.text(".ledger"))
    browser.wait_for("a balanced ledger", lambda: "balanced" in browser.text(".ledger"))
    shots = Path(os.environ.get("SKYFARER_SHOTS", tmp_path))
    browser.screenshot(shots / "services.png")
    see_the_map(browser, page_url, shots)
    see_a_failed_trace(browser, page_url, oap, shots)
    see_the_logs(browser, page_url, shots)
    see_the_pipeline(browser, page_url, oap, satellite_port, shots)
    see_the_registry(browser, page_url, oap, shots)
    assert browser.console_errors() == []
    assert {urlsplit(address).hostname for address in browser.addresses()} <= {"127.0.0.1"}


def called(browser: Browser) -> set[str]:
    return {" ".join(line.split()) for line in browser.texts(".call-ends")}


def see_the_map(browser: Browser, page_url: str, shots: Path) -> None:
    browser.open(f"{page_url}/map?last=1h")
    browser.wait_for("the calls", lambda: called(browser) >= CALLS)
    browser.wait_for("a drawn map", lambda: browser.ink(".map canvas") > 500)
    browser.screenshot(shots / "map.png")


def see_a_failed_trace(browser: Browser, page_url: str, oap: Oap, shots: Path) -> None:
    """From the search to the waterfall of the slowest that failed, by clicks."""
    browser.open(f"{page_url}/traces?service=order&state=ERROR&order=BY_DURATION&last=1h")
    browser.wait_for("failed traces", lambda: browser.text(".trace-row"))
    lines = browser.text(".trace-row .chip").splitlines()
    assert set(lines) == {"failed"}
    browser.screenshot(shots / "traces.png")
    browser.click(".trace-row")
    browser.wait_for("the waterfall", lambda: browser.text(".fall-text"))
    spans = oap.trace(parse_qs(urlsplit(browser.url()).query)["id"][0])
    shown = browser.text(".fall-text").splitlines()
    assert sorted(shown) == sorted(span["endpointName"] or span["type"] for span in spans)
    assert f"{len(spans)} spans" in browser.text(".detail-note")
    browser.click(".fall:has(.fall-bar.failed)")
    browser.wait_for("the span", lambda: "failed" in browser.text(".span"))
    browser.screenshot(shots / "trace.png")


def see_the_logs(browser: Browser, page_url: str, shots: Path) -> None:
    """All of a service but the quiet ones, each with the way to its trace."""
    browser.open(f"{page_url}/logs?service=order&excluding=taken&last=1h")
    texts = browser.wait_for("the logs", lambda: browser.texts(".log-text"))
    assert all(re.search("failed after [0-9]+ ms|slow statement, [0-9]+ ms", one) for one in texts)
    assert set(browser.texts(".log-service")) == {"order"}
    assert set(browser.texts(".log-trace")) == {"trace"}
    browser.screenshot(shots / "logs.png")


def see_the_pipeline(
    browser: Browser, page_url: str, oap: Oap, satellite_port: int, shots: Path
) -> None:
    """What the node says of itself, with every table filled, while more arrives."""

    def rate() -> float:
        text = browser.text(".figure-rate .figure-value").replace(",", "")
        return 0.0 if text == "–" else float(text)

    browser.open(f"{page_url}/pipeline")
    browser.wait_for("a first rate", lambda: browser.text(".figure-rate .figure-value") == "0.0")
    accepted = oap.ledger()["accepted"] + send(satellite_port, 3)
    browser.wait_for("a rate", lambda: rate() > 0)
    oap.await_applied(accepted)
    browser.wait_for("all of them", lambda: f"{accepted:,}" in browser.text(".books-whole"))
    told = oap.status("pipeline")
    books = told["ledger"]
    assert f"{books['accepted']:,}" in browser.text(".books-whole")
    assert browser.text(".books .verdict") == "balanced"
    (node,) = oap.status("cluster/nodes")["nodes"]
    assert f"{node['host']}:{node['port']}" in browser.text(".cluster")
    segments = next(row for row in browser.texts(".stored-rows .small-row") if "segment" in row)
    assert int(segments.split()[-1].replace(",", "")) >= MINUTES * TRACES_A_MINUTE
    assert "queues of satellites seen" in browser.text(".satellites")
    assert told["storage"]["provider"] in browser.text(".detail-note")
    assert " MB" in browser.text(".processes")
    browser.wait_for("a drawn chart", lambda: browser.ink(".chart-delays canvas") > 300)
    browser.screenshot(shots / "pipeline.png")


def see_the_registry(browser: Browser, page_url: str, oap: Oap, shots: Path) -> None:
    """What old agents were given ids for, beside what other tests of this OAP have registered."""
    told = asyncio.run(register(oap, ["old-gateway", "old-order", "old-stock"]))
    browser.open(f"{page_url}/registry?keyword=old-")
    browser.wait_for("the services", lambda: set(told) <= set(browser.texts(".registry-name")))
    rows = oap.status("registry?keyword=old-")["rows"]
    ids = browser.texts(".registry-row:not(.registry-heads) .registry-id")
    shown = dict(zip(browser.texts(".registry-name"), ids, strict=True))
    assert shown == {row["name"].strip(): str(row["id"]) for row in rows}
    assert {name: shown[name] for name in told} == {name: str(one) for name, one in told.items()}
    browser.screenshot(shots / "registry.png")


async def register(oap: Oap, services: list[str]) -> dict[str, int]:
    """Their ids, as each is told."""
    async with grpc.aio.insecure_channel(f"127.0.0.1:{oap.grpc_port}") as channel:
        return await Fire(oap.grpc_port).insist(Registry(channel).services, services)
