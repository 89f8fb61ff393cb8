"""How long something took, as it is stored: a 32-bit number of milliseconds."""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812

LATENCY_MS_MAX: Final = 2**31 - 1


def latency_ms(start: Column, end: Column) -> Column:
    """The most that there is for what took longer. Null beyond 64 bits: a record with such times is
    parked, and must not stop the batch."""
    taken = F.try_subtract(end, start)
    return F.when(taken > LATENCY_MS_MAX, LATENCY_MS_MAX).otherwise(taken)
