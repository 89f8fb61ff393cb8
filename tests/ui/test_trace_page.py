"""The page of a trace in a real browser, on a real storage: who stands below whom."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest

from skyfarer.base.clock import SystemClock
from skyfarer.oap.core.time_bucket import MINUTE_MS
from skyfarer.testing import traces
from skyfarer.testing.browser import Browser
from skyfarer.wire.messages import SegmentObject
from ui.serving import pages_of
from ui.town import Town

JOINED = "joined"
_INDENTS = """
return [...document.querySelectorAll(".fall")].map((row) => [
  row.querySelector(".fall-text").innerText,
  parseInt(row.querySelector(".fall-name").style.paddingLeft) / 14,
]);
"""


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    town = Town(tmp_path_factory.mktemp("traces"))
    town.start()
    town.put(joined(SystemClock().now_ms() - MINUTE_MS))
    with pages_of(town.url) as url:
        yield url + "trace?id="
    town.stop()


def joined(at_ms: int) -> list[SegmentObject]:
    """Two producers, and one consumer of both their messages whose span lies in another."""
    senders = [
        traces.segment(name, f"{name}-1", f"/{name}", at_ms + later, 40, trace_id=JOINED)
        for later, name in enumerate(("first", "second"))
    ]
    reader = traces.segment(
        *("reader", "reader-1", "/read", at_ms + 9, 20),
        trace_id=JOINED,
        exits=[traces.Exit("/inside", "nobody:80", 2, 5)],
        callers=[traces.caller(one, 0) for one in senders],
    )
    inside, root = reader.spans
    inside.refs.append(root.refs[0])
    return [*senders, reader]


@pytest.fixture(autouse=True)
def silent_and_at_home(browser: Browser, url: str) -> Iterator[None]:
    yield
    assert browser.console_errors() == []
    assert {urlsplit(address).hostname for address in browser.addresses()} <= {"127.0.0.1"}


def test_a_span_stands_below_the_last_that_it_refers_to(browser: Browser, url: str) -> None:
    browser.resize(1280, 900)
    browser.open(url + JOINED)
    browser.wait_for("the spans", lambda: len(browser.texts(".fall-text")) == 4)
    assert browser.script(_INDENTS) == [["/first", 0], ["/inside", 1], ["/second", 0], ["/read", 1]]


def test_the_span_that_is_shown_is_marked_among_the_others(browser: Browser, url: str) -> None:
    browser.open(url + JOINED)
    browser.wait_for("the spans", lambda: len(browser.texts(".fall-text")) == 4)
    for name, number in (("/inside", 2), ("/read", 4)):
        browser.click(f".fall:nth-child({number})")
        browser.wait_for(name, lambda name=name: browser.text(".span-name") == name)
        browser.wait_for("it", lambda name=name: browser.texts(".fall.chosen .fall-text") == [name])
        assert browser.texts(".fall[aria-pressed=true] .fall-text") == [name]
