"""A configuration of the original, as its users have it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

from skyfarer.base.clock import SystemClock
from skyfarer.base.errors import ConfigError
from skyfarer.base.units import MIB
from skyfarer.satellite.app import Satellite
from skyfarer.satellite.config import load
from skyfarer.satellite.sections import QueueConfig
from skyfarer.wire.rpc import Kind

STOCK = Path(__file__).with_name("stock") / "satellite_config.yaml"
ENVIRON = {"HOME": "/home/agent", "SATELLITE_GRPC_CLIENT": "oap:11800"}
LOGS = "/skywalking.v3.LogReportService/collect"
DISCOVERY = "/skywalking.v3.ConfigurationDiscoveryService/fetchConfigurations"


def edited(directory: Path, *changes: tuple[str, str]) -> Path:
    text = STOCK.read_text()
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    file = directory / "satellite_config.yaml"
    file.write_text(text)
    return file


def notes(file: Path, environ: dict[str, str] | None = None) -> list[str]:
    """What is said after everything the file asks for was made once."""
    config = load(file, {**ENVIRON, **(environ or {})})
    Satellite(config, SystemClock(), Random(1))
    return config.notes.lines()


def test_all_eighteen_pipes_of_the_stock_file_can_be_made() -> None:
    config = load(STOCK, ENVIRON)
    satellite = Satellite(config, SystemClock(), Random(1))

    assert len(satellite.pipes) == 18
    assert [one.name for one in satellite.pipes if one.queued is None] == ["cdspipe"]
    assert {one.forwarder.address for one in satellite.pipes} == {("oap", 11800)}
    assert satellite.address("grpc-server") == ("0.0.0.0", 11800)
    queues = [one.queue for one in config.pipes if isinstance(one.queue, QueueConfig)]
    assert {queue.capacity_bytes for queue in queues} == {64 * MIB}
    assert [one.sender.max_buffer_size for one in config.pipes[:3]] == [200, 20, 200]
    assert config.telemetry.prometheus.address == ":1234"


def test_each_thing_read_differently_is_said_once_with_where_it_stands() -> None:
    said = notes(STOCK)

    assert [line for line in said if "none-fallbacker" in line] == [
        "satellite_config.yaml: pipes[0].sender.fallbacker, pipes[1].sender.fallbacker and 16 more:"
        " none-fallbacker would lose a batch that fails; it is sent again instead"
    ]
    for what in (
        "log_pattern, time_pattern",
        "export_type pprof",
        "memory-queue lies in files",
        "a pipe has one queue",
        "forwarders are checked, not needed",
        "consistent hashing",
        "the load of the whole machine refuses nobody",
        "a stream's messages are kept as they come",
        "a batch goes to any upstream",
    ):
        assert len([line for line in said if what in line]) == 1, what
    assert len(said) == 10


@pytest.mark.parametrize(
    ("environ", "silent"),
    [
        ({"SATELLITE_QUEUE_PARTITION": "1"}, "a pipe has one queue"),
        ({"SATELLITE_TELEMETRY_EXPORT_TYPE": "prometheus"}, "pprof"),
        ({"SATELLITE_GRPC_ACCEPT_LIMIT_CPU_UTILIZATION": "100"}, "the load of the whole machine"),
    ],
)
def test_a_value_at_which_both_behave_alike_is_not_spoken_of(
    environ: dict[str, str], silent: str
) -> None:
    assert any(silent in line for line in notes(STOCK))
    assert not any(silent in line for line in notes(STOCK, environ))


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        (
            "min_flush_events: ${SATELLITE_LOGPIPE_SENDER_MIN_FLUSH_EVENTS:1}",
            "min_flush_events: 100",
            "pipes[0].sender.min_flush_events: a batch leaves at flush_time, however few",
        ),
        (
            "plugin_name: none-fallbacker",
            "{plugin_name: timer-fallbacker, max_attempts: 3, exponential_backoff: 2000}",
            "timer-fallbacker would lose a batch after max_attempts",
        ),
        (
            'plugin_name: "memory-queue"',
            "plugin_name: mmap-queue\n        queue_capacity_segments: 100",
            "segment_size times queue_capacity_segments is read as capacity_bytes",
        ),
        (
            "insecure_skip_verify: ${SATELLITE_GRPC_INSECURE_SKIP_VERIFY:false}",
            "insecure_skip_verify: true",
            "anyone may pose as the upstream",
        ),
    ],
)
def test_what_others_write_into_it_is_accepted_and_noted(
    tmp_path: Path, old: str, new: str, says: str
) -> None:
    changes = [(old, new)]
    if "timer" in new:
        changes = [("fallbacker:\n        plugin_name: none-fallbacker", f"fallbacker: {new}")]
    if "mmap" in new:
        buffer = "        event_buffer_size: ${SATELLITE_QUEUE_EVENT_BUFFER_SIZE:5000}\n"
        changes.append((buffer, ""))
    if "insecure" in new:
        changes += [
            ("SATELLITE_GRPC_ENABLE_TLS:false", "SATELLITE_GRPC_ENABLE_TLS:true"),
        ]

    assert any(says in line for line in notes(edited(tmp_path, *changes)))


def test_the_pauses_of_a_timer_fallbacker_are_kept(tmp_path: Path) -> None:
    timer = "{plugin_name: timer-fallbacker, exponential_backoff: 2000, max_backoff: 5000}"
    old = "fallbacker:\n        plugin_name: none-fallbacker"

    config = load(edited(tmp_path, (old, f"fallbacker: {timer}")), ENVIRON)

    assert (config.pipes[0].sender.retry.initial, config.pipes[0].sender.retry.maximum) == (
        "2000ms",
        "5000ms",
    )


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("event_buffer_size", "event_bufer_size", "pipes[0].gatherer.queue has no key"),
        ("none-fallbacker", "non-fallbacker", "no fallbacker named 'non-fallbacker'; did you mean"),
        (
            "native-log-grpc-forwarder",
            "native-log-grpc-forwader",
            "no forwarder named 'native-log-grpc-forwader'; did you mean 'native-log-grpc-forward",
        ),
        ("SATELLITE_GRPC_CLIENT_FINDER:static", "X:kubernetes", "finder_type is 'kubernetes'"),
        ("time_pattern:", "time_patern:", "logger has no key 'time_patern'"),
    ],
)
def test_a_mistake_in_it_is_still_one_sentence(
    tmp_path: Path, old: str, new: str, says: str
) -> None:
    with pytest.raises(ConfigError) as refused:
        notes(edited(tmp_path, (old, new)))

    assert says in str(refused.value)
    assert str(refused.value).startswith("satellite_config.yaml: ")


def test_the_stock_file_forwards_and_asks(rig: Callable[..., Any]) -> None:
    """Each pipe by its own queue, on one port, and what waits for an answer gets the upstream's."""

    async def scenario() -> None:
        async with rig(config=STOCK, SATELLITE_LOGPIPE_SENDER_FLUSH_TIME="20") as r:
            r.upstream.answers[DISCOVERY] = b"\n\x03cds"
            await r.collect([b"one", b"two"])
            await r.collect([b"a log"], LOGS)
            assert await r.unary(DISCOVERY, b"\n\x07service") == b"\n\x03cds"
            await r.until_empty()
            assert r.upstream.payloads(Kind.SEGMENT) == [b"one", b"two"]
            assert r.upstream.payloads(Kind.LOG) == [b"a log"]
            books = {pipe.name: pipe.ledger().delivered for pipe in r.satellite.pipes}
            assert (books["tracingpipe"], books["logpipe"], books["cdspipe"]) == (2, 1, 0)
            _, text = await r.get("/metrics")
            labels = 'cluster="satellite-cluster",service="satellite-service"'
            assert f'gatherer_receive_count{{{labels},instance="satellite-instance"' in text

    asyncio.run(scenario())


def test_when_to_flush_and_how_much_to_map_are_read_as_they_were_meant(tmp_path: Path) -> None:
    buffer = "        event_buffer_size: ${SATELLITE_QUEUE_EVENT_BUFFER_SIZE:5000}\n"
    written = (
        "plugin_name: mmap-queue\n        flush_period: 500\n        flush_ceiling_num: 77\n"
        "        max_in_mem_segments: 1000"
    )
    config = load(edited(tmp_path, ('plugin_name: "memory-queue"', written), (buffer, "")), ENVIRON)
    queue = config.pipes[0].queue
    assert isinstance(queue, QueueConfig)
    assert (queue.flush_period_ms, queue.flush_count, queue.segments_mapped_max) == (500, 77, 64)
