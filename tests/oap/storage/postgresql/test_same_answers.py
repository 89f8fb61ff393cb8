"""The same random batches in both storages, and the same questions: the answers are the same."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from random import Random
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest

from contracts.event_contract import EVENTS, event
from contracts.log_contract import log, told
from contracts.slow_contract import SLOW, slow
from contracts.storage_contract import batch, segment
from skyfarer.oap.core import ids
from skyfarer.oap.core.events import EventCondition
from skyfarer.oap.core.logs import LogCondition
from skyfarer.oap.core.slow import Slow
from skyfarer.oap.core.storage import Analysed
from skyfarer.oap.core.traces import TraceCondition, TraceOrder
from skyfarer.oap.storage.embedded import EmbeddedStorage
from skyfarer.oap.storage.postgresql import PostgresStorage

ZONE = ZoneInfo("Europe/Berlin")
BEGINNING = int(datetime(2026, 10, 24, 20, tzinfo=ZONE).timestamp() * 1000)
SPAN_MS = 30 * 3_600_000  # over a midnight, and over the hour that comes twice
BATCHES, ROWS, QUESTIONS = 3, 60, 20
NAMES = ("shop", "Shop", "shöp", "", " ", "a_b", "z")
TAGS = ("http.method=GET", "http.method=get", "db=a=b", "empty=", "é=ö", "no separator", "%=_")
LAYERS = ("GENERAL", "UNDEFINED", "K8S")


class Traffic:
    """Few different words, so that rows meet in all that can be asked for."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)

    def word(self) -> str:
        return self.random.choice(NAMES)

    def id(self) -> str:
        return f"{self.random.choice('aAéZ_z-')}{self.random.getrandbits(64):x}"

    def at_ms(self) -> int:
        return BEGINNING + self.random.choice((self.random.randrange(SPAN_MS), 6 * 3_600_000))

    def tags(self) -> list[str]:
        return self.random.sample(TAGS, self.random.randrange(3))

    def batch(self, number: int) -> Analysed:
        first = number * ROWS
        rows = [self.segment() for _ in range(ROWS)]
        events = [{"sequence": first + n, **self.event()} for n in range(ROWS)]
        analysed = batch(
            first,
            first + ROWS,
            rows,
            logs=told(first, [self.log() for _ in range(ROWS)]),
            slow=pa.Table.from_pylist([self.slow() for _ in range(ROWS)], schema=SLOW),
            events=pa.Table.from_pylist(events, schema=EVENTS),
        )
        unsampled = pa.table({"segment_id": [self.id()], "minute": [self.at_ms() // 60_000]})
        return replace(analysed, unsampled=unsampled, metrics={})

    def segment(self) -> dict[str, Any]:
        one = {"service": self.word(), "instance": self.word(), "endpoint": self.word()}
        one |= {"trace_id": self.word(), "latency": self.random.randrange(9), "tags": self.tags()}
        one |= {"is_error": self.random.random() < 0.2, "kind": self.random.randrange(9)}
        data = self.random.randbytes(self.random.randrange(1, 99))
        return segment(self.id(), self.at_ms(), **one, data_binary=data)

    def log(self) -> dict[str, Any]:
        one = {"service": self.word(), "instance": self.word(), "endpoint": self.word()}
        one |= {"trace_id": self.word(), "log_segment_id": self.word(), "tags": self.tags()}
        one |= {"span_id": self.random.randrange(3), "part": self.random.randrange(2)}
        one |= {"layer": self.random.choice((2, 14)), "kind": self.random.randrange(9)}
        return log(self.random.randbytes(self.random.randrange(1, 99)), self.at_ms(), **one)

    def slow(self) -> dict[str, Any]:
        one = {"what": self.random.choice(list(Slow)).name, "service": self.word()}
        statement = "ü" * self.random.choice((1, 3000))
        return slow(self.id(), self.random.randrange(9), self.at_ms(), statement=statement, **one)

    def event(self) -> dict[str, Any]:
        begun, ended = (self.random.choice((0, self.at_ms())) for _ in range(2))
        one = {"service": self.word(), "instance": self.word(), "endpoint": self.word()}
        one |= {"name": self.word(), "type": self.random.randrange(2), "message": self.word()}
        one |= {"layer": self.random.choice(LAYERS), "parameters": [(self.word(), self.word())]}
        minute = (begun or ended or self.at_ms()) // 60_000
        return event(str(self.random.randrange(99)), begun, ended, **one | {"minute": minute})

    def some(self, value: Any) -> Any:
        return value if self.random.random() < 0.3 else None

    def between(self) -> tuple[int, int]:
        ends = sorted(datetime.fromtimestamp(self.at_ms() // 1000, ZONE) for _ in range(2))
        first, last = (int(one.strftime("%Y%m%d%H%M%S")) for one in ends)
        return first, last

    def page(self) -> tuple[int, int]:
        return self.random.choice((0, 0, 1, 20)), self.random.choice((1, 5, 500))

    def of(self) -> dict[str, Any]:
        service = ids.service_id(self.word(), normal=self.random.random() < 0.7)
        return {
            "between": self.some(self.between()),
            "service_id": self.some(service),
            "instance_id": self.some(ids.instance_id(service, self.word())),
            "endpoint_id": self.some(ids.endpoint_id(service, self.word())),
            "trace_id": self.some(self.word()),
            "tags": tuple(self.tags()),
        }


@pytest.fixture(params=range(2))
def both(
    request: pytest.FixtureRequest, conninfo: str, tmp_path: Path
) -> Iterator[tuple[Traffic, EmbeddedStorage, PostgresStorage]]:
    traffic, embedded, postgresql = (
        Traffic(request.param),
        EmbeddedStorage(),
        PostgresStorage(conninfo),
    )
    embedded.start(tmp_path / "skyfarer.duckdb", ZONE)
    postgresql.start(ZONE)
    for number in range(BATCHES):
        one = traffic.batch(number)
        embedded.apply(one)
        postgresql.apply(one)
    yield traffic, embedded, postgresql
    embedded.stop()
    postgresql.stop()


def test_both_storages_answer_alike(both: tuple[Traffic, EmbeddedStorage, PostgresStorage]) -> None:
    traffic, *storages = both
    for number in range(QUESTIONS):
        for asked in (_traces, _trace, _logs, _events, _slowest, _tags, _known):
            question = asked(traffic)
            expected, answer = (question(storage) for storage in storages)
            assert answer == expected, f"{asked.__name__} {number}"


def _traces(traffic: Traffic) -> Any:
    lowest, highest = (traffic.some(traffic.random.randrange(9)) for _ in range(2))
    asked = traffic.of() | {"latency_min_ms": lowest, "latency_max_ms": highest}
    condition = TraceCondition(**asked, is_error=traffic.some(traffic.random.random() < 0.5))
    order, page = traffic.random.choice(list(TraceOrder)), traffic.page()
    return lambda storage: storage.traces(condition, order, *page)


def _trace(traffic: Traffic) -> Any:
    trace_id, bytes_max = traffic.word(), traffic.random.choice((0, 500, 10_000))
    return lambda storage: storage.trace(trace_id, 1000, bytes_max)


def _logs(traffic: Traffic) -> Any:
    segment_id, span_id = traffic.some(traffic.word()), traffic.some(traffic.random.randrange(3))
    condition = LogCondition(**traffic.of(), segment_id=segment_id, span_id=span_id)
    newest_first, bytes_max = traffic.random.random() < 0.5, traffic.random.choice((0, 500, 10_000))
    page = traffic.page()
    return lambda storage: storage.logs(condition, newest_first, *page, bytes_max)


def _events(traffic: Traffic) -> Any:
    names = ("service", "instance", "endpoint", "name")
    condition = EventCondition(
        between=traffic.some(traffic.between()),
        uuid=traffic.some(str(traffic.random.randrange(99))),
        type=traffic.some(traffic.random.randrange(2)),
        layer=traffic.some(traffic.random.choice(LAYERS)),
        **{name: traffic.some(traffic.word()) for name in names},
    )
    newest_first, page = traffic.random.random() < 0.5, traffic.page()
    return lambda storage: storage.events(condition, newest_first, *page)


def _slowest(traffic: Traffic) -> Any:
    what, between = traffic.random.choice(list(Slow)), traffic.between()
    entity = traffic.some(ids.service_id(traffic.word(), what.normal))
    limit = traffic.random.choice((1, 1000))
    return lambda storage: storage.slowest(what, entity, between, limit)


def _tags(traffic: Traffic) -> Any:
    key, between = traffic.random.choice(TAGS).partition("=")[0], traffic.between()
    limit = traffic.random.choice((1, 99))
    return lambda storage: (
        storage.tag_keys(between, limit),
        storage.tag_values(key, between, limit),
        storage.log_tag_keys(between, limit),
        storage.log_tag_values(key, between, limit),
    )


def _known(traffic: Traffic) -> Any:
    minutes = pa.chunked_array([[traffic.at_ms() // 60_000]])
    return lambda storage: sorted(
        storage.known_segments(
            pa.chunked_array([[one.segment_id for one in _every(storage)] + ["no one"]]), minutes
        )
    )


def _every(storage: Any) -> Any:
    return storage.traces(TraceCondition(), TraceOrder.START_TIME, 0, 1000)
