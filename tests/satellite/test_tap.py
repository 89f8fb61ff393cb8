from __future__ import annotations

import asyncio
import json
import socket
from base64 import b64decode, b64encode
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from skyfarer.base.errors import ConfigError, PermanentError
from skyfarer.cli.tap import TapSettings, line, tap
from skyfarer.satellite.tap import OUT, PAYLOAD_BYTES_MAX, RATE_MAX, Sighting, Tap, Watcher, Wish
from skyfarer.satellite.tap_socket import SOCKET_NAME, WAITING_MAX, TapSocket, reachable
from skyfarer.testing.clock import HandClock
from skyfarer.testing.traces import segment
from skyfarer.wire.rpc import Kind

LOGS = "/skywalking.v3.LogReportService/collect"
WAIT_S = 120.0


class Seen:
    """A watcher that keeps what it is shown, as long as it has room."""

    def __init__(self, wish: Wish, room: int = 10_000) -> None:
        self.clock = HandClock()
        self.sightings: list[Sighting] = []
        self._room = room
        self.watcher = Watcher(wish, self._show, self.clock)

    def _show(self, sighting: Sighting) -> bool:
        if len(self.sightings) >= self._room:
            return False
        self.sightings.append(sighting)
        return True

    def offer(
        self, *payloads: bytes, pipe: str = "native", kind: int = 1, point: str = "in"
    ) -> None:
        self.watcher.offer(pipe, point, kind, payloads)


def test_a_watcher_is_shown_what_it_asked_for_and_nothing_else() -> None:
    seen = Seen(Wish(pipe="native", kind=Kind.LOG, point=OUT, rate=100))

    seen.offer(b"other pipe", pipe="otlp", kind=Kind.LOG, point=OUT)
    seen.offer(b"other kind", kind=Kind.SEGMENT, point=OUT)
    seen.offer(b"other point", kind=Kind.LOG, point="in")
    seen.offer(b"this", kind=Kind.LOG, point=OUT)

    assert [one.payload for one in seen.sightings] == [b"this"]
    assert seen.watcher.missed == 0


def test_no_more_is_shown_than_the_rate_and_the_rest_is_counted() -> None:
    seen = Seen(Wish(rate=10))

    seen.offer(*[b"x"] * 1000)
    assert (len(seen.sightings), seen.watcher.missed) == (10, 990)
    seen.clock.seconds += 0.5
    seen.offer(*[b"y"] * 1000)
    assert (len(seen.sightings), seen.watcher.missed) == (15, 1985)


def test_less_than_one_a_second_is_a_rate_too() -> None:
    seen = Seen(Wish(rate=0.1))

    seen.offer(b"first", b"second")
    seen.clock.seconds += 10
    seen.offer(b"third")

    assert [one.payload for one in seen.sightings] == [b"first", b"third"]


def test_a_watcher_that_does_not_read_misses_and_nobody_waits_for_it() -> None:
    seen = Seen(Wish(rate=RATE_MAX), room=3)

    seen.offer(*[b"x"] * 50)

    assert (len(seen.sightings), seen.watcher.missed) == (3, 47)


def test_only_the_beginning_of_a_large_record_is_copied() -> None:
    seen = Seen(Wish())

    seen.offer(b"x" * (2 * PAYLOAD_BYTES_MAX))

    (one,) = seen.sightings
    assert (len(one.payload), one.size_bytes) == (PAYLOAD_BYTES_MAX, 2 * PAYLOAD_BYTES_MAX)


def test_a_tap_nobody_watches_has_no_watchers() -> None:
    tapped, seen = Tap(), Seen(Wish())

    tapped.add(seen.watcher)
    tapped.offer("native", "in", 1, [b"seen"])
    tapped.remove(seen.watcher)
    tapped.offer("native", "in", 1, [b"unseen"])

    assert tapped.watchers == ()
    assert [one.payload for one in seen.sightings] == [b"seen"]


def connect(directory: Path, wish: object) -> Any:
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(WAIT_S)
    with reachable(directory) as path:
        connection.connect(path)
    connection.sendall(json.dumps(wish).encode() + b"\n")
    return connection.makefile("rb")


def shown(lines: Any) -> dict[str, Any]:
    """The next entry with a payload."""
    for text in lines:
        entry: dict[str, Any] = json.loads(text)
        if "payload" in entry or "error" in entry:
            return entry
    raise AssertionError("the tap was closed")


