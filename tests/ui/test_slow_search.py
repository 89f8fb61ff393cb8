"""A search that takes long, or that the OAP gives up, in a real browser."""

from __future__ import annotations

import time
from collections.abc import Iterator
from threading import Event
from typing import Any
from urllib.parse import urlsplit

import pytest

from skyfarer.base.clock import SystemClock
from skyfarer.base.errors import RetryableError
from skyfarer.oap.core.logs import StoredLog
from skyfarer.oap.core.time_bucket import MINUTE_MS
from skyfarer.oap.storage.embedded import EmbeddedStorage
from skyfarer.testing.browser import Browser
from skyfarer.ui.frame import REFRESH_S
from skyfarer.wire.messages import log
from ui.serving import pages_of
from ui.town import Town

WITH = '[aria-label="With words"]'
GAVE_UP = "storage was searched for 10 s without an end; ask for a shorter time"
HELD_S_MAX = 120.0


class HeldStorage(EmbeddedStorage):
    """Whose searches for logs wait until `gate` is set, or fail with `failure`."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = Event()
        self.gate.set()
        self.failure: Exception | None = None
        self.begun = 0

    def logs(self, *asked: Any) -> list[StoredLog]:
        self.begun += 1
        self.gate.wait(HELD_S_MAX)
        if self.failure is not None:
            raise self.failure
        return super().logs(*asked)


@pytest.fixture(scope="module")
def storage() -> HeldStorage:
    return HeldStorage()


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory, storage: HeldStorage) -> Iterator[str]:
    town = Town(tmp_path_factory.mktemp("slow"))
    town.storage = storage
    town.start()
    at_ms = SystemClock().now_ms() - MINUTE_MS
    texts = ("cat on a mat", "dog in a bog")
    bodies = [log.LogDataBody(text=log.TextLog(text=text)) for text in texts]
    town.put_logs([log.LogData(timestamp=at_ms, service="zoo", body=body) for body in bodies])
    with pages_of(town.url) as url:
        yield url + "logs?last=1h"
    town.stop()


@pytest.fixture(autouse=True)
def silent_and_at_home(browser: Browser, url: str, storage: HeldStorage) -> Iterator[None]:
    yield
    storage.failure = None
    storage.gate.set()
    assert browser.console_errors() == []
    assert {urlsplit(address).hostname for address in browser.addresses()} <= {"127.0.0.1"}


def texts(browser: Browser) -> list[str]:
    return sorted(browser.texts(".log-text"))


def test_while_a_search_runs_no_other_is_begun_and_then_the_latest_is(
    browser: Browser, url: str, storage: HeldStorage
) -> None:
    browser.resize(1280, 900)
    storage.gate.clear()
    browser.open(url)
    browser.wait_for("a search", lambda: storage.begun == 1)
    assert ":" in browser.text(".time")
    for word in ("horse", "cat"):
        browser.click(WITH)
        browser.press("CONTROL", "a")
        browser.press(*word, "ENTER")
        browser.wait_for("its address", lambda word=word: f"={word}" in browser.url())
    assert browser.text(".searching") == "Searching …"
    time.sleep(2 * REFRESH_S)
    assert storage.begun == 1
    storage.gate.set()
    browser.wait_for("the latest", lambda: texts(browser) == ["cat on a mat"])
    assert browser.text(".searching") == ""


def test_a_search_that_the_oap_gives_up_is_told_in_its_words_and_leaves_the_page_alive(
    browser: Browser, url: str, storage: HeldStorage
) -> None:
    storage.failure = RetryableError(GAVE_UP)
    browser.open(url)
    browser.wait_for("the sentence", lambda: GAVE_UP in browser.text(".missing"))
    assert "Looking again every 10 s" in browser.text(".missing")
    assert browser.text(".banner") == ""
    assert browser.texts(".page.stale") == []
    storage.failure = None
    browser.wait_for("the logs", lambda: len(texts(browser)) == 2)
    assert browser.text(".missing") == ""


def test_a_search_given_up_later_leaves_what_was_found_and_says_so_above_it(
    browser: Browser, url: str, storage: HeldStorage
) -> None:
    browser.open(url)
    browser.wait_for("the logs", lambda: len(texts(browser)) == 2)
    storage.failure = RetryableError(GAVE_UP)
    browser.wait_for("the sentence", lambda: GAVE_UP in browser.text(".list .note"))
    assert "What you see is the last it said" in browser.text(".list .note")
    assert len(texts(browser)) == 2
