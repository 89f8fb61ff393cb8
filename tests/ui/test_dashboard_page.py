"""A service's dashboard in a real browser: its time, its runtime, and what has no agent."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from urllib.parse import urlsplit

import pytest

from skyfarer.testing.memory_reader import row_of

HOSTILE = "<script>window.hit = 1</script>'\"`${7*7}"
AHEAD, BEHIND = 20, 60
ALWAYS = (0, 9999_12_31_23_59)
MIB = 1 << 20


@pytest.fixture(autouse=True)
def silent_and_at_home(browser, page_url):
    yield
    assert browser.console_errors() == []
    assert {urlsplit(address).hostname for address in browser.addresses()} <= {"127.0.0.1"}
    assert browser.script("return window.hit") is None


@pytest.fixture(scope="module")
def minutes() -> list[int]:
    now = datetime.now(UTC)
    return [int((now + timedelta(minutes=n)).strftime("%Y%m%d%H%M")) for n in range(-BEHIND, AHEAD)]


@pytest.fixture(scope="module")
def shop(oap, plan, minutes) -> None:
    """A Java and a Python instance, a database with a hostile name, and an address."""
    reader = oap.reader
    service = reader.add_service("shop")
    java = reader.add_instance(service, "java-1", "java", ALWAYS)
    python = reader.add_instance(service, f"py {HOSTILE}", "python", ALWAYS)
    reader.add_instance(service, "silent", "java", ALWAYS)
    database = reader.add_service(f"db {HOSTILE}", ["VIRTUAL_DATABASE"], normal=False)
    reader.add_service("10.0.0.9:1", ["UNDEFINED"], normal=False)
    calls = {"summation": 4_000, "count": 100}
    for minute in minutes:
        for name, entity in (("service", service), ("database_access", database)):
            of = "Service" if name == "service" else "DatabaseAccess"
            figures = {f"{name}_resp_time": calls, f"{name}_sla": {"total": 100, "match": 98}}
            reader.put(of, entity, minute, row_of(plan, **figures))
        put_runtime(reader, plan, minute, java, python)
    for hour in sorted({one // 100 for one in minutes}):
        figures = {"service_resp_time": calls, "service_sla": {"total": 60, "match": 60}}
        reader.put("Service", service, hour, row_of(plan, **figures))


def put_runtime(reader, plan, minute, java, python) -> None:
    def average(value: int) -> dict[str, int]:
        return {"summation": 2 * value, "count": 2}

    rows = {
        "ServiceInstanceJVMCPU": {"instance_jvm_cpu": {"summation": 84.0, "count": 2}},
        "ServiceInstanceJVMMemory": {
            "instance_jvm_memory_heap": average(300 * MIB),
            "instance_jvm_memory_heap_max": average(512 * MIB),
        },
        "ServiceInstanceJVMThread": {"instance_jvm_thread_live_count": average(37)},
    }
    for source, figures in rows.items():
        reader.put(source, java, minute, row_of(plan, **figures))
    meters = {"meter_instance_pvm_process_cpu_utilization": average(12)}
    reader.put("InstanceMeter", python, minute, row_of(plan, **meters))


def titles(browser) -> list[str]:
    return browser.texts(".chart-runtime .panel-title")


def drawn(browser, number: int) -> list[int | None]:
    """The last line of a chart, as the browser has it."""
    return browser.script(
        "const all = [...document.querySelectorAll('.chart-runtime .canvas')];"
        "const chart = getElement(Number(all[arguments[0]].id.slice(1))).chart;"
        "return chart.getOption().series.at(-1).data.map((one) => one ?? null);",
        number,
    )


def test_an_instance_shows_its_runtime_over_the_time(browser, page_url, shop, shots):
    browser.resize(1280, 1400)
    browser.open(page_url + "?service=shop")
    browser.wait_for("charts", lambda: titles(browser) == ["JVM CPU", "JVM memory", "JVM threads"])
    browser.wait_for("a drawn one", lambda: browser.ink(".chart-runtime canvas") > 300)
    lasting = [one for one in drawn(browser, 0) if one is not None]
    assert set(lasting) == {42} and len(lasting) == 31
    assert set(drawn(browser, 1)) == {300}
    assert set(drawn(browser, 2)) == {37}
    browser.screenshot(shots / "runtime-1280.png")


def test_another_instance_is_a_link_with_its_own_runtime(browser, page_url, shop):
    browser.open(page_url + f"?service=shop&instance=py%20{HOSTILE.replace('#', '%23')}")
    browser.wait_for("Python", lambda: titles(browser) == ["Python CPU"])
    assert set(drawn(browser, 0)) == {12}
    browser.open(page_url + "?service=shop&instance=silent")
    browser.wait_for("nothing", lambda: "tells nothing" in browser.text(".runtime-none"))
    assert titles(browser) == []


def test_choosing_an_instance_changes_the_runtime_and_the_address(browser, page_url, shop):
    browser.open(page_url + "?service=shop")
    browser.wait_for("charts", lambda: len(titles(browser)) == 3)
    browser.click(".field-instance")
    browser.wait_for("the choices", lambda: len(browser.texts(".q-item")) == 3)
    assert browser.texts(".q-item") == ["java-1", f"py {HOSTILE}", "silent"]
    browser.click(".q-item:nth-child(2)")
    browser.wait_for("Python", lambda: titles(browser) == ["Python CPU"])
    browser.wait_for("its address", lambda: "&instance=py+" in browser.url())


def test_what_has_no_agent_stands_under_its_own_heading(browser, page_url, shop):
    browser.open(page_url)
    browser.wait_for("the heading", lambda: "without an agent" in browser.text(".rows-head"))
    groups = [one.split("\n")[0] for one in browser.texts(".rows")]
    assert groups == ["shop", "10.0.0.9:1"]
    address, database = browser.texts(".virtual .service")
    assert address.split("\n") == ["10.0.0.9:1", "unknown"]
    assert database.split("\n")[:2] == [f"db {HOSTILE}", "database"]
    assert "2.0 % failing" in database


def test_a_database_has_the_metrics_of_the_calls_to_it(browser, page_url, shop):
    browser.click(".virtual .service:last-child")
    browser.wait_for("it", lambda: browser.text(".detail-name") == f"db {HOSTILE}")
    browser.wait_for("its metric", lambda: "database_access_cpm" in browser.text(".metric"))
    browser.wait_for("its figures", lambda: "98 %" in browser.text(".figure-value"))
    assert browser.text(".slow-endpoints .panel-title") == "Slowest statements"
    assert browser.text(".instances") == browser.text(".busy-endpoints") == ""
    assert browser.text(".runtime") == ""


def test_a_longer_time_is_shown_by_the_hour_and_is_a_link(browser, page_url, shop):
    browser.open(page_url + "?service=shop")
    browser.wait_for("minutes", lambda: browser.text(".detail-note") == "last full minute")
    browser.click(".detail-head .picker .q-field")
    browser.wait_for("the choices", lambda: browser.texts(".q-item"))
    day = browser.texts(".q-item").index("last day") + 1
    browser.click(f".q-item:nth-child({day})")
    browser.wait_for("hours", lambda: browser.text(".detail-note") == "last full hour")
    browser.wait_for("its address", lambda: browser.url().endswith("?service=shop&last=1d"))
    browser.wait_for("100 %", lambda: "100 %" in browser.text(".figure-value"))


def test_a_time_that_is_over_shows_its_last_minute(browser, page_url, shop, minutes):
    start, end = (
        datetime.strptime(str(one), "%Y%m%d%H%M").strftime("%Y-%m-%dT%H:%M")
        for one in (minutes[0], minutes[10])
    )
    browser.open(page_url + f"?service=shop&start={start}&end={end}")
    browser.wait_for("its figures", lambda: "98 %" in browser.text(".figure-value"))
    assert browser.text(".detail-note") == "last full minute"


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("dark", [False, True])
def test_it_fits_wide_and_narrow_screens_in_light_and_dark(
    browser, page_url, shop, shots, width, dark
):
    browser.resize(width, 1400 if width > 500 else 3000, dark=dark)
    browser.open(page_url + "?service=shop")
    browser.wait_for("a drawn chart", lambda: browser.ink(".chart-runtime canvas") > 200)
    assert browser.script("return document.documentElement.scrollWidth") <= width
    browser.screenshot(shots / f"dashboard-{width}{'-dark' if dark else ''}.png")