def test_records_are_seen_as_they_come_and_as_they_leave(rig: Callable[..., Any]) -> None:
    async def scenario() -> None:
        async with rig() as r:
            lines = await asyncio.to_thread(connect, r.directory, {"pipe": "native", "kind": 1})
            await r.until(lambda: r.satellite.around.tap.watchers)
            await r.collect([b"a log"], LOGS)
            await r.collect([b"one"])
            came = await asyncio.to_thread(shown, lines)
            left = await asyncio.to_thread(shown, lines)
            assert [entry["point"] for entry in (came, left)] == ["in", "out"]
            assert [b64decode(entry["payload"]) for entry in (came, left)] == [b"one"] * 2
            lines.close()

    asyncio.run(scenario())


def test_a_watcher_that_goes_away_is_forgotten(tmp_path: Path) -> None:
    async def scenario() -> None:
        tapped = Tap()
        served = TapSocket(tmp_path, tapped, HandClock())
        await served.start()
        lines = await asyncio.to_thread(connect, tmp_path, {})
        async with asyncio.timeout(WAIT_S):
            while True:
                if tapped.watchers:
                    break
                await asyncio.sleep(0.01)
            lines.close()
            while tapped.watchers:
                tapped.offer("native", "in", 1, [b"x"] * (2 * WAITING_MAX))
                await asyncio.sleep(0.01)
        await served.stop()
        assert not (tmp_path / SOCKET_NAME).exists()

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("wish", "says"),
    [
        ([], "must be a JSON object"),
        ({"rate": 0}, "rate must be above 0"),
        ({"rate": 1e9}, "rate must be above 0 and at most 1000"),
        ({"point": "middle"}, "point must be 'in' or 'out'"),
        ({"kind": "SEGMENT"}, "kind a number"),
    ],
)
def test_a_wish_that_makes_no_sense_is_answered_with_a_sentence(
    tmp_path: Path, wish: object, says: str
) -> None:
    async def scenario() -> None:
        served = TapSocket(tmp_path, Tap(), HandClock())
        await served.start()
        lines = await asyncio.to_thread(connect, tmp_path, wish)
        assert says in (await asyncio.to_thread(shown, lines))["error"]
        await served.stop()

    asyncio.run(scenario())


def test_the_socket_is_its_owners_and_replaces_what_a_kill_left(tmp_path: Path) -> None:
    async def scenario() -> None:
        deep = tmp_path / ("d" * 100) / ("e" * 100)
        deep.mkdir(parents=True)
        (deep / SOCKET_NAME).write_text("left")
        served = TapSocket(deep, Tap(), HandClock())
        await served.start()
        assert (deep / SOCKET_NAME).stat().st_mode & 0o777 == 0o600
        await served.stop()

    asyncio.run(scenario())


def test_the_command_shows_records_to_people(
    rig: Callable[..., Any], capsys: pytest.CaptureFixture[str]
) -> None:
    async def scenario() -> None:
        async with rig() as r:
            settings = TapSettings(None, "segment", "in", 100.0, 1, json=False)
            watching = asyncio.create_task(asyncio.to_thread(tap, r.directory, settings))
            await r.until(lambda: r.satellite.around.tap.watchers)
            made = segment("order", "order-1", "GET:/orders", 1_700_000_000_000, 5)
            await r.collect([made.SerializeToString()])
            assert await watching == 0

    asyncio.run(scenario())

    output = capsys.readouterr().out
    assert "native in  SEGMENT" in output
    assert 'operationName: "GET:/orders"' in output
    assert len(output.splitlines()) == 1


@pytest.mark.parametrize("payload", [b"\xff\xff", b"", b"\x0a"])
def test_what_cannot_be_decoded_is_shown_all_the_same(payload: bytes) -> None:
    entry = {
        "time_ms": 0,
        "pipe": "native",
        "point": "in",
        "kind": int(Kind.SEGMENT),
        "size_bytes": len(payload),
        "payload": b64encode(payload).decode(),
    }

    assert line(entry).startswith(f"00:00:00.000 native in  SEGMENT {len(payload)} B")


def test_a_satellite_that_does_not_run_and_a_kind_that_is_none_are_one_sentence(
    tmp_path: Path,
) -> None:
    with pytest.raises(PermanentError, match="can be tapped"):
        tap(tmp_path, TapSettings(None, None, None, 1.0, 1, json=True))
    with pytest.raises(ConfigError, match="no kind 'SEGMNT'; did you mean 'SEGMENT'"):
        tap(tmp_path, TapSettings(None, "SEGMNT", None, 1.0, 1, json=True))
