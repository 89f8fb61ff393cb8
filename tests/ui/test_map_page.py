"""The map in a real browser: how a service fares is told by more than a colour."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest

from skyfarer.base.clock import SystemClock
from skyfarer.oap.core.time_bucket import MINUTE_MS
from skyfarer.testing import traces
from skyfarer.testing.browser import Browser
from skyfarer.ui.api import OapClient
from skyfarer.ui.map.api import CALLS_MAX, whole_map
from skyfarer.ui.map.chart import facts, options
from skyfarer.ui.map.model import Call, Map, Node, State, Vital
from skyfarer.ui.window import Window
from skyfarer.wire.messages import SegmentObject
from ui.accessibility import Axe
from ui.serving import pages_of
from ui.town import Town

AHEAD_MINUTES = 20
LONG_AGO_MS = SystemClock().now_ms() - 300 * MINUTE_MS
GOOD, SLOW, FAILING = Vital(60, 20, 10_000), Vital(60, 1_000, 10_000), Vital(60, 2_000, 9_899)
# Of each node, by its name: the share of its edge that has the colour of ink, all in greys.
_INKED_EDGES = """
const chart = getElement(Number(document.querySelector(".map .canvas").id.slice(1))).chart;
const canvas = document.querySelector(".map canvas");
const copy = document.createElement("canvas");
[copy.width, copy.height] = [canvas.width, canvas.height];
const brush = copy.getContext("2d", { willReadFrequently: true });
brush.drawImage(canvas, 0, 0);
const grey = ([red, green, blue]) => 0.299 * red + 0.587 * green + 0.114 * blue;
brush.fillStyle = getComputedStyle(document.body).getPropertyValue("--ink");
brush.fillRect(0, 0, 1, 1);
const ink = grey(brush.getImageData(0, 0, 1, 1).data);
const zoom = canvas.width / canvas.clientWidth;
return Object.fromEntries(chart.getOption().series[0].data.map((node) => {
  const [x, y] = chart.convertToPixel({ seriesIndex: 0 }, [node.x, node.y]);
  let inked = 0;
  for (let n = 0; n < 100; n++) {
    const turn = (n * Math.PI) / 50, radius = node.symbolSize / 2;
    const at = [x + radius * Math.cos(turn), y + radius * Math.sin(turn)].map((p) => p * zoom);
    const pixel = brush.getImageData(...at.map(Math.round), 1, 1).data;
    if (pixel[3] > 200 && Math.abs(grey(pixel) - ink) < 20) inked++;
  }
  return [node.name, inked];
}));
"""


_DARK = "return document.body.classList.contains('body--dark')"
# Where a node is, from the canvas' left and top.
_PLACE_OF = """
const chart = getElement(Number(document.querySelector(".map .canvas").id.slice(1))).chart;
const node = chart.getOption().series[0].data.find((one) => one.name === arguments[0]);
return chart.convertToPixel({ seriesIndex: 0 }, [node.x, node.y]);
"""


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Town]:
    """Into the future too, so that a slow run never reaches the end."""
    town = Town(tmp_path_factory.mktemp("map"))
    town.start()
    now_ms = SystemClock().now_ms()
    minutes = range(-3, AHEAD_MINUTES)
    town.put([one for minute in minutes for one in _calls(now_ms + minute * MINUTE_MS)])
    town.put([one for _ in range(7) for one in _crowd(LONG_AGO_MS)])
    yield town
    town.stop()


@pytest.fixture(scope="module")
def url(town: Town) -> Iterator[str]:
    with pages_of(town.url) as url:
        yield url + "map"


def _crowd(at_ms: int) -> list[SegmentObject]:
    """Each of 21 calls each of 10."""
    exits = [traces.Exit("/", f"called-{number}:80", 1, 5) for number in range(10)]
    names = [f"caller-{number:02d}" for number in range(21)]
    return [traces.segment(name, f"{name}-1", "/", at_ms, 30, exits=exits) for name in names]


def long_ago() -> Window:
    """A time that is over; the crowd is in its last minute."""
    end = datetime.fromtimestamp(LONG_AGO_MS / 1_000, UTC)
    start = end - timedelta(minutes=3)
    return Window.of("", *(one.strftime("%Y-%m-%dT%H:%M") for one in (start, end)))


class Heard(OapClient):
    """Remembers the durations that it asked for."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.durations = list[dict[str, str]]()

    async def graphql(self, query: str, variables: Mapping[str, Any]) -> dict[str, Any]:
        self.durations += [variables["duration"]] if "duration" in variables else []
        return await super().graphql(query, variables)


