"""Whatever a sender repeats, how often and in which order: the tables know each segment once."""

from __future__ import annotations

from pathlib import Path
from random import Random

from pyspark.sql import SparkSession

from oap.pipeline.bench import NOON
from oap.pipeline.faults.line import Line, Tables, contents
from oap.pipeline.faults.work import NOW, fill, pairs
from skyfarer.oap.pipeline.metrics import Metrics
from skyfarer.oap.pipeline.times import DAY_MS

OWN = ("source_offset", "source_dropped")
"""The ledger counts records, and so resends too."""
GROUPS, CALLS, REPEATS_MAX = 3, 12, 5

Record = tuple[int, bytes]


def groups() -> list[list[Record]]:
    """Each a day later than the one before it."""
    numbers = [range(group * CALLS, (group + 1) * CALLS) for group in range(GROUPS)]
    return [pairs(some, NOON - (GROUPS - 1 - n) * DAY_MS) for n, some in enumerate(numbers)]


def repeated(told: list[list[Record]], random: Random) -> list[list[Record]]:
    """Each batch again, one to five times in all, now and in later batches, in any order."""
    batches = [list(batch) for batch in told]
    for number, batch in enumerate(told):
        for _ in range(random.randrange(REPEATS_MAX)):
            batches[random.randrange(number, len(told))] += batch
    batches[-1] += told[0]
    for batch in batches:
        random.shuffle(batch)
    return batches


def stored(
    directory: Path,
    batches: list[list[Record]],
    spark: SparkSession,
    metrics: Metrics,
    days: int = 1,
) -> Tables:
    """A life for each batch, so many days later than the one before it."""
    fill(directory, [record for batch in batches for record in batch])
    for number, batch in enumerate(batches):
        with Line(directory, spark, metrics) as line:
            line.clock.seconds = (number - len(batches) + 1) * days * DAY_MS / 1000
            line.run(batches=1, records=len(batch))
            assert line.clock.now_ms() <= NOW
    return contents(directory, *OWN)


def test_batches_that_come_up_to_five_times_across_restarts_and_days_leave_the_same_tables(
    spark: SparkSession, metrics: Metrics, tmp_path: Path
) -> None:
    told = groups()
    again = repeated(told, Random(20261115))
    assert sum(map(len, again)) > 2 * sum(map(len, told))
    once = stored(tmp_path / "once", told, spark, metrics)
    assert len([table for table in once if table.startswith("segment_")]) > GROUPS
    assert stored(tmp_path / "again", again, spark, metrics) == once


def test_batches_in_any_order_and_of_any_size_leave_the_same_tables(
    spark: SparkSession, metrics: Metrics, tmp_path: Path
) -> None:
    """Callers alone: who an address belongs to is known from the batch on that tells it."""
    told = [group[::2] for group in groups()]
    at_once = [[record for batch in told for record in batch]]
    once = stored(tmp_path / "once", at_once, spark, metrics)
    assert stored(tmp_path / "again", told[::-1], spark, metrics, days=0) == once
