"""How calls were secured, as a component of a relation beside its own.

A relation is known by all components it was seen with, and a call that is counted once says two of
them. So on the way through Spark both are one number, and on the driver, where calls are counted
already, the second becomes a row of its own that counts nothing.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from skyfarer.oap.core.storage import Deltas
from skyfarer.oap.pipeline.sources.reports.declared import Made

COMPONENTS: Final = {"mTLS": 142, "TLS": 130}
"""By what a proxy says of a connection."""
_ABOVE: Final = 1 << 16
"""All numbers of components are below."""


def secured(component: Made) -> Made:
    """That component, and above it the one of the message's `tlsMode`."""
    modes, numbers = pa.array(list(COMPONENTS)), pa.array(list(COMPONENTS.values()), pa.int32())

    def value(metrics: pa.StructArray) -> pa.Array:
        mode = pc.index_in(pc.struct_field(metrics, "tlsMode"), modes)
        above = pc.multiply(pc.fill_null(numbers.take(mode), 0), _ABOVE)
        return pc.add(component(metrics).cast(pa.int32()), above.cast(pa.int32()))

    return value


def apart(deltas: Deltas) -> Deltas:
    """The same with a row for each component."""
    rows = deltas.rows
    above = pc.divide(rows["component"], _ABOVE)
    if not pc.any(pc.greater(above, 0)).as_py():
        return deltas
    place = rows.column_names.index("component")
    own = pc.subtract(rows["component"], pc.multiply(above, _ABOVE)).cast(pa.int32())
    counted = rows.set_column(place, "component", own)
    beside = rows.set_column(place, "component", above.cast(pa.int32()))
    beside = beside.filter(pc.greater(above, 0)).drop_columns(list(deltas.merges))
    both = pa.concat_tables([counted, beside], promote_options="default")
    return replace(deltas, rows=both.select(rows.column_names))
