"""Which kind of message is told how."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import pyarrow as pa

from skyfarer.oap.pipeline.told import messages
from skyfarer.oap.pipeline.told.segments import segments
from skyfarer.oap.pipeline.told.telling import Telling
from skyfarer.wire.rpc import Kind

_TOLD: Final[Mapping[int, Callable[[pa.RecordBatch, Telling], dict[str, pa.Array]]]] = {
    Kind.SEGMENT: segments,
    Kind.OTLP_TRACES: segments,
    Kind.LOG: messages.logs,
    Kind.OTLP_LOGS: messages.logs,
    Kind.EVENT: messages.events,
    Kind.INSTANCE_PING: messages.pings,
    Kind.INSTANCE_PROPERTIES: messages.properties,
}


def told_of(
    kind: int, batch: pa.RecordBatch, reports: pa.ListArray | None, telling: Telling
) -> dict[str, pa.Array]:
    """Columns of `TOLD` but those of every row, of decoded messages of that kind or of the reports
    that they became."""
    if reports is not None:
        return messages.reports(reports, telling)
    return _TOLD[kind](batch, telling) if kind in _TOLD else {}
