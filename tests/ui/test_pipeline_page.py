"""The page of the pipeline in a real browser: one story from the empty node on, in its order."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from urllib.parse import urlsplit

import pytest

from skyfarer.oap.core.cluster import Node
from skyfarer.oap.oal.series import SEPARATOR
from skyfarer.telemetry import table
from skyfarer.telemetry.ledger import Ledger
from skyfarer.testing.memory_reader import row_of

LONG = "x" * 1_000_000
HOSTILE = "<script>alert(1)</script>'\"`${7*7}"


@pytest.fixture(autouse=True)
def silent_and_at_home(browser, page_url):
    yield
    assert browser.console_errors() == []
    assert {urlsplit(address).hostname for address in browser.addresses()} <= {"127.0.0.1"}
    assert browser.script("return window.hit") is None


@pytest.fixture(scope="module")
def url(oap, page_url):
    nodes = [Node("10.0.0.1", 11800), Node("10.0.0.2", 11800, is_self=True)]
    oap.go()
    oap.beside = {"nodes": lambda: nodes, "configuration": {"storage.provider": "postgresql"}}
    oap.come()
    return page_url + "pipeline"


def row(browser, table_name: str, name: str) -> str:
    lines = browser.texts(f".{table_name} .small-row")
    return next((" ".join(one.split()) for one in lines if one.startswith(name)), "")


def test_a_node_without_data_says_what_to_do_next(browser, url, shots):
    browser.resize(1280, 900)
    browser.open(url)
    browser.wait_for("what to do", lambda: "Nothing has arrived yet" in browser.text(".missing"))
    assert "127.0.0.1:11800" in browser.text(".missing")
    assert browser.text(".place.here") == "Pipeline"
    assert browser.text(".health") == "healthy"
    assert row(browser, "books", "Accepted") == "Accepted 0"
    browser.screenshot(shots / "pipeline-empty-1280.png")


def test_the_ledger_is_shown_term_by_term_with_the_sum(browser, oap):
    dropped = {"expired": 30, "duplicate": 12, HOSTILE: 1}
    oap.reader.books = Ledger(1_012_345, 1_012_290, 12, dropped)
    browser.wait_for("the sum", lambda: row(browser, "books", "Sum") == "Sum 1,012,345")
    assert row(browser, "books", "Accepted") == "Accepted 1,012,345"
    assert row(browser, "books", "= delivered") == "= delivered to storage 1,012,290"
    assert row(browser, "books", "+ queued") == "+ queued 12"
    assert row(browser, "books", "+ dropped") == "+ dropped 43"
    reasons = browser.texts(".books-part .small-name")
    assert reasons == ["expired", "duplicate", HOSTILE]
    assert browser.text(".books .verdict") == "balanced"
    assert browser.text(".pipeline .missing") == ""


def test_books_that_do_not_balance_say_how_many_records_are_missing(browser, oap):
    right = oap.reader.books
    oap.reader.books = Ledger(right.accepted + 5, right.delivered, right.queued, right.dropped)
    browser.wait_for("the gap", lambda: row(browser, "books", "Missing") == "Missing 5")
    assert browser.text(".books .verdict") == "does not balance"
    oap.reader.books = Ledger(right.accepted + 5, right.delivered + 5, right.queued, right.dropped)
    browser.wait_for("no gap", lambda: browser.text(".books .verdict") == "balanced")


def test_lag_batches_queue_and_rows_are_those_of_the_metrics(browser, oap):
    oap.registry.set(table.PIPELINE_BATCH_SECONDS, 0.42)
    oap.registry.set(table.PIPELINE_BATCH_RECORDS, 1234)
    oap.registry.set(table.QUEUE_CAPACITY_SECONDS, 7_500, queue="ingest")
    oap.registry.set(table.QUEUE_FREE_SECONDS, 250, queue="ingest")
    oap.registry.set(table.RECEIVER_CONNECTIONS, 7)
    oap.registry.inc(table.PIPELINE_ROWS, 4321, what="segments")
    oap.registry.inc(table.PIPELINE_RECORDS, 99, outcome="stored")
    oap.registry.inc(table.RECEIVER_REFUSED, 6, rpc="/a", reason="too_large")
    # The last, so that whoever sees it sees all the others.
    oap.registry.observe_with(table.PIPELINE_LAG_SECONDS, lambda: 75.0)
    browser.wait_for("the lag", lambda: browser.text(".figure-lag .figure-value") == "75 s")
    assert browser.text(".figure-batch").split("\n") == ["Last batch", "0.4 s", "1,234 records"]
    assert browser.text(".figure-queue").split("\n")[1:] == ["4 min", "of 2 h 5 min at this rate"]
    assert browser.script("return document.querySelector('.figure-lag').className").count("slow")
    assert browser.text(".figure-connections .figure-value") == "7"
    browser.wait_for("rows", lambda: row(browser, "stored-rows", "segments") == "segments 4,321")
    assert row(browser, "outcomes", "stored") == "stored 99"
    assert row(browser, "refused", "too_large") == "too_large 6"


def test_the_rate_is_that_of_the_books_and_is_drawn(browser, oap):
    def rate() -> float:
        text = browser.text(".figure-rate .figure-value").replace(",", "")
        return 0.0 if text == "–" else float(text)

    def grow() -> bool:
        books = oap.reader.books
        more = Ledger(books.accepted + 9_000, books.delivered + 9_000, books.queued, books.dropped)
        oap.reader.books = more
        time.sleep(0.5)
        return rate() > 100

    browser.wait_for("a rate", grow)
    browser.wait_for("a drawn chart", lambda: browser.ink(".chart-rates canvas") > 300)
    browser.wait_for("a drawn lag", lambda: browser.ink(".chart-delays canvas") > 300)


def put_meters(oap, plan, satellite: str) -> None:
    """Of an hour to come, too: counters of two pipes that grow every minute, and connections."""
    now = datetime.now(UTC)
    for minute in range(-5, 60):
        names = {"receive": ("all", "abandoned"), "send": ("success", "failure")}
        grown = {"pipe=logs": 10 * (minute + 5), "pipe=traces": 30 * (minute + 5)}
        figures = {"satellite_service_grpc_connect_count": {"summation": 8, "count": 2}}
        for name, statuses in names.items():
            counters = {
                f"host-1{SEPARATOR}{pipe}{SEPARATOR}status={status}": number
                for pipe, number in grown.items()
                for status in statuses
            }
            parts = {"most": counters, "least": counters}
            figures[f"satellite_service_{name}_event_count"] = parts
        bucket = int((now + timedelta(minutes=minute)).strftime("%Y%m%d%H%M"))
        oap.reader.put("ServiceMeter", satellite, bucket, row_of(plan, **figures))


def test_satellites_nodes_storage_and_expiry_are_told(browser, oap, plan):
    now = int(time.strftime("%Y%m%d%H%M", time.gmtime()))
    satellite = oap.reader.add_service("edge", ["SO11Y_SATELLITE"])
    oap.reader.add_instance(satellite, "host-1", "", (0, now + 10_000))
    oap.reader.add_instance(satellite, HOSTILE, "", (0, now + 10_000))
    oap.reader.add_instance(satellite, LONG, "", (0, now + 10_000))
    put_meters(oap, plan, satellite)
    oap.registry.set(table.OLDEST_DATA_AGE, 2 * 86_400 + 3 * 3_600, kept="record")
    oap.registry.set(table.TTL_LAST_SUCCESS_AGE, 90)
    known = f"edge · {HOSTILE}, host-1, xxx"
    browser.wait_for("all three", lambda: row(browser, "satellites", "edge").startswith(known))
    browser.wait_for("its figures", lambda: row(browser, "satellites", "edge").endswith("40 40 4"))
    assert "characters more)" in row(browser, "satellites", "edge")
    nodes = [one.split("\n") for one in browser.texts(".cluster .small-row")]
    assert ["10.0.0.1:11800", "deletes what expired"] in nodes
    assert ["10.0.0.2:11800", "this node"] in nodes
    assert "10.0.0.2:11800" in browser.text(".detail-note")
    assert "postgresql" in browser.text(".detail-note")
    assert row(browser, "expiry", "traces, logs") == "traces, logs and records are kept 3 days"
    browser.wait_for("the oldest", lambda: row(browser, "expiry", "oldest").endswith("2 d 3 h"))
    assert row(browser, "expiry", "last seen clean") == "last seen clean 90 s ago"


def test_a_part_that_is_unwell_is_named_with_its_own_words(browser, oap):
    oap.health.set("ttl", False, f"nothing was deleted {HOSTILE}")
    browser.wait_for("the part", lambda: "1 part unwell" in browser.text(".health"))
    assert browser.text(".unwell") == f"ttl: nothing was deleted {HOSTILE}"
    oap.health.set("ttl", True)
    browser.wait_for("health", lambda: browser.text(".health") == "healthy")
    assert browser.text(".unwell") == ""


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("dark", [False, True])
def test_it_fits_wide_and_narrow_screens_in_light_and_dark(browser, url, shots, width, dark):
    browser.resize(width, 1000 if width > 500 else 2400, dark=dark)
    browser.open(url)
    browser.wait_for("a drawn chart", lambda: browser.ink(".chart-delays canvas") > 300)
    assert browser.script("return document.documentElement.scrollWidth") <= width
    browser.screenshot(shots / f"pipeline-{width}{'-dark' if dark else ''}.png")


def test_when_the_oap_goes_away_the_page_keeps_what_it_had_and_says_so(browser, oap, url):
    oap.go()
    browser.wait_for("the banner", lambda: "No answer from the OAP" in browser.text(".banner"))
    assert row(browser, "books", "Accepted") != ""
    oap.come()
    browser.wait_for("no banner", lambda: browser.text(".banner") == "")
