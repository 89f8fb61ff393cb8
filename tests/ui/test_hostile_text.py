"""Text that wants to be more than text, on every page: it is shown, spelt, bounded, and does
nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote, urlencode, urlsplit

import pytest

from skyfarer.testing.browser import Browser
from ui import hostile
from ui.accessibility import Axe
from ui.hostile import HURT, HURTS, LONG, SERVICE, TRACE, UNSEEN, spelt
from ui.serving import pages_of, registered
from ui.town import Town

MESSAGE_CHARS_MAX = 64_000
NAMED = {
    "/": ["service", "called", "endpoint", "instance"],
    "/map": ["service", "called"],
    "/traces": ["endpoint", "endpoint called"],
    "/trace": ["endpoint", "trace", "service", "called", "exit", "endpoint called"],
    "/logs": ["service"],
    "/registry": ["registered"],
}
ADDRESSES = {
    "/": urlencode({"service": SERVICE}),
    "/trace": urlencode({"id": TRACE}),
    "/logs": urlencode({"service": SERVICE, "last": "1h"}),
}
CUT = f"… ({len(LONG) - 2_000:,} characters more)"


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    town = Town(tmp_path_factory.mktemp("hostile"))
    town.start()
    hostile.fill(town)
    with pages_of(town.url) as url:
        yield url
    town.stop()


@pytest.fixture(autouse=True)
def unhurt_silent_and_at_home(browser: Browser) -> Iterator[None]:
    yield
    assert browser.script("return window.hurt") is None
    assert browser.script("return document.querySelectorAll('img, textarea').length") == 0
    assert browser.console_errors() == []
    assert {urlsplit(address).hostname for address in browser.addresses()} <= {"127.0.0.1"}
    assert max(browser.message_chars()) < MESSAGE_CHARS_MAX


def open_page(browser: Browser, url: str, path: str) -> None:
    browser.open(f"{url}{path.lstrip('/')}?{ADDRESSES.get(path, '')}")
    browser.wait_for("the time", lambda: ":" in browser.text(".time"))


def test_hostile_names_are_shown_as_the_text_they_are(browser: Browser, url: str) -> None:
    for path in registered():
        open_page(browser, url, path)
        for name in NAMED.get(path, []):
            browser.wait_for(f"{name} on {path}", lambda name=name: spelt(name) in browser.text())
        assert browser.script("return window.hurt") is None
        assert UNSEEN[1] not in browser.text()


def test_hostile_tags_and_logs_of_a_span_are_shown_as_text(browser: Browser, url: str) -> None:
    open_page(browser, url, "/trace")
    browser.click(".fall")
    browser.wait_for("the span", lambda: spelt("key") in browser.text(".span"))
    facts = browser.texts(".span .fact")
    assert facts.count(f"{HURT}␀<U+202E>") == 2
    assert sum(HURT in fact and "characters more)" in fact for fact in facts) == 2
    assert browser.texts(".span .fact-name").count(spelt("key")) == 2
    browser.click(".fall:nth-child(2)")
    browser.wait_for("its peer", lambda: spelt("peer") in browser.texts(".span .fact"))


def test_a_log_of_a_megabyte_is_cut_says_so_and_can_be_had_whole(
    browser: Browser, url: str, tmp_path: Path
) -> None:
    open_page(browser, url, "/logs")
    browser.wait_for("the logs", lambda: len(browser.texts(".log-text")) == 2)
    long, short = sorted(browser.texts(".log-text"), key=len, reverse=True)
    assert short == HURT
    assert long == LONG[:2_000] + CUT
    assert browser.texts(".log-level") == [HURTS[0][:20] + "… (10 characters more)"] * 2
    browser.save_downloads_to(tmp_path)
    browser.click(".whole-text")
    saved = tmp_path / "text.txt"
    browser.wait_for("the whole text", lambda: saved.exists() and saved.stat().st_size)
    assert saved.read_text("utf-8") == LONG


def test_the_page_answers_while_a_megabyte_is_on_it(browser: Browser, url: str) -> None:
    open_page(browser, url, "/logs")
    browser.wait_for("the logs", lambda: len(browser.texts(".log-text")) == 2)
    browser.click(".theme")
    browser.wait_for(
        "dark", lambda: browser.script("return !!document.querySelector('.body--dark')")
    )
    browser.click(".theme")


def test_long_and_hostile_text_stays_in_its_place_and_can_be_scrolled_by_keyboard(
    browser: Browser, url: str, axe: Axe
) -> None:
    browser.resize(390, 900)
    faults = dict[str, list[str]]()
    for path in NAMED:
        open_page(browser, url, path)
        browser.wait_for(
            f"{path} filled", lambda path=path: spelt(NAMED[path][0]) in browser.text()
        )
        if path == "/trace":
            browser.click(".fall")
            browser.wait_for("the span", lambda: spelt("key") in browser.text(".span"))
        faults[path] = axe.faults(browser)
        assert browser.script("return document.documentElement.scrollWidth") <= 390, path
    browser.resize(1280, 900)
    assert {path: found for path, found in faults.items() if found} == {}


def test_text_that_did_run_would_be_noticed(browser: Browser) -> None:
    browser.open("about:blank")
    browser.script("document.body.innerHTML = arguments[0]", HURT)
    browser.wait_for("the script", lambda: browser.script("return window.hurt") == 1)
    browser.open("about:blank")


@pytest.mark.parametrize("path", ["?service=", "trace?id=", "logs?service=", "traces?service="])
def test_what_an_address_says_is_text_too(browser: Browser, url: str, path: str) -> None:
    browser.open(url + path + quote(HURT + UNSEEN))
    browser.wait_for("a sentence", lambda: browser.text(".missing"))
    wanted = ".q-select .ellipsis" if "service=" in path and path[0] != "?" else ".page"
    browser.wait_for("the text", lambda: HURT in browser.text(wanted))


def test_what_is_typed_is_text_too(browser: Browser, url: str) -> None:
    for path in ("logs", "traces"):
        asked = urlencode({"tags": f"a={HURT}", "trace_id": HURT, "last": HURT, "page": HURT})
        browser.open(f"{url}{path}?{asked}")
        browser.wait_for("a sentence", lambda: browser.text(".missing"))
        values = browser.script(
            "return [...document.querySelectorAll('input')].map((i) => i.value)"
        )
        assert {f"a={HURT}", HURT} <= set(values)


def test_words_of_a_log_are_looked_for_and_told_as_text(browser: Browser, url: str) -> None:
    browser.open(f"{url}logs?{urlencode({'keywords': HURT})}")
    browser.wait_for("the logs", lambda: len(browser.texts(".log-text")) == 2)
    browser.open(f"{url}logs?{urlencode({'keywords': HURTS[4] + UNSEEN, 'excluding': HURTS[0]})}")
    sentence = browser.wait_for("a sentence", lambda: browser.text(".missing"))
    assert f"with “{HURTS[4]}␀<U+202E>”, without “{HURTS[0]}”" in sentence
