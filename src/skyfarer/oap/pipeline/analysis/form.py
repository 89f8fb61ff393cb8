"""The form of v3's segments, as tables of another protocol fill it.

Each protocol says in a table how a field of v3 is made of its own; only the fields that the shape
of segments keeps are made.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import ArrayType, StructField, StructType

from skyfarer.oap.pipeline.sources.shapes import OTHERS


def only(shape: str) -> Column:
    """The message of a rare shape, by its name in `OTHERS`; null when there is none."""
    return F.get(F.get(F.col(OTHERS), F.lit(0))[shape], F.lit(0))


def segment_type(rows: DataFrame) -> StructType:
    kept = rows.schema["segment"].dataType
    assert isinstance(kept, StructType)
    return kept


def element_type(form: StructType, name: str) -> StructType:
    """The type of the messages in that repeated field."""
    kept = form[name].dataType
    assert isinstance(kept, ArrayType)
    assert isinstance(kept.elementType, StructType)
    return kept.elementType


def struct_of(fields: Mapping[str, Column], form: StructType) -> Column:
    """KeyError for a field that the table does not make."""
    return F.struct(*(_typed(fields[kept.name], kept).alias(kept.name) for kept in form.fields))


def _typed(value: Column, kept: StructField) -> Column:
    """Messages in it have their types already, and no cast makes null impossible inside them."""
    return value if isinstance(kept.dataType, ArrayType) else value.cast(kept.dataType)
