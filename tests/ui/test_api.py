"""The page's client against a real query server."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from skyfarer.base.errors import RetryableError
from skyfarer.oap.query import limits
from skyfarer.oap.storage.embedded import searching
from skyfarer.oap.storage.postgresql import database
from skyfarer.telemetry.ledger import Ledger
from skyfarer.ui.api import (
    SEARCH_TIMEOUT_S,
    SERVICES_SHOWN_MAX,
    OapAwayError,
    OapClient,
    OapRefusedError,
    Wanted,
)
from skyfarer.ui.model import Ledger as LedgerShown
from skyfarer.ui.model import Overview


def ask(url: str, wanted: Wanted = Wanted()) -> Overview:  # noqa: B008
    async def once() -> Overview:
        client = OapClient(url)
        try:
            return await client.overview((await client.status()).time, wanted)
        finally:
            await client.stop()

    return asyncio.run(once())


def books(url: str) -> LedgerShown | None:
    async def once() -> LedgerShown | None:
        client = OapClient(url)
        try:
            return (await client.status()).ledger
        finally:
            await client.stop()

    return asyncio.run(once())


def test_an_oap_that_knows_nobody_has_a_time_a_ledger_and_no_service(oap):
    overview = ask(oap.url)
    ledger = books(oap.url)
    assert ledger is not None and ledger.balanced
    assert (list(overview.shown), overview.selected, overview.vitals) == ([], None, {})


def test_a_single_service_is_selected_and_has_its_metrics_over_the_window(oap):
    oap.reader.add_service("lonely")
    overview = ask(oap.url)
    assert overview.selected is not None and overview.selected.name == "lonely"
    assert len(overview.vitals["lonely"].resp_time.values) == 31


def test_only_the_selected_service_is_read_in_full(oap):
    oap.fill()
    overview = ask(oap.url, Wanted(selected="mailer"))
    assert len(overview.vitals["mailer"].resp_time.values) == 31
    assert len(overview.vitals["gateway"].resp_time.values) == 2
    assert len(overview.vitals["gateway"].cpm.values) == 31
    assert overview.vitals["mailer"].failing and not overview.vitals["gateway"].failing
    assert overview.vitals["payment"].slow


def test_a_selected_service_outside_the_filter_is_still_read(oap):
    overview = ask(oap.url, Wanted(filter="CATA", selected="mailer"))
    assert [service.name for service in overview.shown] == ["catalog"]
    assert set(overview.vitals) == {"catalog", "mailer"}


def test_no_more_than_the_bound_is_shown_and_the_rest_is_counted(oap):
    for number in range(100):
        oap.reader.add_service(f"worker-{number:02d}")
    overview = ask(oap.url, Wanted(filter="worker"))
    assert (len(overview.shown), overview.total) == (SERVICES_SHOWN_MAX, 100)


def test_a_ledger_that_does_not_balance_is_told(oap):
    oap.reader.books = Ledger(10, 5, 3, {"malformed": 1})
    ledger = books(oap.url)
    assert ledger is not None
    assert (ledger.dropped, ledger.balanced) == (1, False)


def test_an_error_of_the_oap_is_refused_and_silence_is_away(oap):
    oap.reader.failure = RetryableError("storage is starting")
    with pytest.raises(OapRefusedError, match="storage is starting"):
        ask(oap.url)
    oap.reader.failure = None
    oap.go()
    with pytest.raises(OapAwayError):
        ask(oap.url)


def test_a_search_is_waited_for_longer_than_the_oap_looks_for_anything():
    storage_s = max(searching.READ_TIMEOUT_S, database.READ_TIMEOUT_S)
    assert limits.ANSWER_S_MAX + storage_s < SEARCH_TIMEOUT_S
    assert limits.LOG_SEARCHES_MAX * storage_s < SEARCH_TIMEOUT_S


def test_what_the_oap_says_when_it_gives_up_arrives_and_an_oap_that_hangs_is_soon_away():
    held = asyncio.Event()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        await held.wait()
        body = b'{"data": null, "errors": [{"message": "ask for a shorter time"}]}'
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%s" % (len(body), body))
        writer.close()

    async def story() -> None:
        listener = await asyncio.start_server(answer, "127.0.0.1", 0)
        port = listener.sockets[0].getsockname()[1]
        client = OapClient(f"http://127.0.0.1:{port}", timeout_s=0.2, search_timeout_s=60.0)
        async with listener:
            search = asyncio.create_task(client.graphql("query slow { a }", {}))
            with pytest.raises(OapAwayError, match=r"no answer within 0\.2 s"):
                await client.status()
            held.set()
            with pytest.raises(OapRefusedError, match="ask for a shorter time"):
                await search
        await client.stop()

    asyncio.run(story())


def test_an_address_where_something_else_answers_is_refused():
    async def speak(server: Callable[..., Coroutine[Any, Any, None]]) -> None:
        listener = await asyncio.start_server(server, "127.0.0.1", 0)
        port = listener.sockets[0].getsockname()[1]
        client = OapClient(f"http://127.0.0.1:{port}")
        async with listener:
            with pytest.raises(OapRefusedError, match="without a JSON answer"):
                await client.status()
        await client.stop()

    async def teapot(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 418 teapot\r\ncontent-length: 6\r\nconnection: close\r\n\r\nteapot")
        await writer.drain()
        writer.close()

    asyncio.run(speak(teapot))
