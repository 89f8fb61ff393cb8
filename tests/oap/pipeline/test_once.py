"""Real Spark: one analysis for many batches, and a new one where it does not hold."""

from __future__ import annotations

import re

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from skyfarer.oap.pipeline.once import AnalysedOnce


class Sums:
    """A query that is joined with something, and how often it was made."""

    def __init__(self, spark: SparkSession) -> None:
        self._names = spark.createDataFrame(pa.table({"key": [0, 1], "name": ["even", "odd"]}))
        self.made = 0

    def __call__(self, rows: DataFrame) -> DataFrame:
        self.made += 1
        keyed = rows.where("id < 100").withColumn("key", F.col("id") % 2)
        named = keyed.join(F.broadcast(self._names), ["key"], "left")
        return named.groupBy("name").agg(F.sum("id").alias("sum")).orderBy("name")


def found(frame: DataFrame) -> list[tuple[str, int]]:
    return [(row["name"], row["sum"]) for row in frame.collect()]


def analysed(frame: DataFrame) -> str:
    return numberless(frame._jdf.queryExecution().analyzed().toString())


def optimised(frame: DataFrame) -> str:
    return numberless(frame._jdf.queryExecution().optimizedPlan().toString())


def numberless(plan: str) -> str:
    """Spark numbers the columns that it makes."""
    return re.sub(r"#\d+L?|\[\d+\]", "", plan)


def test_other_rows_of_the_same_columns_are_not_analysed_again(spark: SparkSession) -> None:
    sums, ids = Sums(spark), spark.range(200)
    query = AnalysedOnce(sums)
    assert found(query.of(ids)) == [("even", 2450), ("odd", 2500)]
    assert found(query.of(ids.where("id < 4"))) == [("even", 2), ("odd", 4)]
    left_out = spark.createDataFrame(pa.table({"id": list(range(2, 100))}))
    assert found(query.of(ids.join(left_out, ["id"], "left_anti"))) == [("even", 0), ("odd", 1)]
    assert sums.made == 1


def test_rows_that_say_nothing_of_themselves_are_planned_as_ever(spark: SparkSession) -> None:
    """As the batches of a stream are: optimised once, too."""
    sums, ids = Sums(spark), spark.createDataFrame(pa.table({"id": list(range(200))}))
    query, rows = AnalysedOnce(sums), ids.localCheckpoint()
    assert found(query.of(rows)) == [("even", 2450), ("odd", 2500)]
    fewer = ids.repartition(2).localCheckpoint()
    again = query.of(fewer)
    assert sums.made == 1
    assert optimised(again) != analysed(sums(fewer)), "the test needs something to optimise"
    assert analysed(again) == optimised(again) == optimised(sums(fewer))
    assert found(again) == [("even", 2450), ("odd", 2500)]


def test_what_spark_knows_of_one_batch_is_not_believed_of_the_next(spark: SparkSession) -> None:
    sums, ids = Sums(spark), spark.range(200)
    query = AnalysedOnce(sums)
    assert found(query.of(ids.where("id < 4").localCheckpoint())) == [("even", 2), ("odd", 4)]
    assert found(query.of(ids.localCheckpoint())) == [("even", 2450), ("odd", 2500)]
    assert sums.made == 1


def test_columns_of_another_identity_are_analysed_anew(spark: SparkSession) -> None:
    sums = Sums(spark)
    query = AnalysedOnce(sums)
    assert found(query.of(spark.range(4))) == [("even", 2), ("odd", 4)]
    assert found(query.of(spark.range(6))) == [("even", 6), ("odd", 9)]
    assert sums.made == 2


def test_a_cached_batch_is_read_from_its_cache(spark: SparkSession) -> None:
    query = AnalysedOnce(Sums(spark))
    ids = spark.range(200)
    query.of(ids)
    few = ids.where("id < 4").persist()
    try:
        plan = query.of(few)._jdf.queryExecution().executedPlan().toString()
    finally:
        few.unpersist()
    assert "InMemoryTableScan" in plan


def test_a_query_without_its_rows_is_made_every_time(spark: SparkSession) -> None:
    other, made = spark.range(3), list[int]()

    def make(rows: DataFrame) -> DataFrame:
        made.append(rows.count())
        return other.agg(F.sum("id").alias("sum"))

    query, rows = AnalysedOnce(make), spark.range(2)
    for _ in range(2):
        assert query.of(rows).collect()[0]["sum"] == 3
    assert made == [2, 2]


def test_a_query_that_is_kept_does_not_grow_with_its_batches(spark: SparkSession) -> None:
    """Spark may note at a plan which frames were made of it."""
    ids = spark.range(200)
    query, frames = AnalysedOnce(Sums(spark)), 5
    plans = [query.of(ids)._jdf.queryExecution().analyzed() for _ in range(frames)]
    tags = plans[-1].getTagValue(spark._jvm.org.apache.spark.sql.classic.Dataset.DATASET_ID_TAG())
    assert tags.isEmpty() or tags.get().size() <= 1
