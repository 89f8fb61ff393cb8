"""The page of the registry in a real browser, on a real storage: a story in the order written."""

from __future__ import annotations

import re
from datetime import UTC
from urllib.parse import urlsplit

import pytest

from contracts.inventory_contract import ADDRESS, ENDPOINT, INSTANCE, NOON, SERVICE, apply
from skyfarer.oap.core.inventory import Inventory
from skyfarer.oap.storage.embedded import EmbeddedStorage
from skyfarer.ui.registry.model import Lookup

HOSTILE = "<script>window.hit = 1</script>'\"`${7*7}"
LONG = "y" * 1_000_000


@pytest.fixture(autouse=True)
def silent_and_at_home(browser, page_url):
    yield
    assert browser.console_errors() == []
    assert {urlsplit(address).hostname for address in browser.addresses()} <= {"127.0.0.1"}
    assert browser.script("return window.hit") is None


@pytest.fixture(scope="module")
def storage(tmp_path_factory):
    storage = EmbeddedStorage()
    storage.start(tmp_path_factory.mktemp("storage") / "skyfarer.duckdb", UTC)
    yield storage
    storage.stop()


@pytest.fixture(scope="module")
def url(oap, page_url, storage):
    oap.go()
    oap.beside = {"inventories": storage}
    oap.come()
    return page_url + "registry"


def names(browser) -> list[str]:
    return browser.texts(".registry-name")


def test_an_empty_registry_says_who_would_be_in_it(browser, url):
    browser.resize(1280, 800)
    browser.open(url)
    browser.wait_for("the sentence", lambda: "Nothing is registered" in browser.text(".missing"))
    assert browser.text(".place.here") == "Registry"


def test_services_show_up_with_their_ids_types_and_times(browser, storage, url, shots):
    shop = Inventory(SERVICE, "shop", node_type=3, register_time=NOON, heartbeat_time=NOON + 5_000)
    address = Inventory(ADDRESS, "10.0.0.1:80", node_type=1, register_time=NOON)
    peer = Inventory(SERVICE, "10.0.0.1:80", is_address=True, address_id=2, mapping_service_id=2)
    apply(storage, [shop], [address], [peer], [Inventory(SERVICE, HOSTILE)])
    pod = Inventory(INSTANCE, "shop-pid:1@host", 2, "ab12", properties='{"os": "Linux"}')
    paths = [Inventory(ENDPOINT, f"/path/{n:03d}", 2, detect_point=1) for n in range(60)]
    apply(storage, [pod], paths)
    browser.open(url)
    browser.wait_for("rows", lambda: names(browser) == ["shop", "10.0.0.1:80", HOSTILE])
    first, second, _ = browser.texts(".registry-row:not(.registry-heads)")
    assert first.split("\n") == ["2", "shop", "Http", "11-15 12:00:00", "11-15 12:00:05"]
    assert "address 10.0.0.1:80 #2" in second
    assert "is shop #2" in second
    browser.screenshot(shots / "registry-1280.png")


def test_an_instance_has_its_service_and_what_it_told_of_itself(browser, url):
    browser.open(url + "?kind=instance")
    browser.wait_for("the instance", lambda: names(browser) == ["shop-pid:1@host"])
    assert browser.text(".registry-owner") == "shop #2"
    assert browser.text(".registry-facts") == 'uuid ab12 · {"os": "Linux"}'


def test_many_are_paged_and_each_page_is_an_address(browser, url):
    browser.open(url + "?kind=endpoint")
    browser.wait_for("a page", lambda: len(names(browser)) == 50)
    browser.click(".pages .q-btn:last-child")
    browser.wait_for("the next", lambda: names(browser)[:1] == ["/path/050"])
    browser.wait_for("its address", lambda: browser.url().endswith("?kind=endpoint&page=2"))
    browser.open(browser.url())
    browser.wait_for("the same", lambda: len(names(browser)) == 10)
    assert names(browser)[0] == "/path/050"


def test_a_name_is_found_by_a_part_of_it_and_an_id_by_its_number(browser, url):
    browser.open(url + "?kind=endpoint")
    browser.wait_for("rows", lambda: len(names(browser)) == 50)
    browser.type(".field-long input", "/PATH/01")
    browser.wait_for("ten of them", lambda: len(names(browser)) == 10)
    assert names(browser)[-1] == "/path/019"
    browser.open(url + "?kind=endpoint&keyword=%2312")
    browser.wait_for("the one", lambda: names(browser) == ["/path/010"])
    browser.open(url + "?keyword=nobody")
    browser.wait_for("the sentence", lambda: "Nothing fits" in browser.text(".missing"))


@pytest.mark.parametrize("number", ["2147483647", "2147483648", "9999999999", "9" * 190])
def test_an_id_that_nobody_has_is_not_found_and_one_that_nobody_can_have_neither(
    browser, url, number
):
    browser.open(f"{url}?keyword=%23{number}")
    browser.wait_for("a sentence", lambda: browser.text(".missing") or browser.text(".banner"))
    assert browser.text(".missing").startswith("Nothing fits")
    assert browser.text(".banner") == ""


def test_at_the_end_of_what_can_be_paged_there_is_no_next_page(browser, storage, url):
    names = [Inventory(ADDRESS, f"10.1.{n // 250}.{n % 250}:80") for n in range(10_020)]
    apply(storage, names)
    browser.open(url + "?kind=address&page=100000")
    browser.wait_for("the last page", lambda: "page 200, the last" in browser.text(".pages"))
    disabled = "return document.querySelector('.pages .q-btn:last-child').disabled"
    assert browser.script(disabled) is True
    browser.open(url + "?kind=address&page=199")
    browser.wait_for("the one before", lambda: browser.text(".pages .muted") == "page 199")
    assert browser.script(disabled) is False


def test_a_name_of_a_megabyte_is_cut_and_says_so(browser, storage, url):
    apply(storage, [Inventory(SERVICE, LONG)])
    browser.open(url + "?keyword=yyy")
    browser.wait_for("the name", lambda: names(browser))
    assert names(browser)[0].startswith("yyy")
    assert re.search(r"… \([0-9,]+ characters( more)?\)$", names(browser)[0])
    assert len(names(browser)[0]) < 1_100


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("dark", [False, True])
def test_it_fits_wide_and_narrow_screens_in_light_and_dark(browser, url, shots, width, dark):
    browser.resize(width, 900, dark=dark)
    browser.open(url)
    browser.wait_for("rows", lambda: len(names(browser)) == 4)
    assert browser.script("return document.documentElement.scrollWidth") <= width
    browser.screenshot(shots / f"registry-{width}{'-dark' if dark else ''}.png")


@pytest.mark.parametrize(
    "address",
    [
        {"kind": "planet", "page": "-3"},
        {"page": "99999999999999999999"},
        {"kind": "", "keyword": ""},
    ],
)
def test_an_address_that_was_mistyped_asks_the_usual(address):
    assert Lookup.of(address) == Lookup()


def test_a_question_is_its_address_and_back():
    lookup = Lookup("endpoint", "#12 & more", 3)
    assert Lookup.of(lookup.address()) == lookup
    assert (Lookup("service", "#12").id, lookup.id, Lookup("service", "12").id) == ("12", "", "")
