"""The services page in a real browser: one story from the empty page on, in the order written."""

from __future__ import annotations

from urllib.parse import urlsplit

import pytest

from skyfarer.testing.memory_reader import SHOP
from skyfarer.ui.states import collector_of

CPM = ".chart-service_cpm canvas"
LATENCY = ".chart-service_resp_time canvas"
HOSTILE = "<img src=x onerror=alert(1)>'\"`${7*7}{{7*7}}\\u003c"


def names_in(browser) -> list[str]:
    return browser.text(".row-name").splitlines()


def all_figures(browser) -> bool:
    """How many calls there are goes with the time of day: a thousand and more are grouped."""
    cells = browser.text(".row-cpm").replace(",", "").splitlines()
    return all(map(str.isdigit, cells))


@pytest.fixture(autouse=True)
def silent_and_at_home(browser, page_url):
    """Whatever a test does, the page must not complain or call anyone outside."""
    yield
    assert browser.console_errors() == []
    hosts = {urlsplit(address).hostname for address in browser.addresses()}
    assert hosts <= {"127.0.0.1"}


def test_an_empty_page_says_how_to_point_an_agent_at_it(browser, page_url, shots):
    browser.resize(1280, 800)
    browser.open(page_url)
    browser.wait_for("empty state", lambda: "Waiting for the first service" in browser.text())
    assert "127.0.0.1:11800" in browser.text(".empty")
    assert "sw-python run" in browser.text(".empty")
    browser.screenshot(shots / "empty-1280.png")


@pytest.mark.parametrize(
    ("oap_url", "collector"),
    [
        ("http://127.0.0.1:12800", "127.0.0.1:11800"),
        ("http://oap:12800/", "oap:11800"),
        ("https://oap.example.org/query", "oap.example.org:11800"),
        ("http://[::1]:12800", "[::1]:11800"),
    ],
)
def test_agents_are_pointed_at_the_host_of_the_oap(oap_url, collector):
    assert collector_of(oap_url) == collector


def test_services_appear_by_themselves_with_figures_and_two_drawn_charts(
    browser, oap, page_url, shots
):
    oap.fill()
    browser.wait_for("services", lambda: names_in(browser) == sorted(s[0] for s in SHOP))
    browser.wait_for("drawn charts", lambda: browser.ink(CPM) > 500 and browser.ink(LATENCY) > 500)
    assert browser.text(".detail-name") == "catalog"
    assert "Waiting for the first service" not in browser.text()
    browser.wait_for("all figures of the list", lambda: all_figures(browser))
    browser.wait_for("100 %", lambda: browser.text(".figure-value").splitlines()[2:3] == ["100 %"])
    browser.screenshot(shots / "services-1280.png")


def test_the_ledger_stands_in_the_header_and_balances(browser, oap):
    accepted = f"{oap.reader.books.accepted:,}"
    browser.wait_for("the ledger's number", lambda: accepted in browser.text(".ledger"))
    assert "balanced" in browser.text(".ledger")
    assert "does not" not in browser.text(".ledger")


def test_a_failing_and_a_slow_service_are_marked(browser):
    assert browser.text(".service:nth-child(5)").startswith("mailer")
    assert "failing" in browser.text(".service:nth-child(5)")
    assert "slow" in browser.text(".service:nth-child(6)")
    assert "failing" not in browser.text(".service:nth-child(1)")


def test_a_click_shows_that_service_and_makes_a_link_of_it(browser):
    browser.click(".service:nth-child(5)")
    browser.wait_for("mailer", lambda: browser.text(".detail-name") == "mailer")
    browser.wait_for("its address", lambda: browser.url().endswith("?service=mailer"))


def test_a_link_opens_the_service_it_names(browser, page_url):
    browser.open(page_url + "?service=payment")
    browser.wait_for("payment", lambda: browser.text(".detail-name") == "payment")
    browser.wait_for("a drawn chart", lambda: browser.ink(LATENCY) > 500)


