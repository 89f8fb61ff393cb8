"""The metrics stage as it runs, over batches that a stream has read from a queue and Spark keeps:
one exchange between two generated aggregations, and no Python between the kept rows and the result.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from oap.pipeline.bench import NOON, SETTINGS, Bench
from skyfarer.oap.oal.compiler import plan_of, shipped
from skyfarer.oap.pipeline.metrics import Metrics
from skyfarer.oap.pipeline.sources.queue import QueueSource
from skyfarer.testing.traces import Exit, segment

GOLDEN = Path(__file__).parents[2] / "golden" / "metrics_stage.txt"
ALIASES = pa.table({"address": ["b:80"], "alias_service": ["b"], "alias_instance": ["b-1"]})
TOLD = {"without aliases": None, "with aliases": ALIASES}
BATCHES = 2
STARTS_MAX = 8
KEPT = "InMemoryTableScan"


class Stage:
    """Plans each batch as the sink does, and has it run: the result is made by what was planned."""

    def __init__(self) -> None:
        self._metrics = {name: Metrics(plan_of(shipped()), SETTINGS) for name in TOLD}
        self.plans: dict[tuple[str, int], str] = {}
        self.analysed: dict[str, list[object]] = {name: [] for name in TOLD}

    def __call__(self, rows: DataFrame, number: int) -> None:
        kept = rows.persist()
        for name, aliases in TOLD.items():
            metrics = self._metrics[name]
            frame = metrics.frame(kept, aliases)
            self.plans[name, number] = formatted(frame)
            assert frame.toArrow().num_rows
            self.analysed[name].append(metrics._query._above)
        kept.unpersist()


def formatted(frame: DataFrame) -> str:
    jvm = frame.sparkSession._jvm
    return jvm.PythonSQLUtils.explainString(frame._jdf.queryExecution(), "formatted")


def tree(plan: str) -> str:
    """Its operators alone, without their numbers."""
    shown = plan.split("== Physical Plan ==\n")[1].partition("\n\n")[0]
    return re.sub(r" +\(\d+\)", "", shown)


@pytest.fixture(scope="module")
def stage(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Stage:
    directory = tmp_path_factory.mktemp("stage")
    bench, stage = Bench(directory, spark), Stage()
    bench.writer.start()
    calls = [Exit("/", "b:80", 1, 5)]
    bench.append(*(segment("a", "a-1", "/", NOON, 9, exits=calls) for _ in range(BATCHES)))
    options = {"directory": bench.directory, "start": 0, "records_max": 1, "splits": 1}
    rows = spark.readStream.format(QueueSource.name())
    rows = rows.options(**{key: str(value) for key, value in options.items()})
    for _ in range(STARTS_MAX):
        streamed(rows.load(), stage)
        if stage.plans:
            break
    bench.writer.stop(1)
    return stage


def streamed(rows: DataFrame, stage: Stage) -> None:
    """All that is queued. On a busy machine it may not begin: Spark gives the process that plans a
    stream ten seconds to start."""
    query = rows.writeStream.foreachBatch(stage).start()
    try:
        query.processAllAvailable()
    except StreamingQueryException as error:
        if "failed to connect back" not in str(error):
            raise
    finally:
        query.stop()


def test_the_plan_is_the_golden_one_for_the_first_batch_and_for_the_next(stage: Stage) -> None:
    """A plan that changed on purpose is written anew from the message."""
    assert [*stage.plans] == [(name, number) for number in range(BATCHES) for name in TOLD]
    for number in range(BATCHES):
        shown = "".join(f"{name}:\n\n{tree(stage.plans[name, number])}\n\n" for name in TOLD)
        assert shown.rstrip() + "\n" == GOLDEN.read_text("utf-8"), shown


def test_the_next_batch_has_the_plan_that_was_analysed_for_the_first(stage: Stage) -> None:
    for first, *others in stage.analysed.values():
        assert first is not None
        assert all(other is first for other in others)


def test_one_shuffle_is_between_the_partial_and_the_final_aggregation(stage: Stage) -> None:
    for plan in stage.plans.values():
        final, shuffle, partial, *others = tree(plan).splitlines()
        assert [final, shuffle.split()[-1]] == ["* HashAggregate", "Exchange"]
        assert partial.endswith("* HashAggregate")
        assert not [line for line in others if re.search(r"(?<!Broadcast)Exchange|Aggregate", line)]
        exchanged = re.search(r"\) Exchange\n(?:.*\n)*?Arguments: hashpartitioning\(source", plan)
        assert exchanged
        functions = re.findall(r"^Functions \[\d+\]: \[(\w+)", plan, re.MULTILINE)
        assert functions == ["partial_count", "count"]


def test_no_python_is_between_the_kept_rows_and_the_result(stage: Stage) -> None:
    for plan in stage.plans.values():
        above, kept, _ = tree(plan).partition(KEPT)
        assert kept
        words = Counter(re.findall(r"\w+", above))
        assert not [word for word in words if re.search(r"Python|Arrow|Pandas|MapIn|UDF", word)]
