"""Every page there is, wide and narrow, in light and dark: what it shows, and what axe says of it.

The pages are those that the application registers: a new one is looked at without being named here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from urllib.parse import urlsplit

import pytest

from skyfarer.testing.browser import Browser
from skyfarer.ui.header import PLACES
from ui.accessibility import Axe
from ui.serving import pages_of, registered
from ui.shop import ShopPages
from ui.town import Town

WIDTHS = (1280, 390)
TAB = "\ue004"
MENU_REGION = "region at #q-portal--menu"
CONTENT = {
    "/": ("order", "POST:/orders", "GET:/orders/{id}", "order-1@10.0.2.1", "gateway"),
    "/map": ("gateway → order", "order → stock", "order → postgresql.shop:5432"),
    "/traces": ("POST:/checkout", "GET:/orders/{id}", "page 1"),
    "/trace": ("POST:/checkout", "PostgreSQL/JDBC/execute", "5 failed", "error of the order"),
    "/logs": ("error of the order in lines", "ERROR", "WARN", "INFO", "order"),
    "/pipeline": ("Accepted 2", "= delivered to storage 2", "Cluster", "Expiry", "balanced"),
    "/registry": ("old-shop", "page 1"),
}
NOTHING_YET = {
    **dict.fromkeys(("/", "/map", "/traces", "/logs"), (".empty", "agent at localhost:11800")),
    "/pipeline": (".missing", "satellite at localhost:11800"),
    "/registry": (".missing", "newer ones send names, and are on the page Services"),
}
"""Of an OAP that was told to the pages as `localhost`: where it stands, and what."""
_DARK = "return document.body.classList.contains('body--dark')"
_SPOKEN = """
return [...document.querySelectorAll("[role=img]")].map((drawing) => drawing.ariaLabel);
"""
_FOCUSED = "return document.activeElement.ariaLabel || document.activeElement.innerText"
_FAULTY = """
document.querySelector(".page").append(document.createElement("input"));
const pale = document.createElement("p");
pale.textContent = "pale";
pale.style.color = document.body.classList.contains("body--dark") ? "#333" : "#ddd";
document.querySelector(".page").append(pale);
"""


@dataclass(frozen=True)
class Look:
    faults: list[str]
    text: str
    scroll_width: int
    is_dark: bool
    drawings: list[str]


Looks = dict[tuple[str, int, bool], Look]


@pytest.fixture(scope="module")
def looks(browser: Browser, shop_pages: ShopPages, axe: Axe) -> Looks:
    """At each page four times, opened once: the browser tells it what has changed."""
    found: Looks = {}
    for path in registered():
        browser.resize(1280, 900)
        shop_pages.open(browser, path)
        for width, dark in product(WIDTHS, (False, True)):
            browser.resize(width, 900, dark=dark)
            found[path, width, dark] = look(browser, axe, dark)
    return found


def look(browser: Browser, axe: Axe, dark: bool) -> Look:
    browser.wait_for("the colours", lambda: browser.script(_DARK) is dark)
    return Look(
        axe.faults(browser),
        " ".join(browser.text().split()),
        browser.script("return document.documentElement.scrollWidth"),
        browser.script(_DARK),
        browser.script(_SPOKEN),
    )


@pytest.fixture(autouse=True)
def silent_and_at_home(browser: Browser) -> Iterator[None]:
    yield
    assert browser.console_errors() == []
    assert {urlsplit(address).hostname for address in browser.addresses()} <= {"127.0.0.1"}


def test_the_pages_that_the_top_leads_to_and_that_of_a_trace_are_looked_at(looks: Looks) -> None:
    assert {path for path, *_ in looks} >= {*PLACES, *CONTENT}


def test_axe_finds_no_fault_on_any_page(looks: Looks) -> None:
    assert {where: look.faults for where, look in looks.items() if look.faults} == {}


def test_every_page_shows_what_was_sent(looks: Looks) -> None:
    lacking = {
        (where, text)
        for where, look in looks.items()
        for text in CONTENT.get(where[0], ())
        if text not in look.text
    }
    assert lacking == set()


def test_no_page_scrolls_sideways(looks: Looks) -> None:
    assert {w: look.scroll_width for w, look in looks.items() if look.scroll_width > w[1]} == {}


def test_every_drawing_says_in_words_what_it_shows(looks: Looks) -> None:
    charts, bars = looks["/", 1280, False].drawings, looks["/trace", 1280, False].drawings
    assert len(charts) == 4
    assert charts[0].startswith("Calls per minute over time: ")
    assert "p50 " in charts[2] and "p99 " in charts[2] and " ms, lately " in charts[2]
    assert charts[3].endswith(" %")
    assert looks["/map", 1280, False].drawings == [
        "A map of 7 services and 10 calls between them, which are listed below"
    ]
    assert bars[:2] == ["failed", "from 0% to 100% of the trace, on the critical path"]


def test_a_fault_made_on_purpose_is_found(
    browser: Browser, shop_pages: ShopPages, axe: Axe
) -> None:
    shop_pages.open(browser, "/map")
    browser.script(_FAULTY)
    rules = {fault.split(" at ")[0] for fault in axe.faults(browser)}
    assert rules == {"label", "color-contrast"}


def test_the_tab_key_goes_through_the_top_and_then_through_the_page(
    browser: Browser, shop_pages: ShopPages
) -> None:
    browser.resize(1280, 900)
    shop_pages.open(browser, "/")
    reached = list[str]()
    for _ in range(len(PLACES) + 5):
        browser.type("body", TAB)
        reached.append(browser.script(_FOCUSED).splitlines()[0])
    names = [name for name, _ in PLACES.values()]
    assert reached == [*names, "Auto-refresh", "Keys", "Light or dark", "gateway", "order"]


def test_axe_finds_no_fault_where_something_is_open_chosen_or_not_found(
    browser: Browser, shop_pages: ShopPages, axe: Axe
) -> None:
    found = dict[str, list[str]]()
    browser.resize(1280, 900)
    shop_pages.open(browser, "/trace")
    browser.click(".fall:has(.fall-bar.failed)")
    browser.wait_for("the span", lambda: "failed" in browser.text(".span"))
    found["a span"] = axe.faults(browser)
    shop_pages.open(browser, "/traces")
    browser.click(".field")
    browser.wait_for("the choices", lambda: browser.text(".q-menu .q-item"))
    # A menu that is open stands over the page, beside its regions.
    found["choices"] = [one for one in axe.faults(browser) if not one.startswith(MENU_REGION)]
    shop_pages.open(browser, "/map")
    browser.click(".keys")
    browser.wait_for("the keys", lambda: browser.text("dialog.help"))
    found["keys"] = axe.faults(browser)
    for path in (
        "?service=nobody",
        "trace?id=none",
        "logs?start=2026-01-01T00:00&end=2026-01-01T01:00",
    ):
        browser.open(shop_pages.url + path)
        browser.wait_for("a sentence", lambda: browser.text(".missing"))
        found[path] = axe.faults(browser)
    assert {where: faults for where, faults in found.items() if faults} == {}


def test_each_page_says_what_to_do_while_there_is_nothing_and_while_the_oap_is_away(
    browser: Browser, axe: Axe, tmp_path_factory: pytest.TempPathFactory
) -> None:
    town = Town(tmp_path_factory.mktemp("empty"))
    town.start()
    empty = dict[str, list[str]]()
    with pages_of(town.url.replace("127.0.0.1", "localhost")) as url:
        browser.resize(1280, 900)
        for path, (where, words) in NOTHING_YET.items():
            browser.open(url + path.lstrip("/"))
            browser.wait_for(f"the advice of {path}", lambda w=where, t=words: t in browser.text(w))
            assert "longer" not in browser.text()
            empty[path] = axe.faults(browser)
        town.stop()
        browser.wait_for("the banner", lambda: "No answer from the OAP" in browser.text(".banner"))
        away = axe.faults(browser)
        browser.open("about:blank")
    assert ({path: faults for path, faults in empty.items() if faults}, away) == ({}, [])
