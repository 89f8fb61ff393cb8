"""Segments on PostgreSQL: a week of them written, searched, and looked up by their traces.

The server is a real one with its own defaults, on this machine. What is written is compared with a
bare COPY of the same columns into a table without an index, batch by batch in turns, and a trace
with a lookup by primary key of one segment and its bytes, in turns too: a shared machine slows both
down. Searches are a mix of what the page asks for, over a quarter of an hour, a day and the week,
in both orders; the tables have been analysed, as the server does by itself within minutes.
"""

from __future__ import annotations

import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from statistics import median, quantiles

import psycopg
import pyarrow as pa

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from figures import figure
from skyfarer.base.clock import SystemClock
from skyfarer.oap.core import ids
from skyfarer.oap.core.storage import Analysed
from skyfarer.oap.core.time_bucket import MINUTE_MS
from skyfarer.oap.core.traces import TraceCondition, TraceOrder
from skyfarer.oap.storage.postgresql import PostgresStorage, copying
from skyfarer.testing.traffic import DemoTraffic
from third_parties.postgresql import Server

DAYS, SEGMENTS_A_DAY, BATCH = 7, 200_000, 4_000
SEGMENT_BYTES = 1_500
SEGMENTS_A_TRACE, SERVICES, ENDPOINTS, RARE_TAGS = 4, 20, 50, 5_000
SEARCHES, LOOKUPS, PAGE = 1_000, 2_000, 20
MONDAY = datetime(2026, 11, 9, tzinfo=UTC)
DAY_MS = 86_400_000
LOOKUP_MAX = 10.0
"""A trace takes at most so many times as long as a lookup by primary key."""


