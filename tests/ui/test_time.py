"""The time that is looked at, in a real browser: chosen on any page, and kept from page to page."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest

from skyfarer.testing.browser import Browser
from ui.shop import FILLED, ShopPages

PICKER = ".picker > .q-field"
FROM, TO = '[aria-label="From"]', '[aria-label="To"]'
RIGHT = "\ue014"
# What the first chart has on its axis: the first and the last minute.
_CHARTED = """
const chart = getElement(Number(document.querySelector(".chart .canvas").id.slice(1))).chart;
const times = chart.getOption().xAxis[0].data;
return [times[0], times.at(-1)];
"""
_VALUE = "return document.querySelector(arguments[0])?.value"

Times = tuple[datetime, datetime]


@pytest.fixture
def times(shop_pages: ShopPages) -> Times:
    """Of the shop's; over when it is looked at, and without its logs."""
    filled = datetime.fromtimestamp(shop_pages.filled_ms / 1_000, UTC)
    return filled - timedelta(minutes=7), filled - timedelta(minutes=4)


@pytest.fixture(autouse=True)
def silent_and_at_home(browser: Browser) -> Iterator[None]:
    browser.resize(1280, 900)
    yield
    assert browser.console_errors() == []
    assert {urlsplit(address).hostname for address in browser.addresses()} <= {"127.0.0.1"}


def spelt(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M")


def address(times: Times) -> dict[str, str]:
    return {"start": spelt(times[0]), "end": spelt(times[1])}


def query(browser: Browser) -> dict[str, str]:
    return {name: one for name, [one] in parse_qs(urlsplit(browser.url()).query).items()}


def choose(browser: Browser, words: str) -> None:
    browser.click(PICKER)
    browser.wait_for("the choices", lambda: words in browser.texts(".q-item"))
    browser.click(f".q-item:nth-child({browser.texts('.q-item').index(words) + 1})")


def enter(browser: Browser, field: str, moment: datetime) -> None:
    """Part by part, as the field has them; the year may have six digits, so it has to be left."""
    browser.type(field, moment.strftime(f"%m%d%Y{RIGHT}%I%M%p"))
    browser.wait_for("the moment", lambda: browser.script(_VALUE, field) == spelt(moment))


@pytest.mark.parametrize("path", ["/", "/map", "/traces", "/logs"])
def test_from_one_minute_to_another_is_chosen_and_told_in_the_address(
    browser: Browser, shop_pages: ShopPages, times: Times, path: str
) -> None:
    shop_pages.open(browser, path)
    choose(browser, "from … to …")
    enter(browser, FROM, times[0])
    enter(browser, TO, times[1])
    browser.wait_for("its address", lambda: address(times).items() <= query(browser).items())
    browser.wait_for("what it shows", lambda: shows(browser, path, times))
    browser.open(browser.url())
    browser.wait_for("the same again", lambda: shows(browser, path, times))
    assert [browser.script(_VALUE, field) for field in (FROM, TO)] == list(address(times).values())


def shows(browser: Browser, path: str, times: Times) -> bool:
    """Whether the page shows what happened in that time, and nothing else."""
    if path == "/":
        ends = [one.strftime("%H:%M") for one in times]
        return bool(browser.text(".chart")) and browser.script(_CHARTED) == ends
    if path == "/map":
        return "gateway → order" in " ".join(browser.text(".call-ends").split())
    if path == "/traces":
        seen = [one[:11] for one in browser.texts(".trace-start")]
        ends = [one.strftime("%m-%d %H:%M") for one in times]
        return bool(seen) and all(ends[0] <= one <= ends[1] for one in seen)
    words = " to ".join(one.strftime("%Y-%m-%d %H:%M") for one in times)
    return f"No log from {words}." in browser.text(".missing")


@pytest.mark.parametrize("path", ["/", "/map", "/traces", "/logs"])
def test_a_length_is_chosen_on_any_page(browser: Browser, shop_pages: ShopPages, path: str) -> None:
    shop_pages.open(browser, path)
    choose(browser, "last 6 hours")
    browser.wait_for("its address", lambda: query(browser).get("last") == "6h")
    assert browser.text(FILLED[path])


def test_whoever_moves_on_looks_at_the_same_time(
    browser: Browser, shop_pages: ShopPages, times: Times
) -> None:
    """From page to page by clicks alone, and by keys."""

    def arrived(path: str) -> bool:
        here = urlsplit(browser.url()).path == path
        return here and address(times).items() <= query(browser).items()

    browser.open(f"{shop_pages.url}map?{urlencode(address(times))}")
    steps = {
        ".call-end:last-child": "/",
        ".detail-head a[href^='/traces']": "/traces",
        ".trace-row": "/trace",
        ".place[data-key=p]": "/pipeline",
        ".place[data-key=r]": "/registry",
        ".place[data-key=l]": "/logs",
        ".place[data-key=m]": "/map",
    }
    for link, path in steps.items():
        browser.click(link)
        browser.wait_for(path, lambda path=path: arrived(path))
    browser.wait_for("keys", lambda: browser.script("return window.skyfarerKeys === true"))
    browser.press("g", "s")
    browser.wait_for("the services", lambda: arrived("/"))


def test_the_top_keeps_a_time_that_was_chosen_since(
    browser: Browser, shop_pages: ShopPages
) -> None:
    shop_pages.open(browser, "/traces")
    choose(browser, "last day")
    browser.wait_for("its address", lambda: query(browser).get("last") == "1d")
    browser.click(".place[data-key=m]")
    browser.wait_for("the map", lambda: urlsplit(browser.url()).path == "/map")
    assert query(browser) == {"last": "1d"}


def test_the_usual_time_is_in_no_link(browser: Browser, shop_pages: ShopPages) -> None:
    shop_pages.open(browser, "/map")
    browser.click(".place[data-key=s]")
    browser.wait_for("the services", lambda: urlsplit(browser.url()).path == "/")
    assert urlsplit(browser.url()).query == ""
