"""A forwarder that is looked at: what it delivers is counted by type, and shown to the tap."""

from __future__ import annotations

from typing import Final

from skyfarer.base.errors import PermanentError
from skyfarer.satellite.contracts import Batch, Forwarder
from skyfarer.satellite.tap import OUT, Tap
from skyfarer.telemetry import table
from skyfarer.telemetry.metrics import Registry
from skyfarer.wire.rpc import Kind

# The original's words for what a record is, where it has one: its dashboards group by them.
_TYPES: Final = {
    "SEGMENT": "TracingType",
    "SPAN_ATTACHED_EVENT": "TracingType",
    "INSTANCE_PROPERTIES": "ManagementType",
    "INSTANCE_PING": "ManagementType",
    "LOG": "Logging",
    "EVENT": "EventType",
    "METER": "MeterType",
    "METER_COLLECTION": "MeterType",
    "JVM_METRICS": "JVMMetricType",
    "CLR_METRICS": "CLRMetricType",
    "PROFILE_SNAPSHOT": "ProfileType",
    "EBPF_PROCESS_PING": "EBPFProcessType",
    "EBPF_PROFILE": "EBPFProfilingType",
    "EBPF_ACCESS_LOG": "EBPFAccessLogType",
    "ENVOY_ACCESS_LOG": "EnvoyALSV3Type",
    "ENVOY_METRICS": "EnvoyMetricsV3Type",
    "OTLP_METRICS": "OpenTelementryMetricsV1Type",
}


def type_name(kind: int) -> str:
    try:
        name = Kind(kind).name
    except ValueError:
        return str(kind)
    return _TYPES.get(name, name)


class Watched:
    """A `Forwarder` around another, at no cost per record."""

    def __init__(self, inner: Forwarder, pipe: str, tap: Tap, registry: Registry) -> None:
        self.inner = inner
        self.address = inner.address
        self._pipe = pipe
        self._tap = tap
        self._registry = registry

    async def start(self) -> None:
        await self.inner.start()

    async def stop(self, timeout_s: float) -> None:
        await self.inner.stop(timeout_s)

    def batch_max(self, kind: int) -> int:
        return self.inner.batch_max(kind)

    async def send(self, batch: Batch) -> None:
        try:
            await self.inner.send(batch)
        except PermanentError:
            if len(batch.payloads) == 1:
                self._count(batch, "failure")
            raise
        self._count(batch, "success")
        if self._tap.watchers:
            self._tap.offer(self._pipe, OUT, batch.kind, batch.payloads)

    def _count(self, batch: Batch, status: str) -> None:
        self._registry.inc(
            table.SENDER_OUTPUT_COUNT,
            len(batch.payloads),
            pipe=self._pipe,
            status=status,
            type=type_name(batch.kind),
        )
