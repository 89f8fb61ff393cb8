"""The page of logs in a real browser, on a real storage: words that a log has, or has not."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest

from skyfarer.base.clock import SystemClock
from skyfarer.oap.core.time_bucket import MINUTE_MS
from skyfarer.oap.query import limits
from skyfarer.testing.browser import Browser
from skyfarer.ui.listing import asked
from skyfarer.ui.logs.model import WORD_CHARS_MAX, WORDS_MAX, LogQuestion, words
from skyfarer.ui.logs.sought import advice, nothing_found
from skyfarer.wire.messages import log
from ui.serving import pages_of
from ui.town import Town

TEXTS = (
    "read timed out after 30 s",
    "Connection refused by stock:9000",
    "connection of the healthcheck refused",
    "order 17 paid",
)
WITH, WITHOUT = '[aria-label="With words"]', '[aria-label="Without words"]'
# What is typed is told to the server half a second later; with this only Enter tells it.
_UNTOLD = "addEventListener('input', (event) => event.stopImmediatePropagation(), true)"


def written(text: str, age_ms: int = MINUTE_MS) -> log.LogData:
    return log.LogData(
        timestamp=SystemClock().now_ms() - age_ms,
        service="order",
        body=log.LogDataBody(text=log.TextLog(text=text)),
    )


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Town]:
    town = Town(tmp_path_factory.mktemp("logs"))
    town.start()
    town.put_logs([written(text, MINUTE_MS + age) for age, text in enumerate(TEXTS)])
    yield town
    town.stop()


@pytest.fixture(scope="module")
def url(town: Town) -> Iterator[str]:
    with pages_of(town.url) as url:
        yield url + "logs"


@pytest.fixture(autouse=True)
def silent_and_at_home(browser: Browser, url: str) -> Iterator[None]:
    yield
    assert browser.console_errors() == []
    assert {urlsplit(address).hostname for address in browser.addresses()} <= {"127.0.0.1"}


def texts(browser: Browser) -> list[str]:
    return browser.texts(".log-text")


def enter(browser: Browser, field: str, text: str) -> None:
    browser.click(field)
    browser.press(*text, "ENTER")


def open_page(browser: Browser, url: str, **question: str) -> None:
    browser.resize(1280, 900)
    browser.open(f"{url}?{urlencode({'last': '1h', **question})}")


def test_enter_searches_for_what_was_typed_and_the_address_has_it(
    browser: Browser, url: str
) -> None:
    open_page(browser, url)
    browser.wait_for("all", lambda: texts(browser) == [*TEXTS])
    browser.script(_UNTOLD)
    enter(browser, WITH, "CONNECTION refused")
    browser.wait_for("two", lambda: texts(browser) == [*TEXTS[1:3]])
    enter(browser, WITHOUT, "health")
    browser.wait_for("one", lambda: texts(browser) == [TEXTS[1]])
    browser.wait_for("the address", lambda: "excluding" in browser.url())
    address = parse_qs(urlsplit(browser.url()).query)
    assert address == {"keywords": ["CONNECTION refused"], "excluding": ["health"], "last": ["1h"]}


def test_an_address_opens_the_same_search_with_its_fields_filled(
    browser: Browser, url: str
) -> None:
    open_page(browser, url, keywords='"timed out" s', excluding="refused")
    browser.wait_for("the one", lambda: texts(browser) == [TEXTS[0]])
    value = "return document.querySelector(arguments[0]).value"
    filled = [browser.script(value, field) for field in (WITH, WITHOUT)]
    assert filled == ['"timed out" s', "refused"]


def test_the_search_key_is_in_the_words_and_typing_alone_searches_too(
    browser: Browser, url: str
) -> None:
    open_page(browser, url)
    browser.wait_for("all", lambda: texts(browser) == [*TEXTS])
    browser.press("/")
    browser.press(*"paid")
    browser.wait_for("the one", lambda: texts(browser) == [TEXTS[3]])


def test_what_was_not_found_is_said_with_what_to_do(browser: Browser, url: str) -> None:
    open_page(
        browser, url, keywords='panic "out of memory"', excluding="x", tags="level=ERROR, loose"
    )
    browser.wait_for("a sentence", lambda: browser.text(".missing"))
    assert browser.text(".missing") == (
        "No log with “panic” and “out of memory”, without “x”, tagged “level=ERROR”, in the last"
        " hour. Look at a longer time, or ask for fewer words. A word is found as it is written,"
        " also inside of another, in either case."
    )


def test_enter_looks_anew_where_the_page_does_not_by_itself(
    browser: Browser, url: str, town: Town
) -> None:
    open_page(browser, url, keywords="hourglass")
    browser.wait_for("a sentence", lambda: "“hourglass”" in browser.text(".missing"))
    browser.press("a")
    browser.wait_for("a pause", lambda: browser.texts(".refreshing.paused"))
    town.put_logs([written("the hourglass is back")])
    enter(browser, WITH, "")
    browser.wait_for("it", lambda: texts(browser) == ["the hourglass is back"])


def test_more_words_than_can_be_looked_for_are_refused_in_a_sentence(
    browser: Browser, url: str
) -> None:
    open_page(browser, url, keywords=" ".join(map(str, range(WORDS_MAX + 1))))
    browser.wait_for("a sentence", lambda: "11 words are more" in browser.text(".missing"))
    assert "Leave some out" in browser.text(".missing")
    assert browser.text(".banner") == ""
    assert texts(browser) == []


def test_a_search_that_gave_up_says_so_although_it_found_nothing(
    browser: Browser, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "LOGS_LOOKED_AT_FIRST", 1)
    monkeypatch.setattr(limits, "LOG_SEARCHES_MAX", 1)
    open_page(browser, url, excluding='timed connection back "17 paid"')
    browser.wait_for("a sentence", lambda: browser.text(".missing"))
    assert "but only the first 1 logs" in browser.text(".missing").lower()
    assert "ask for a shorter time" in browser.text(".missing")
    assert "longer time" not in browser.text(".missing")


def test_words_are_parted_by_spaces_and_phrases_are_quoted() -> None:
    assert words('  a "b c"  d:"e" a ""  "open end') == ("a", "b c", 'd:"e"', "open end")
    assert words("") == words('"') == words(' "  " ') == ()


def test_a_question_is_its_address_and_back() -> None:
    question = LogQuestion(keywords='"a b" & c', excluding="d=e", tags="level=ERROR")
    assert asked(LogQuestion, question.address()) == question
    assert asked(LogQuestion, {}).address() == {"last": "30m"}


def test_a_word_that_is_too_long_is_a_fault_and_ten_short_ones_are_none() -> None:
    assert "Shorten it" in LogQuestion(excluding="x" * (WORD_CHARS_MAX + 1)).fault
    assert LogQuestion(keywords=" ".join(map(str, range(WORDS_MAX)))).fault == ""


def test_a_trace_without_logs_is_named_and_a_fixed_time_too() -> None:
    of_trace = LogQuestion(trace_id="t-1", service="order")
    assert nothing_found(of_trace) == "No log of “order”, in the trace “t-1”."
    assert advice(of_trace) == "See that the id is whole, or ask for less."
    fixed = asked(LogQuestion, {"start": "2026-01-01T00:00", "end": "2026-01-01T01:00"})
    assert nothing_found(fixed) == "No log from 2026-01-01 00:00 to 2026-01-01 01:00."
    assert "leave fewer words out" in advice(LogQuestion(excluding="x"))
