"""What satellites report of themselves: meters of a service, each value of one series."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skyfarer.oap.core.layers import Layer
from skyfarer.oap.oal.series import CHARS_MAX, SEPARATOR
from skyfarer.oap.pipeline.sources.reports.declared import Made, Part, Value
from skyfarer.oap.pipeline.sources.reports.runtimes import METER, rounded

PREFIX: Final = "sw_stl_"
"""What the names of their meters begin with."""
_NOTHING, _EQUALS = pa.scalar(""), pa.scalar("=")


def _told(made: Made) -> Made:
    """Of the one value of a sample."""
    return lambda samples: made(pc.struct_field(samples, "singleValue"))


def _name(values: pa.StructArray) -> pa.Array:
    return pc.struct_field(values, "name")


def _own(samples: pa.StructArray) -> pa.BooleanArray:
    """What has no single value has no name either."""
    return pc.fill_null(pc.starts_with(_told(_name)(samples), PREFIX), False)


def _series(samples: pa.StructArray) -> pa.Array:
    """As `oal.series` has it; null for one that is too long."""
    labels = pc.struct_field(pc.struct_field(samples, "singleValue"), "labels")
    whole = pc.binary_join_element_wise(
        _plain(pc.struct_field(samples, "serviceInstance")), _written(labels), _NOTHING
    )
    fits = pc.less_equal(pc.utf8_length(whole), CHARS_MAX)
    return pc.if_else(fits, whole, pa.scalar(None, pa.string()))


def _written(labels: pa.ListArray) -> pa.Array:
    """The labels of each sample, by name: in whatever order they come, the series is the same."""
    flat = pc.list_flatten(labels)
    names, values = (_plain(pc.struct_field(flat, field)) for field in ("name", "value"))
    keys = pa.table({"sample": pc.list_parent_indices(labels), "name": names})
    order = pc.sort_indices(keys, [("sample", "ascending"), ("name", "ascending")])
    pairs = pc.binary_join_element_wise(names, values, _EQUALS)
    pairs = pc.binary_join_element_wise(pa.scalar(SEPARATOR), pairs, _NOTHING)
    counts = pc.fill_null(pc.list_value_length(labels), 0).to_numpy()
    offsets = np.concatenate([np.zeros(1, np.int32), np.cumsum(counts, dtype=np.int32)])
    return pc.binary_join(pa.ListArray.from_arrays(pa.array(offsets), pairs.take(order)), _NOTHING)


def _plain(texts: pa.Array) -> pa.Array:
    """A separator inside would be taken for the end of a label."""
    return pc.replace_substring(texts, SEPARATOR, " ")


_VALUES: Final[Mapping[str, Value]] = {
    "meter": _told(_name),
    "value": _told(rounded),
    "series": _series,
}
SATELLITE = replace(
    METER,
    layer=Layer.SO11Y_SATELLITE,
    prefix="satellite::",
    parts=(Part("ServiceMeter", "", _VALUES, _own),),
)
SATELLITES = replace(SATELLITE, each="meterData", carried=True)