class Week:
    def __init__(self) -> None:
        self.random = Random(1)
        traffic, self._bytes = DemoTraffic(Random(2), SystemClock()), b""
        while len(self._bytes) < 2**20:
            self._bytes += b"".join(one.SerializeToString() for one in traffic.trace(0))
        self.ids, self.traces = list[str](), list[str]()

    def day(self, number: int) -> pa.Table:
        start = int(MONDAY.timestamp() * 1000) + number * DAY_MS
        rows = [self._row(start + n * DAY_MS // SEGMENTS_A_DAY, n) for n in range(SEGMENTS_A_DAY)]
        table = pa.Table.from_pylist(rows)
        return table.set_column(
            table.schema.get_field_index("kind"), "kind", table["kind"].cast("int32")
        )

    def _row(self, at_ms: int, number: int) -> dict[str, object]:
        random = self.random
        if number % SEGMENTS_A_TRACE == 0:
            self.traces.append(f"{random.getrandbits(128):032x}")
        self.ids.append(f"{random.getrandbits(128):032x}.{number}")
        service = f"service-{min(int(random.expovariate(0.7)), SERVICES - 1)}"
        tags = [f"http.method={random.choice(('GET', 'GET', 'GET', 'POST'))}"]
        tags.append(f"http.status_code={random.choices((200, 404, 500), (97, 2, 1))[0]}")
        tags += [f"db.id={random.randrange(RARE_TAGS)}"] if random.random() < 0.3 else []
        place = random.randrange(len(self._bytes) - SEGMENT_BYTES)
        return {
            "segment_id": self.ids[-1],
            "trace_id": self.traces[-1],
            "service": service,
            "instance": f"{service}-{random.randrange(5)}",
            "endpoint": f"/{service}/{random.randrange(ENDPOINTS)}",
            "minute": at_ms // MINUTE_MS,
            "start_time": at_ms,
            "latency": int(random.expovariate(1 / 80)),
            "is_error": random.random() < 0.01,
            "tags": tags,
            "kind": 1,
            "data_binary": self._bytes[place : place + SEGMENT_BYTES],
        }

    def condition(self) -> TraceCondition:
        random, day = self.random, 20261109 + self.random.randrange(DAYS)
        hour = day * 1_000_000 + random.randrange(24) * 10_000
        whole = (day * 1_000_000, day * 1_000_000 + 235959)
        week = (20261109000000, 20261115235959)
        service = ids.service_id(f"service-{random.randrange(SERVICES)}")
        of_service = ids.decode_service_id(service)[0]
        endpoint = ids.endpoint_id(service, f"/{of_service}/{random.randrange(ENDPOINTS)}")
        asked: tuple[dict[str, object], ...] = (
            {},
            {"service_id": service},
            {"service_id": service, "endpoint_id": endpoint},
            {"is_error": True},
            {"service_id": service, "is_error": True},
            {"tags": ("http.method=GET",)},
            {"tags": ("http.status_code=500",)},
            {"tags": (f"db.id={random.randrange(RARE_TAGS)}",)},
            {"service_id": service, "tags": ("http.status_code=500",)},
            {"latency_min_ms": 400},
            {"latency_min_ms": 1_000},
        )
        between = random.choice(((hour, hour + 1459), whole, week))
        return TraceCondition(between=between, **random.choice(asked))  # type: ignore[arg-type]


def main() -> None:
    server, week = Server(durable=True), Week()
    try:
        conninfo = server.start().database()
        storage = PostgresStorage(conninfo)
        storage.start(UTC)
        with psycopg.connect(conninfo) as connection:
            connection.execute(_BARE)
            connection.commit()
            written(storage, connection, week)
            connection.execute("ANALYZE")
            connection.commit()
            searched(storage, week)
            connection.autocommit = True
            looked_up(storage, connection, week)
        storage.stop()
    finally:
        server.close()


_BARE = """CREATE TABLE bare (segment_id TEXT, trace_id TEXT, service TEXT, instance TEXT,
    endpoint TEXT, minute BIGINT, start_time BIGINT, latency BIGINT, is_error BOOLEAN, tags TEXT[],
    kind INTEGER, data_binary BYTEA)"""


def written(storage: PostgresStorage, connection: psycopg.Connection, week: Week) -> None:
    ours, bare, number = list[float](), list[float](), 0
    for day in range(DAYS):
        rows = week.day(day)
        for start in range(0, rows.num_rows, BATCH):
            batch, begun_s = rows.slice(start, BATCH), time.monotonic()
            storage.apply(Analysed("queue", number, number + 1, batch, {}))
            number, ended_s = number + 1, time.monotonic()
            with connection.cursor() as cursor:
                copying.append(cursor, "bare", batch)
            connection.commit()
            ours.append(ended_s - begun_s)
            bare.append(time.monotonic() - ended_s)
        connection.execute("TRUNCATE bare")
        connection.commit()
    figure("postgresql_segments_written", BATCH / median(ours), f"1/s, batches of {BATCH}")
    figure("postgresql_segments_bare_copy", BATCH / median(bare), "1/s")
    figure("postgresql_segments_share", median(bare) / median(ours), "of a bare COPY's rate")


def searched(storage: PostgresStorage, week: Week) -> None:
    spent_s = list[float]()
    for _ in range(SEARCHES):
        condition, order = week.condition(), week.random.choice(list(TraceOrder))
        begun_s = time.monotonic()
        storage.traces(condition, order, 0, PAGE)
        spent_s.append(time.monotonic() - begun_s)
    figure("postgresql_trace_search_p50", median(spent_s) * 1000, "ms")
    figure("postgresql_trace_search_p99", quantiles(spent_s, n=100)[-1] * 1000, "ms")


def looked_up(storage: PostgresStorage, connection: psycopg.Connection, week: Week) -> None:
    traces, keys = list[float](), list[float]()
    for _ in range(LOOKUPS):
        place, begun_s = week.random.randrange(len(week.ids)), time.monotonic()
        day = 20261109 + place // SEGMENTS_A_DAY
        query = f"""SELECT * FROM segment_{day} JOIN segment_data_{day} USING (data_row)
            WHERE segment_id = %s"""
        assert len(connection.execute(query, [week.ids[place]], prepare=True).fetchall()) == 1
        between_s = time.monotonic()
        found = storage.trace(week.random.choice(week.traces), 10_000, 2**25)
        assert len(found) == SEGMENTS_A_TRACE
        keys.append(between_s - begun_s)
        traces.append(time.monotonic() - between_s)
    figure("postgresql_trace", median(traces) * 1000, "ms")
    figure("postgresql_primary_key", median(keys) * 1000, "ms")
    ratio = median(traces) / median(keys)
    figure("postgresql_trace_ratio", ratio, "of a primary key's", at_most=LOOKUP_MAX)


if __name__ == "__main__":
    main()
