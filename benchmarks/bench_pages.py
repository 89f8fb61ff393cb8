"""How soon a page is there: the browser's own first contentful paint, of every page that the top
leads to and of a trace, on half an hour of the demo's traffic in a whole OAP.

Cold is a browser that has none of the files, warm one that has been there before; in turns, so that
whatever else the machine does befalls both. When the page shows what it was opened for is told
beside it, to a tenth of a second.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random

import grpc

from figures import figure
from skyfarer.base.clock import SystemClock
from skyfarer.testing.browser import Browser
from skyfarer.testing.programs import Oap, Program, free_port
from skyfarer.testing.traffic import DemoTraffic
from skyfarer.ui.header import PLACES
from skyfarer.wire.messages import log

ROUNDS = 5
MINUTES = 30
TRACES_A_MINUTE = 60
PAINT_S_MAX = 1.0
COLD, WARM = "cold", "warm"
FILLED = {
    "/": ".instances .small-row",
    "/map": ".call-row",
    "/traces": ".trace-row",
    "/trace": ".fall",
    "/logs": ".log-row",
}
"""What is there last; of a page that is not known here, the time."""
_PAINT = "return performance.getEntriesByName('first-contentful-paint')[0].startTime / 1000"
_NOW = "return performance.now() / 1000"


def fill(oap: Oap) -> str:
    """With segments and a log of each trace; the id of a trace."""
    traffic, now_ms = DemoTraffic(Random(5), SystemClock()), int(time.time() * 1000)
    segments, logs = list[bytes](), list[bytes]()
    for number in range(MINUTES * TRACES_A_MINUTE):
        trace = traffic.trace(now_ms - number * 60_000 // TRACES_A_MINUTE)
        segments += [one.SerializeToString() for one in trace]
        body = log.LogDataBody(text=log.TextLog(text=f"order {number} was taken"))
        told = {"service": "order", "timestamp": trace[0].spans[-1].startTime, "body": body}
        context = log.TraceContext(traceId=trace[0].traceId)
        logs.append(log.LogData(**told, traceContext=context).SerializeToString())
    with grpc.insecure_channel(f"127.0.0.1:{oap.grpc_port}") as channel:
        for service, sent in (("TraceSegmentReport", segments), ("LogReport", logs)):
            collect = channel.stream_unary(f"/skywalking.v3.{service}Service/collect")
            collect(iter(sent), timeout=120)
    oap.await_applied(len(segments) + len(logs))
    return trace[0].traceId


def opened(browser: Browser, url: str, path: str) -> tuple[float, float]:
    """Seconds until the first paint, and until the page shows what it is for."""
    browser.open(url)
    browser.wait_for("the time", lambda: ":" in browser.text(".time"))
    browser.wait_for(f"all of {path}", lambda: browser.text(FILLED.get(path, ".time")))
    return browser.script(_PAINT), browser.script(_NOW)


def measured(browser: Browser, url: str, trace_id: str) -> Iterator[tuple[str, str, float, float]]:
    """(page, cold or warm, first paint, filled), round by round; the first is thrown away."""
    queries = {"/": "?service=order", "/trace": f"?id={trace_id}"}
    for number in range(ROUNDS + 1):
        for path in (*PLACES, "/trace"):
            browser.forget_files()
            for how in (COLD, WARM):
                times = opened(browser, f"{url}{path}{queries.get(path, '')}", path)
                if number:
                    yield path.strip("/") or "services", how, *times


def main() -> None:
    spent: dict[tuple[str, str], list[tuple[float, float]]] = {}
    with tempfile.TemporaryDirectory() as scratch:
        directory, port = Path(scratch), free_port()
        oap, browser = Oap(directory), Browser(directory / "profile")
        pages = Program(
            ["ui", "start", "--oap", oap.url, "--port", str(port)], {}, directory / "ui.log"
        )
        try:
            oap.start()
            trace_id = fill(oap)
            pages.start()
            browser.start()
            browser.resize(1280, 900)
            for page, how, *times in measured(browser, f"http://127.0.0.1:{port}", trace_id):
                spent.setdefault((page, how), []).append((times[0], times[1]))
        finally:
            browser.stop()
            pages.kill()
            oap.kill()
    for (page, how), times in spent.items():
        paint_s, filled_s = (statistics.median(some) for some in zip(*times, strict=True))
        figure(f"page_{page}_first_paint_{how}", paint_s, "s", at_most=PAINT_S_MAX)
        figure(f"page_{page}_filled_{how}", filled_s, "s")


if __name__ == "__main__":
    main()