def map_of(town: Town, window: Window) -> tuple[Map, list[dict[str, str]]]:
    async def once() -> tuple[Map, list[dict[str, str]]]:
        client = Heard(town.url)
        try:
            found = await whole_map(client, (await client.status()).time, window)
        finally:
            await client.stop()
        return found, client.durations

    return asyncio.run(once())


def _calls(at_ms: int) -> list[SegmentObject]:
    exits = [traces.Exit("/", peer, 1, 5) for peer in ("sluggish:80", "broken:80")]
    database = traces.database("db:5432", "SELECT 1", 1, 5)
    front = traces.segment("front", "front-1", "/", at_ms, 40, exits=[*exits, database])
    called = {"sluggish": (1, 1_500, False), "broken": (2, 10, True)}
    return [
        front,
        *(
            traces.segment(
                *(name, f"{name}-1", "/", at_ms + 2, latency_ms, failed),
                trace_id=front.traceId,
                callers=[traces.caller(front, span)],
            )
            for name, (span, latency_ms, failed) in called.items()
        ),
    ]


@pytest.fixture(autouse=True)
def silent_and_at_home(browser: Browser, url: str) -> Iterator[None]:
    yield
    assert browser.console_errors() == []
    assert {urlsplit(address).hostname for address in browser.addresses()} <= {"127.0.0.1"}


@pytest.fixture
def drawn(browser: Browser, url: str) -> Browser:
    browser.resize(1280, 900)
    browser.open(url)
    browser.wait_for("the calls", lambda: len(browser.texts(".call-row")) >= 3)
    browser.wait_for("the map", lambda: browser.ink(".map canvas") > 1_000)
    return browser


def test_in_greys_the_edge_of_a_node_and_a_word_tell_its_state(drawn: Browser, shots: Path) -> None:
    drawn.screenshot(shots / "map-states-1280.png")
    inked = drawn.script(_INKED_EDGES)
    assert inked.keys() >= {"front", "sluggish · slow", "broken · failing", "db:5432"}
    assert inked["broken · failing"] > 90
    assert 20 < inked["sluggish · slow"] < 85
    assert inked["front"] < 10
    assert inked["db:5432"] < 10


def test_a_legend_says_what_the_signs_mean_and_who_has_them_now(drawn: Browser, axe: Axe) -> None:
    assert drawn.texts(".legend:first-child .legend-sign") == [
        "with an agent",
        "without an agent",
        "slow: from 1.00 s on average",
        "failing: below 99 % success",
    ]
    assert drawn.text(".now-failing").split() == ["failing", "now:", "broken"]
    assert drawn.text(".now-slow").split() == ["slow", "now:", "sluggish"]
    for dark in (False, True):
        drawn.resize(390, 900, dark=dark)
        assert axe.faults(drawn) == []
        assert drawn.script("return document.documentElement.scrollWidth") <= 390


def test_who_is_failing_is_one_click_away(drawn: Browser) -> None:
    drawn.click(".now-failing a")
    drawn.wait_for("the service", lambda: drawn.text(".detail-name") == "broken")


