"""A query server on a real storage, filled with what agents would have sent.

Segments become metrics by the plain analysis, so that every page has something to show and no
Spark has to start.
"""

from __future__ import annotations

import socket
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC
from itertools import groupby
from pathlib import Path
from typing import Any

import pyarrow as pa

from contracts import inventory_contract, log_contract
from contracts.storage_contract import TABLE, batch, deltas_of, segment
from golden.mqe.storing import MERGES
from skyfarer.base.clock import SystemClock
from skyfarer.oap.core.entities import ENTITY_COLUMNS
from skyfarer.oap.core.inventory import Inventory
from skyfarer.oap.core.storage import Deltas, Heartbeat, Merge
from skyfarer.oap.oal.compiler import plan_of, shipped
from skyfarer.oap.oal.interpreter import accumulate
from skyfarer.oap.oal.plan import SourcePlan
from skyfarer.oap.query import QueryServer
from skyfarer.oap.storage.embedded import EmbeddedStorage
from skyfarer.telemetry.health import Health
from skyfarer.telemetry.ledger import Ledger
from skyfarer.telemetry.metrics import Registry
from skyfarer.testing.plain_analysis import Row, oal_row, plain_rows
from skyfarer.wire.messages import SegmentObject, log

PLAN = plan_of(shipped())
SOURCES = {one.source: one for one in PLAN.sources}


class Town:
    """`directory` is its own."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.storage = EmbeddedStorage()
        self._told = 0

    def start(self) -> None:
        self.storage.start(self._directory / "skyfarer.duckdb", UTC)
        health = Health()
        health.started()
        self._server = QueryServer(
            *(socket.create_server(("127.0.0.1", 0)), self.storage, self._ledger, health),
            *(Registry(), SystemClock(), UTC),
            plan=PLAN,
            inventories=self.storage,
        )
        self._server.start()

    def stop(self) -> None:
        self._server.stop(5)
        self.storage.stop()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.port}"

    def put(self, segments: Sequence[SegmentObject]) -> None:
        alive = [
            Heartbeat(one.service, one.serviceInstance, "GENERAL", _minute(one), _PROPERTIES)
            for one in segments
        ]
        metrics = _metrics(plain_rows(segments))
        rows = [_row(one) for one in segments]
        first = self.storage.applied("queue-a")
        end = first + len(segments)
        self.storage.apply(batch(first, end, rows, metrics=metrics, heartbeats=alive))
        self._told += len(segments)

    def put_logs(self, logs: Sequence[log.LogData]) -> None:
        log_contract.apply(self.storage, *map(_log_row, logs))
        self._told += len(logs)

    def put_registered(self, entries: Sequence[Inventory]) -> None:
        inventory_contract.apply(self.storage, entries)

    def _ledger(self) -> Ledger:
        return Ledger(self._told, self._told, 0, {})


_PROPERTIES = {"language": "python"}


def _minute(one: SegmentObject) -> int:
    return min(span.startTime for span in one.spans) // 60_000


def _metrics(rows: Iterable[Row]) -> dict[str, Deltas]:
    by_source = sorted(rows, key=lambda row: str(row["source"]))
    return {
        source: _deltas(SOURCES.get(source), list(some))
        for source, some in groupby(by_source, key=lambda row: str(row["source"]))
    }


def _deltas(plan: SourcePlan | None, rows: list[Row]) -> Deltas:
    """Of one source, each entity's minutes added up; a source without metrics has names alone."""

    def whose(row: Row) -> tuple[Any, ...]:
        return (*(row[name] for name in ENTITY_COLUMNS), row["minute"])

    lines = list[dict[str, Any]]()
    for key, some in groupby(sorted(rows, key=whose), key=whose):
        columns = accumulate(plan, map(oal_row, some)) if plan is not None else {}
        line = dict(zip((*ENTITY_COLUMNS, "minute"), key, strict=True))
        lines.append({**line, **columns})
    accumulators = plan.accumulators if plan is not None else ()
    merges = {a.column: MERGES.get(a.operation, Merge.SUM) for a in accumulators}
    types = {column: _type(column, lines) for column in merges}
    return deltas_of([_cells(line) for line in lines], merges, types)


def _type(column: str, lines: Iterable[Mapping[str, Any]]) -> pa.DataType:
    value = next((line[column] for line in lines if column in line), 0)
    return TABLE if isinstance(value, Mapping) else pa.scalar(value).type


def _cells(line: Mapping[str, Any]) -> dict[str, Any]:
    return {n: list(v.items()) if isinstance(v, Mapping) else v for n, v in line.items()}


def _row(message: SegmentObject) -> dict[str, Any]:
    root = message.spans[-1]
    return segment(
        message.traceSegmentId,
        root.startTime,
        trace_id=message.traceId,
        service=message.service,
        instance=message.serviceInstance,
        endpoint=root.operationName,
        latency=root.endTime - root.startTime,
        is_error=root.isError,
        tags=[f"{tag.key}={tag.value}" for tag in root.tags],
        data_binary=message.SerializeToString(),
    )


def _log_row(message: log.LogData) -> dict[str, Any]:
    return log_contract.log(
        message.SerializeToString(),
        message.timestamp,
        service=message.service,
        instance=message.serviceInstance,
        endpoint=message.endpoint,
        trace_id=message.traceContext.traceId,
        tags=[f"{tag.key}={tag.value}" for tag in message.tags.data],
    )
