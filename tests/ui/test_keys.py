"""The pages by keyboard alone, in a real browser."""

from __future__ import annotations

import time
from urllib.parse import urlsplit

import pytest

from skyfarer.testing.memory_reader import SHOP
from skyfarer.ui.frame import REFRESH_S

PLACES = {
    "s": ("/", "Services"),
    "m": ("/map", "Map"),
    "t": ("/traces", "Traces"),
    "l": ("/logs", "Logs"),
    "p": ("/pipeline", "Pipeline"),
    "r": ("/registry", "Registry"),
}
NAMES = sorted(service[0] for service in SHOP)
FOCUSED = "return document.activeElement.innerText.trim().split('\\n')[0]"
IN_SEARCH = "return document.activeElement.matches('.filter input, .field-long input')"
FILTER = "return document.querySelector('.filter input') !== null"
HELP_OPEN = "return document.querySelector('dialog.help').open"


@pytest.fixture(autouse=True)
def silent_and_at_home(browser, page_url):
    yield
    assert browser.console_errors() == []
    assert {urlsplit(address).hostname for address in browser.addresses()} <= {"127.0.0.1"}


@pytest.fixture(scope="module")
def ready(browser, oap, page_url):
    """A page that has its keys: they come when the browser and the server have met."""
    oap.fill()
    for number in range(4):
        oap.reader.add_service(f"worker-{number}")
    browser.resize(1280, 800)

    def opened(path: str) -> None:
        browser.open(page_url + path)
        browser.wait_for("keys", lambda: browser.script("return window.skyfarerKeys === true"))

    return opened


@pytest.mark.parametrize("letter", PLACES)
def test_g_and_a_letter_lead_to_a_page(browser, ready, letter):
    path, name = PLACES[letter]
    ready("" if letter != "s" else "map")
    browser.press("g", letter)
    browser.wait_for(name, lambda: browser.text(".place.here") == name)
    browser.wait_for("its address", lambda: urlsplit(browser.url()).path == path)


def test_a_slash_is_the_search_and_down_from_it_the_list_by_arrows(browser, ready, page_url):
    ready("")
    browser.wait_for("services", lambda: "worker-3" in browser.text(".row-name"))
    browser.wait_for("the filter", lambda: browser.script(FILTER))
    browser.press("/")
    assert browser.script(IN_SEARCH)
    browser.press("m", "a", "i", "l")
    browser.wait_for("the one", lambda: browser.text(".row-name") == "mailer")
    browser.press("ARROW_DOWN")
    assert browser.script(FOCUSED) == "mailer"
    browser.press("ENTER")
    browser.wait_for("it", lambda: browser.text(".detail-name") == "mailer")


def test_arrows_walk_the_list_and_stop_at_its_ends(browser, ready):
    ready("")
    browser.wait_for("services", lambda: "worker-3" in browser.text(".row-name"))
    browser.press("j")
    assert browser.script(FOCUSED) == NAMES[0]
    browser.press("ARROW_DOWN", "ARROW_DOWN")
    assert browser.script(FOCUSED) == NAMES[2]
    browser.press("ARROW_UP", "k", "ARROW_UP", "ARROW_UP")
    assert browser.script(FOCUSED) == NAMES[0]
    outline = "return getComputedStyle(document.activeElement).outlineStyle"
    assert browser.script(outline) == "solid"


def test_letters_typed_into_a_field_are_letters(browser, ready):
    ready("registry")
    browser.press("/")
    browser.press("g", "m", "?", "a")
    field = "return document.querySelector('.field-long input').value"
    browser.wait_for("the text", lambda: browser.script(field) == "gm?a")
    assert browser.text(".place.here") == "Registry"
    assert not browser.script(HELP_OPEN)
    browser.press("ESCAPE")
    assert not browser.script(IN_SEARCH)


def test_a_question_mark_shows_the_keys_and_escape_ends_it(browser, ready, shots):
    ready("")
    browser.press("?")
    assert browser.script(HELP_OPEN)
    for _, name in PLACES.values():
        assert name in browser.text(".help dd")
    browser.screenshot(shots / "help-1280.png")
    browser.press("ESCAPE")
    browser.wait_for("its end", lambda: not browser.script(HELP_OPEN))
    browser.click(".mark-button.keys")
    browser.wait_for("the keys again", lambda: browser.script(HELP_OPEN))
    browser.press("?")
    browser.wait_for("its end", lambda: not browser.script(HELP_OPEN))


def test_auto_refresh_stops_and_goes_on(browser, ready):
    pressed = "return document.querySelector('.refreshing').getAttribute('aria-pressed')"
    ready("pipeline")
    browser.wait_for("the page", lambda: browser.text(".books-sum"))
    browser.press("a")
    browser.wait_for("a pause", lambda: browser.script(pressed) == "false")
    browser.wait_for(
        "a mark of it",
        lambda: browser.script("return document.querySelectorAll('.pulse.paused').length === 1"),
    )

    def has_come_to_rest() -> bool:
        """What was under way may still come."""
        before = browser.text(".time")
        time.sleep(2 * REFRESH_S)
        return browser.text(".time") == before

    browser.wait_for("rest", has_come_to_rest)
    stands = browser.text(".time")
    browser.click(".refreshing")
    browser.wait_for("no pause", lambda: browser.script(pressed) == "true")
    browser.wait_for("a later time", lambda: browser.text(".time") != stands)


def test_the_link_from_a_trace_to_its_logs_asks_for_that_trace(browser, ready, page_url):
    ready("trace?id=a%26b")
    link = "return document.querySelector('.list .panel-head a').getAttribute('href')"
    ready(browser.script(link).lstrip("/"))
    asked = "return [...document.querySelectorAll('.field-long input')].map((one) => one.value)"
    browser.wait_for("its id", lambda: "a&b" in browser.script(asked))
