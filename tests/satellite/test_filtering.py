"""Filters and refusals through a whole satellite, with real gRPC on both sides."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from skyfarer.satellite.config import DEFAULT_FILE
from skyfarer.satellite.dead_letters import read
from skyfarer.testing.traces import segment
from skyfarer.testing.upstream import Upstream
from skyfarer.wire.messages import InstancePingPkg, SegmentObject, log, meter
from skyfarer.wire.rpc import Kind
from skyfarer.wire.status import Status, StatusError

LOGS = "/skywalking.v3.LogReportService/collect"
PING = "/skywalking.v3.ManagementService/keepAlive"

FILTERS = """
      filters:
        - plugin_name: dropper
          drop:
            - kind: [instance_ping]
            - kind: [log]
              level: [debug]
        - plugin_name: sampler
          rate: 0
        - plugin_name: log-parser
        - plugin_name: meter-converter
          name: order_amount
          value: amount
          on_failure: park
        - plugin_name: redactor
          rules:
            - pattern: "[0-9]{16}"
              where: [tags, body]
"""


@pytest.fixture
def filtering(tmp_path: Path) -> Path:
    """The shipped configuration with filters in its first pipe."""
    shipped = DEFAULT_FILE.read_text()
    assert "      filters: []\n" in shipped
    file = tmp_path / "satellite.yaml"
    file.write_text(shipped.replace("      filters: []\n", FILTERS, 1))
    return file


def seg(trace_id: str, error: bool = False) -> bytes:
    made = segment("order", "order-1", "GET:/", 1_700_000_000_000, 5, error, trace_id=trace_id)
    return made.SerializeToString()


def line(**fields: object) -> bytes:
    body = log.LogDataBody(text=log.TextLog(text=json.dumps(fields)))
    return log.LogData(timestamp=1, service="order", body=body).SerializeToString()


def test_filters_of_the_configuration_decide_and_the_books_say_so(
    rig: Callable[..., Any], filtering: Path
) -> None:
    async def scenario() -> None:
        async with rig(config=filtering) as r:
            await r.collect([seg(f"t{n}", error=n % 10 == 0) for n in range(100)])
            await r.unary(PING, InstancePingPkg(service="order").SerializeToString())
            text = log.LogDataBody(text=log.TextLog(text="no JSON"))
            plain = log.LogData(service="order", body=text).SerializeToString()
            await r.collect([line(amount=7, card="4111111111111111"), plain], LOGS)
            await r.until_empty()

            kept = [SegmentObject.FromString(one) for one in r.upstream.payloads(Kind.SEGMENT)]
            assert [one.traceId for one in kept] == [f"t{n}" for n in range(0, 100, 10)]
            (logged,) = [log.LogData.FromString(one) for one in r.upstream.payloads(Kind.LOG)]
            assert {tag.key: tag.value for tag in logged.tags.data} == {
                "amount": "7",
                "card": "***",
            }
            assert "4111" not in logged.body.text.text
            (made,) = r.upstream.payloads(Kind.METER_COLLECTION)
            sample = meter.MeterDataCollection.FromString(made).meterData[0]
            assert (sample.service, sample.singleValue.value) == ("order", 7.0)

            ledger = r.satellite.ledger()
            assert ledger.balanced
            assert (ledger.accepted, ledger.delivered) == (103, 11)
            assert ledger.dropped == {
                "filter:sampler": 90,
                "filter:dropper": 1,
                "filter:meter-converter": 1,
            }
            (letter,) = read(r.directory / "native" / "dead-letters")
            assert letter.payload == plain
            _, metrics = await r.get("/metrics")
            assert 'processor_emitted_total{pipe="native"} 1' in metrics
            assert 'processor_dropped_total{pipe="native",reason="filter:sampler"} 90' in metrics
            assert 'filter="log-parser",reason="unparsable"} 1' in metrics
            assert 'queue_dropped_total{reason="filter:sampler"} 90' in metrics

    asyncio.run(scenario())


def test_a_filter_decides_again_after_a_restart_and_nothing_is_counted_twice(
    rig: Callable[..., Any], filtering: Path
) -> None:
    sent = [seg(f"t{n}", error=n % 2 == 0) for n in range(40)]

    async def scenario() -> None:
        async with rig(up=False, config=filtering) as r:
            await r.collect(sent)
            for _ in range(3):
                await r.stop_satellite(0.1)
                await r.start_satellite()
            await r.upstream.start()
            await r.until_empty()
            assert r.upstream.payloads(Kind.SEGMENT) == sent[::2]
            ledger = r.satellite.ledger()
            assert (ledger.delivered, ledger.dropped) == (20, {"filter:sampler": 20})

    asyncio.run(scenario())


@pytest.mark.parametrize("status", [Status.UNAUTHENTICATED, Status.PERMISSION_DENIED])
def test_an_upstream_that_refuses_our_token_gets_everything_once_that_is_put_right(
    rig: Callable[..., Any], status: Status, caplog: pytest.LogCaptureFixture
) -> None:
    upstream, sent = Upstream(), [seg(f"t{n}") for n in range(10)]

    def refuse(kind: int, payloads: Sequence[bytes]) -> None:
        raise StatusError(status, "token expired")

    async def scenario() -> None:
        accept, upstream.judge = upstream.judge, refuse
        environ = {"SKYFARER_SATELLITE_SENDER_RETRY_MAX_ELAPSED": "1ms"}
        async with rig(upstream, **environ) as r:
            await r.collect(sent)
            await r.until(lambda: "credentials" in caplog.text)
            _, metrics = await r.get("/metrics")
            assert 'sender_access_denied{pipe="native"} 1' in metrics
            assert r.satellite.ledger().queued == 10
            upstream.judge = accept
            # It would try again by itself in some seconds; being stopped it does at once.
            await r.stop_satellite(30.0)
            assert upstream.payloads(Kind.SEGMENT) == sent
            assert r.satellite.ledger().delivered == 10

    asyncio.run(scenario())


@pytest.mark.parametrize("status", [Status.INTERNAL, Status.UNKNOWN])
def test_a_record_that_breaks_the_upstream_is_parked_and_does_not_hold_up_the_others(
    rig: Callable[..., Any], status: Status
) -> None:
    sent = [seg(f"t{n}") for n in range(60)]
    poison = {sent[0], sent[31]}

    def fall_over(kind: int, payloads: Sequence[bytes]) -> None:
        if poison.intersection(map(bytes, payloads)):
            raise StatusError(status, "NullPointerException")

    async def scenario() -> None:
        async with rig(Upstream(fall_over)) as r:
            await r.collect(sent)
            await r.until_empty()
            assert set(r.upstream.payloads(Kind.SEGMENT)) == set(sent) - poison
            assert r.satellite.ledger().dropped == {"rejected": 2}
            letters = list(read(r.directory / "native" / "dead-letters"))
            assert [(one.sequence, one.payload) for one in letters] == [
                (0, sent[0]),
                (31, sent[31]),
            ]

    asyncio.run(scenario())
