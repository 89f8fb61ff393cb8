"""Query servers with the clock held still, and a client of their HTTP door.

`oap` reads from memory. `shelf` reads from a real storage, which its tests fill through the Writer;
it is shared by the tests of a file, so each has traces and services of its own.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from itertools import count
from typing import Any

import httpx
import pytest
from google.protobuf.message import Message

from contracts import event_contract, log_contract, storage_contract
from contracts.storage_contract import batch, segment
from skyfarer.oap.core.cluster import Node
from skyfarer.oap.core.inventory import Inventory, InventoryScope
from skyfarer.oap.oal.compiler import Text, plan_of, shipped
from skyfarer.oap.oal.plan import Plan
from skyfarer.oap.query import QueryServer
from skyfarer.oap.storage.embedded import EmbeddedStorage
from skyfarer.telemetry.health import Health
from skyfarer.telemetry.metrics import Registry
from skyfarer.testing.clock import HandClock
from skyfarer.testing.memory_reader import MemoryReader
from skyfarer.wire.messages import SegmentObject, log
from skyfarer.wire.rpc import Kind

_numbers = count(1)

ZONE = timezone(timedelta(hours=8))

# What comes with the program, and the functions that none of it has.
OWN = Text(
    "own.oal",
    """
    own_labels = from(Service.*).labelCount(endpointName, 3);
    own_averages = from(Service.*).labelAvg(endpointName, latency);
    own_steps = from(Service.latency).histogram(100, 2);
    own_ranks = from(Service.latency).percentile(10);
    own_mean = from(Service.latency).doubleAvg();
    own_buckets = from(InstanceHistogram.count).filter(meter == "own").sumHistogram(bucket);
    own_bucket_ranks = from(InstanceHistogram.count).filter(meter == "own")
        .sumHistogramPercentile(bucket);
    own_most = from(Service.latency).filter(status == false).max();
    """,
)
PLAN = plan_of((*shipped(), OWN))
NOW_MS = int(datetime(2026, 11, 15, 8, 17, 42, tzinfo=ZONE).timestamp() * 1000)


def server_of(
    reader: MemoryReader,
    health: Health,
    registry: Registry,
    tls: Callable[[], Any] | None = None,
    nodes: Callable[[], list[Node]] = list,
) -> QueryServer:
    listener = socket.create_server(("127.0.0.1", 0))
    clock = HandClock(NOW_MS)
    return QueryServer(
        *(listener, reader, reader.ledger, health, registry, clock, ZONE),
        plan=PLAN,
        tls=tls,
        nodes=nodes,
    )


# The fields that SkyWalking's page selects.
QUERY_TRACE = """
query queryTrace($traceId: ID!) {
  trace: queryTrace(traceId: $traceId) {
    spans {
      traceId segmentId spanId parentSpanId
      refs { traceId parentSegmentId parentSpanId type }
      serviceCode serviceInstanceName startTime endTime endpointName type peer component isError
      layer tags { key value } logs { time data { key value } }
      attachedEvents {
        startTime { seconds nanos } event endTime { seconds nanos }
        tags { key value } summary { key value }
      }
    }
  }
}"""


@dataclass
class Asking:
    """A client of the HTTP door."""

    http: httpx.Client

    def ask(self, query: str, **variables: Any) -> dict[str, Any]:
        """The data; an error of any kind fails the test that did not expect one."""
        answer = self.post(query, **variables)
        assert "errors" not in answer, answer["errors"]
        data = answer["data"]
        assert isinstance(data, dict)
        return data

    def errors(self, query: str, **variables: Any) -> list[str]:
        return [error["message"] for error in self.post(query, **variables)["errors"]]

    def post(self, query: str, **variables: Any) -> dict[str, Any]:
        response = self.http.post("/graphql", json={"query": query, "variables": variables})
        assert response.status_code == 200
        answer = response.json()
        assert isinstance(answer, dict)
        return answer


@dataclass
class Oap(Asking):
    """Everything a test may touch of one running query server."""

    reader: MemoryReader
    health: Health
    registry: Registry

    def another(
        self,
        health: Health,
        tls: Callable[[], Any] | None = None,
        nodes: Callable[[], list[Node]] = list,
    ) -> QueryServer:
        return server_of(self.reader, health, self.registry, tls, nodes)


@dataclass
class Inventories:
    """What was registered, by id."""

    known: list[Inventory] = field(default_factory=list)

    def inventories(self, scope: InventoryScope, row_ids: Sequence[str]) -> Mapping[str, Inventory]:
        raise NotImplementedError("the query room asks by id alone")

    def inventories_by_id(
        self, scope: InventoryScope, sequences: Sequence[int]
    ) -> Mapping[int, Inventory]:
        return {
            one.sequence: one
            for one in self.known
            if one.scope is scope and one.sequence in sequences
        }


@dataclass
class Shelf(Asking):
    """A query server on a real storage."""

    storage: EmbeddedStorage
    inventories: Inventories

    def spans(self, trace_id: str) -> list[dict[str, Any]]:
        spans = self.ask(QUERY_TRACE, traceId=trace_id)["trace"]["spans"]
        assert isinstance(spans, list)
        return spans

    def operations(self, trace_id: str) -> list[str]:
        return [span["endpointName"] for span in self.spans(trace_id)]

    def put(self, *segments: SegmentObject) -> None:
        for one in segments:
            self.put_as(one, Kind.SEGMENT, one.SerializeToString())

    def put_as(self, message: SegmentObject, kind: Kind, data: bytes) -> None:
        """Stored with what the analysis knows of `message`, and with `data` for its bytes."""
        applied = self.storage.applied("queue-a")
        row = row_of(message) | {"kind": kind, "data_binary": data}
        self.storage.apply(batch(applied, applied + 1, [row]))

    def put_logs(self, *logs: log.LogData) -> None:
        log_contract.apply(self.storage, *(log_row_of(one) for one in logs))

    def put_log_as(self, message: log.LogData, kind: Kind, data: bytes) -> None:
        """As `put_as`."""
        log_contract.apply(self.storage, log_row_of(message) | {"kind": kind, "payload": data})

    def put_records(self, kind: Kind, at_ms: int, *messages: Message) -> None:
        """As they came in that minute."""
        first = self.storage.applied("queue-a")
        rows = [
            (first + place, int(kind), at_ms // 60_000, message.SerializeToString())
            for place, message in enumerate(messages)
        ]
        told = storage_contract.records(*rows)
        self.storage.apply(batch(first, first + len(rows), records=told))

    def put_events(self, *rows: dict[str, Any]) -> None:
        """As `event_contract.event` makes them."""
        event_contract.apply(self.storage, *rows)


def log_row_of(message: log.LogData) -> dict[str, Any]:
    """What the analysis makes of a log."""
    context = message.traceContext
    return log_contract.log(
        message.SerializeToString(),
        message.timestamp,
        service=message.service,
        instance=message.serviceInstance,
        endpoint=message.endpoint,
        trace_id=context.traceId,
        log_segment_id=context.traceSegmentId,
        span_id=context.spanId,
        tags=[f"{tag.key}={tag.value}" for tag in message.tags.data],
    )


def row_of(message: SegmentObject) -> dict[str, Any]:
    """What the analysis makes of a segment."""
    start_ms = min(span.startTime for span in message.spans)
    return segment(
        message.traceSegmentId,
        start_ms,
        trace_id=message.traceId,
        service=message.service,
        instance=message.serviceInstance,
        endpoint=message.spans[-1].operationName,
        latency=max(span.endTime for span in message.spans) - start_ms,
        is_error=any(span.isError for span in message.spans),
        tags=[f"{tag.key}={tag.value}" for span in message.spans for tag in span.tags],
    )


@contextmanager
def serving() -> Iterator[Oap]:
    reader, health, registry = MemoryReader(), Health(), Registry()
    health.started()
    server = server_of(reader, health, registry)
    server.start()
    try:
        with httpx.Client(
            base_url=f"http://127.0.0.1:{server.port}", trust_env=False, timeout=60
        ) as http:
            yield Oap(http, reader, health, registry)
    finally:
        server.stop(5)


@pytest.fixture
def oap() -> Iterator[Oap]:
    with serving() as fresh:
        yield fresh


@pytest.fixture(scope="module")
def lasting_oap() -> Iterator[Oap]:
    """For a file whose tests do nothing to the server but ask it."""
    with serving() as shared:
        yield shared


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shelf]:
    storage, inventories, health = EmbeddedStorage(), Inventories(), Health()
    storage.start(tmp_path_factory.mktemp("storage") / "skyfarer.duckdb", ZONE)
    health.started()
    server = QueryServer(
        socket.create_server(("127.0.0.1", 0)),
        storage,
        MemoryReader().ledger,
        health,
        Registry(),
        HandClock(NOW_MS),
        ZONE,
        plan=PLAN,
        inventories=inventories,
        tasks=storage,
    )
    server.start()
    try:
        url = f"http://127.0.0.1:{server.port}"
        with httpx.Client(base_url=url, trust_env=False, timeout=60) as http:
            yield Shelf(http, storage, inventories)
    finally:
        server.stop(5)
        storage.stop()


@pytest.fixture
def eight() -> int:
    return int(datetime(2026, 11, 15, 8, 0, tzinfo=ZONE).timestamp() * 1000)


@pytest.fixture
def fresh() -> str:
    """A name no other test has."""
    return f"fresh-{next(_numbers)}"


@pytest.fixture(scope="session")
def plan() -> Plan:
    return PLAN


@pytest.fixture(scope="session")
def zone() -> timezone:
    return ZONE
