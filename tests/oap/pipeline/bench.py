"""A queue, a storage and the sink between them, and the names that v2 agents were given ids for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC
from pathlib import Path
from typing import NamedTuple

from google.protobuf.message import Message
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from skyfarer.base.units import MIB
from skyfarer.oap.core import ids
from skyfarer.oap.core.inventory import Inventory, InventoryScope
from skyfarer.oap.core.storage import Applied
from skyfarer.oap.oal.compiler import Text, plan_of
from skyfarer.oap.oal.plan import Plan
from skyfarer.oap.pipeline.analysis.settings import AnalysisSettings, NamingSettings
from skyfarer.oap.pipeline.metrics import Metrics
from skyfarer.oap.pipeline.sink import BatchSink
from skyfarer.oap.pipeline.sources.decode import PtarsDecoder
from skyfarer.oap.pipeline.sources.queue import QueueSource
from skyfarer.oap.pipeline.sources.rows import Reading
from skyfarer.oap.pipeline.sources.shapes import SEGMENT, Shape
from skyfarer.oap.pipeline.told import Telling
from skyfarer.oap.storage.embedded import EmbeddedStorage
from skyfarer.queue.consumer import Consumer
from skyfarer.queue.reader import Reader
from skyfarer.queue.settings import QueueSettings
from skyfarer.queue.writer import Writer
from skyfarer.telemetry.metrics import Registry
from skyfarer.testing.clock import HandClock
from skyfarer.wire.messages import SegmentObject, SegmentReference
from skyfarer.wire.rpc import Kind

NOON = 1_794_744_000_000
BUCKET = 202611151200
SHOP = ids.service_id("shop")
PLAN = plan_of(
    [
        Text(
            "few.oal",
            """
            service_resp_time = from(Service.latency).longAvg();
            service_sla = from(Service.*).percent(status == true);
            service_percentile = from(Service.latency).percentile2(10);
            service_instance_resp_time = from(ServiceInstance.latency).longAvg();
            service_instance_sla = from(ServiceInstance.*).percent(status == true);
            endpoint_resp_time = from(Endpoint.latency).longAvg();
            endpoint_sla = from(Endpoint.*).percent(status == true);
            service_relation_client_cpm =
                from(ServiceRelation.*).filter(detectPoint == DetectPoint.CLIENT).cpm();
            database_access_cpm = from(DatabaseAccess.*).cpm();
            instance_jvm_cpu = from(ServiceInstanceJVMCPU.usePercent).doubleAvg();
            meter_gc = from(InstanceMeter.value).filter(meter == "instance_pvm_gc_g0").longAvg();
            histogram_took =
                from(InstanceHistogram.count).filter(meter == "took").sumHistogram(bucket);
            satellite_received = from(ServiceMeter.value)
                .filter(meter == "sw_stl_gatherer_receive_count").labelIncrease(series, "pipe");
            """,
        )
    ]
)
"""Few of the shipped metrics: a batch of all of them takes twice as long to plan."""
SETTINGS = AnalysisSettings(NamingSettings(10, 10, 12))
METRICS = Metrics(PLAN, SETTINGS)
"""Of the one session of these tests: its expressions take a second to make."""


WIDE = Shape(
    column="segment",
    message="SegmentObject",
    fields={
        **SEGMENT.fields,
        "SpanObject": (*SEGMENT.fields["SpanObject"], "parentSpanId"),
        "SegmentReference": tuple(SegmentReference.DESCRIPTOR.fields_by_name),
    },
    required=(),
)


def wide_form() -> StructType:
    """More of a segment than the analysis keeps today."""
    return from_arrow_schema(PtarsDecoder(WIDE).schema)


class Calls(NamedTuple):
    calls: int
    latency_sum: int
    errors: int


class Inventories:
    """The registry, in memory."""

    def __init__(self) -> None:
        self.asked: list[tuple[InventoryScope, list[int]]] = []
        self._known: dict[tuple[InventoryScope, int], Inventory] = {}

    def add(self, scope: InventoryScope, sequence: int, name: str, service_id: int = 0) -> None:
        one = Inventory(scope, name, service_id=service_id, sequence=sequence)
        self._known[scope, sequence] = one

    def inventories(self, scope: InventoryScope, row_ids: Sequence[str]) -> Mapping[str, Inventory]:
        raise NotImplementedError(scope, row_ids)

    def inventories_by_id(
        self, scope: InventoryScope, sequences: Sequence[int]
    ) -> Mapping[int, Inventory]:
        self.asked.append((scope, list(sequences)))
        found = {one: self._known.get((scope, one)) for one in sequences}
        return {one: inventory for one, inventory in found.items() if inventory is not None}


class Bench:
    """A queue, a storage and the sink between them."""

    def __init__(
        self,
        directory: Path,
        spark: SparkSession,
        settings: AnalysisSettings = SETTINGS,
        plan: Plan = PLAN,
        metrics: Metrics | None = None,
    ) -> None:
        alike = replace(settings, kept=SETTINGS.kept, sampling=SETTINGS.sampling)
        self._spark, self._telling = spark, Telling.by(settings)
        self.directory = directory / "queue"
        queue = QueueSettings(
            self.directory, MIB, 8 * MIB, record_bytes_max=MIB // 4, consumers=("analysis",)
        )
        self.writer = Writer(queue)
        self.storage = EmbeddedStorage()
        self.reader = Reader(self.directory)
        self.consumer = Consumer(self.directory, "analysis")
        self.registry = Registry()
        self.inventories = Inventories()
        self.times_applied = 0
        self.clock, self.zone = HandClock(NOON + 3_600_000), UTC
        self.sink = BatchSink(
            self.storage,
            self.inventories,
            self.reader,
            self.consumer,
            metrics or (METRICS if alike == SETTINGS and plan is PLAN else Metrics(plan, settings)),
            settings,
            self.registry,
            self.clock,
            self._note_applied,
        )

    def _note_applied(self) -> None:
        self.times_applied += 1

    def start(self, path: Path) -> None:
        self.writer.start()
        self.reader.start()
        self.consumer.start()
        self.storage.start(path, self.zone)

    def stop(self) -> None:
        self.sink.close()
        self.storage.stop()
        self.consumer.stop()
        self.reader.stop()
        self.writer.stop(1)

    def append(self, *segments: SegmentObject) -> None:
        self.keep(Kind.SEGMENT, *segments)

    def keep(self, kind: int, *messages: Message) -> None:
        self.writer.append(kind, [bytes(one.SerializeToString()) for one in messages])

    def batch(self, start: int, end: int, decoder: str = "ptars") -> DataFrame:
        reading = Reading((decoder,), self._telling).written()
        reader = self._spark.read.format(QueueSource.name()).option("reading", reading)
        options = {"directory": self.directory, "start": start, "end": end, "splits": 2}
        return reader.options(**{key: str(value) for key, value in options.items()}).load()

    def apply(self, start: int | None = None) -> None:
        first = self.storage.applied(self.reader.queue_id) if start is None else start
        self.sink(self.batch(first, self.writer.writing), 0)

    def parked(self) -> list[tuple[int, str, bytes]]:
        """(sequence, the reason's code, payload) of each."""
        found = self.storage.parked(self.reader.queue_id)
        return [(one.sequence, one.reason.partition(":")[0], one.payload) for one in found]

    def progress(self) -> Applied:
        return self.storage.progress(self.reader.queue_id)

    def calls(self, source: str = "Service", entity: str = SHOP) -> dict[int, Calls]:
        """By minute, from the columns that the plan has for them."""
        (plan,) = (one for one in PLAN.sources if one.source == source)
        parts = {metric.name.rpartition("_")[2]: dict(metric.columns) for metric in plan.metrics}
        count, match = parts["sla"]["total"], parts["sla"]["match"]
        latency = parts["time"]["summation"]
        rows = self.storage.series(source, entity, [count, match, latency], BUCKET, BUCKET + 59)
        return {
            bucket: Calls(row[count], row[latency], row[count] - row.get(match, 0))
            for bucket, row in rows.items()
        }

    def stored(self) -> list[tuple[object, ...]]:
        """The segments, without their tags."""
        query = "SELECT * EXCLUDE (tags, tag_bits) FROM segment_20261115 ORDER BY segment_id"
        return self.storage._cursor().execute(query).fetchall()