def test_a_link_to_nobody_says_so_and_offers_the_others(browser, page_url):
    browser.open(page_url + "?service=nobody")
    browser.wait_for("the sentence", lambda: "No service is named “nobody”" in browser.text())
    assert len(names_in(browser)) == len(SHOP)


def test_the_page_is_refreshed_while_nobody_touches_it(browser, page_url):
    browser.open(page_url)
    before = browser.wait_for("a time", lambda: browser.text(".time"))
    browser.wait_for("a later time", lambda: browser.text(".time") not in (before, "connecting"))


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("dark", [False, True])
def test_it_fits_wide_and_narrow_screens_in_light_and_dark(browser, page_url, shots, width, dark):
    browser.resize(width, 800 if width > 500 else 1120, dark=dark)
    browser.open(page_url + "?service=checkout")
    browser.wait_for("a drawn chart", lambda: browser.ink(CPM) > 300 and browser.ink(LATENCY) > 300)
    assert browser.script("return document.documentElement.scrollWidth") <= width
    assert browser.script("return document.body.classList.contains('body--dark')") is dark
    browser.screenshot(shots / f"services-{width}{'-dark' if dark else ''}.png")


def test_a_chosen_theme_is_remembered(browser, page_url):
    dark = "return document.body.classList.contains('body--dark')"
    browser.resize(1280, 800, dark=False)
    browser.open(page_url)
    browser.wait_for("services", lambda: names_in(browser))
    browser.click(".theme")
    browser.wait_for("dark", lambda: browser.script(dark))
    browser.open(page_url)
    browser.wait_for("dark again", lambda: browser.script(dark))
    browser.click(".theme")
    browser.wait_for("light", lambda: not browser.script(dark))


def test_a_hostile_name_is_shown_as_the_text_it_is(browser, oap, page_url):
    oap.reader.add_service(HOSTILE)
    browser.wait_for("the name", lambda: HOSTILE in names_in(browser))
    browser.click(".service:nth-child(1)")
    browser.wait_for("its detail", lambda: browser.text(".detail-name") == HOSTILE)
    assert browser.script("return document.querySelectorAll('img').length") == 0
    browser.open(browser.url())
    browser.wait_for("its detail again", lambda: browser.text(".detail-name") == HOSTILE)


def test_many_services_are_found_by_filtering(browser, oap, page_url):
    for number in range(60):
        oap.reader.add_service(f"worker-{number:02d}")
    browser.open(page_url)
    browser.wait_for("the bound", lambda: "more: filter by name" in browser.text(".note"))
    browser.type(".filter input", "worker-59")
    browser.wait_for("the one", lambda: names_in(browser) == ["worker-59"])


def test_when_the_oap_goes_away_the_page_keeps_what_it_had_says_so_and_recovers(
    browser, oap, page_url, shots
):
    browser.open(page_url + "?service=checkout")
    browser.wait_for("a drawn chart", lambda: browser.ink(CPM) > 300)
    oap.go()
    browser.wait_for("the banner", lambda: "No answer from the OAP" in browser.text(".banner"))
    assert "Trying again every 2 s" in browser.text(".banner")
    assert browser.text(".detail-name") == "checkout"
    browser.screenshot(shots / "away-1280.png")
    oap.come()
    browser.wait_for("no banner", lambda: browser.text(".banner") == "")


def test_an_answer_that_is_an_error_is_told_in_the_oaps_own_words(browser, oap):
    oap.reader.failure = RuntimeError("disk on fire")
    browser.wait_for("the banner", lambda: "cannot answer: internal error" in browser.text())
    oap.reader.failure = None
    browser.wait_for("no banner", lambda: browser.text(".banner") == "")


def test_a_page_opened_while_the_oap_is_away_says_so_and_fills_when_it_comes(
    browser, oap, page_url
):
    oap.go()
    browser.open(page_url)
    browser.wait_for("the banner", lambda: "No answer from the OAP" in browser.text(".banner"))
    oap.come()
    browser.wait_for("services", lambda: names_in(browser))