@pytest.mark.parametrize("name", ["sluggish · slow", "db:5432"])
def test_a_click_on_a_node_of_the_graph_leads_to_its_service_and_keeps_the_time(
    browser: Browser, url: str, name: str
) -> None:
    browser.resize(1280, 900)
    browser.open(url + "?last=1h")
    browser.wait_for("the map", lambda: browser.ink(".map canvas") > 1_000)
    browser.click_at(".map canvas", *browser.script(_PLACE_OF, name))
    service = name.split(" ")[0]
    browser.wait_for("the service", lambda: browser.text(".detail-name") == service)
    query = parse_qs(urlsplit(browser.url()).query)
    assert query == {"service": [service], "last": ["1h"]}


def test_a_click_beside_the_nodes_leads_nowhere(drawn: Browser) -> None:
    before = drawn.url()
    drawn.click_at(".map canvas", 5, 5)
    x, y = (
        sum(both) / 2
        for both in zip(
            drawn.script(_PLACE_OF, "front"), drawn.script(_PLACE_OF, "db:5432"), strict=True
        )
    )
    drawn.click_at(".map canvas", x, y)
    drawn.click(".theme")
    drawn.wait_for("the other theme", lambda: drawn.script(_DARK))
    assert drawn.url() == before
    drawn.click(".theme")
    drawn.wait_for("the first", lambda: not drawn.script(_DARK))


def test_a_database_has_the_figures_of_the_calls_to_it_and_what_nobody_measures_none(
    town: Town,
) -> None:
    found, _ = map_of(town, Window())
    vitals = {node.name: node.vital for node in found.nodes}
    assert vitals["db:5432"] == Vital(1, 5, 10_000)
    assert vitals["front"] == Vital(1, 40, 10_000)
    assert vitals["User"] is None
    assert facts(vitals["User"], "minute") == "known by its calls alone"


def test_a_time_that_is_over_has_the_figures_of_its_end(town: Town) -> None:
    window = long_ago()
    found, asked = map_of(town, window)
    assert {node.vital for node in found.nodes if node.has_agent} == {Vital(7, 30, 10_000)}
    assert {node.vital for node in found.nodes if not node.has_agent} == {None}
    assert {call.vital for call in found.calls if "User" not in call.id} >= {Vital(7, 5, 10_000)}
    assert window.fixed is not None
    assert {one["end"] for one in asked} == {window.fixed[1].strftime("%Y-%m-%d %H%M")}


def test_a_long_time_is_read_by_the_hour(town: Town) -> None:
    found, asked = map_of(town, Window.of("7d"))
    assert {one["step"] for one in asked} == {"HOUR"}
    assert found.step == "hour"
    assert facts(Vital(), found.step) == "no calls in the last hour"


def test_how_many_calls_are_not_drawn_is_said(browser: Browser, url: str) -> None:
    browser.open(f"{url}?{urlencode(long_ago().address())}")
    told = browser.wait_for("the count", lambda: browser.text(".map-head > .muted"))
    assert told.split(" · ") == [
        f"32 services, {CALLS_MAX} calls, 31 more calls are not drawn",
        "figures of the last full minute",
    ]


def test_the_state_of_a_conjectured_service_leaves_its_shape() -> None:
    whole = Map(
        tuple(
            Node(f"{real}{vital.state}", "n", "", real, vital)
            for real in (True, False)
            for vital in (GOOD, SLOW, FAILING)
        ),
        (),
    )
    data = options(whole)["series"][0]["data"]
    assert [one["symbol"] for one in data] == ["circle"] * 3 + ["roundRect"] * 3
    assert [one["name"] for one in data] == ["n", "n · slow", "n · failing"] * 2
    borders = [one["itemStyle"].get("borderType") for one in data]
    assert borders == [None, "dashed", "solid"] * 2


def test_a_call_that_fails_has_a_word_beside_its_number() -> None:
    nodes = tuple(Node(name, name, "", True, GOOD) for name in "ab")
    calls = (Call("1", "a", "b", True, FAILING), Call("2", "b", "a", True, GOOD))
    links = options(Map(nodes, calls))["series"][0]["links"]
    assert [one["label"]["formatter"] for one in links] == ["60 failing", "60"]
    assert [one.vital.state for one in calls] == [State.FAILING, State.GOOD]
