"""The Spark session, set for micro-batches (figures: docs/adr/001-exactly-once.md, ADR 006)."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession

from skyfarer.base.units import MIB
from skyfarer.oap.pipeline import archive
from skyfarer.oap.pipeline.java import collector, java_home

LOG_SETTINGS = Path(__file__).with_name("log4j2.properties")
CODEGEN_FIELDS_MAX = 1000
RESULT_BYTES_MAX = 96 * MIB
"""Below the 128 MiB that Spark's messages may have."""
UNCHECKED = "-Darrow.enable_unsafe_memory_access=true -Darrow.enable_null_check_for_get=false"
"""Arrow in Java checks every number it reads of a vector against its bounds. Here Spark alone
reads, row after row of what it was told to be there."""
RULES_IN_VAIN = (
    *(
        f"org.apache.spark.sql.catalyst.optimizer.{name}"
        for name in ("PruneFilters", "RemoveRedundantAliases", "FoldablePropagation")
    ),
    "org.apache.spark.sql.execution.datasources.PullOutVariantExtractions",
    "org.apache.spark.sql.execution.datasources.SchemaPruning",
)
"""Spark's rules that change nothing in the queries of a batch, and took a third of optimising."""
MEETING_S = 120
"""For Python and Java to meet at a socket. After Spark's 15 s a busy machine's start fails."""


@dataclass(frozen=True)
class SparkSettings:
    master: str = "local[*]"
    driver_memory: str = "1g"
    shuffle_partitions: int = 2
    scratch: Path = Path("data/spark")


def spark_session(settings: SparkSettings, java_options: str | None = None) -> SparkSession:
    """Starts the JVM, once a process: its Java and Python are read from the environment.

    `java_options` come in place of those that use an archive of classes, if there is one.
    """
    settings.scratch.mkdir(parents=True, exist_ok=True)
    home = java_home(os.environ, settings.scratch)
    os.environ["JAVA_HOME"] = str(home)
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    # Workers meet panics of native code by the thousand where a stranger wants them to, and a
    # backtrace costs more than the decoding.
    os.environ["RUST_BACKTRACE"] = "0"
    os.environ["SPARK_AUTH_SOCKET_TIMEOUT"] = str(MEETING_S)
    options = {
        "spark.ui.enabled": False,
        "spark.ui.showConsoleProgress": False,
        "spark.driver.memory": settings.driver_memory,
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.local.dir": str(settings.scratch / "local"),
        "spark.sql.warehouse.dir": str(settings.scratch / "warehouse"),
        "spark.sql.shuffle.partitions": settings.shuffle_partitions,
        "spark.sql.adaptive.enabled": False,
        # There is one exchange in a batch; to look for others is a fifth of its planning.
        "spark.sql.exchange.reuse": False,
        "spark.sql.optimizer.excludedRules": ",".join(RULES_IN_VAIN),
        # To warn of it, Spark notes at a plan every frame that was made of it: of one that is kept
        # (`once`), two a batch for ever.
        "spark.sql.analyzer.failAmbiguousSelfJoin": False,
        # Of each query Spark writes down the plan, which nobody reads without its pages.
        "spark.sql.ui.explainMode": "simple",
        # A row of accumulators is wide, and wider with metrics of a user's own (ADR 014).
        "spark.sql.codegen.maxFields": CODEGEN_FIELDS_MAX,
        # Of a group with a dozen keys the small map in front of the large one compares each by
        # itself; the large one compares bytes.
        "spark.sql.codegen.aggregate.map.twolevel.enabled": False,
        # What a task has found comes with its end, rather than to be asked for once more.
        "spark.task.maxDirectResultSize": RESULT_BYTES_MAX,
        # What of a batch finds no room in the heap goes to disk and comes back as objects, of which
        # Java keeps the last hundred by default: 4 MiB each, where segments are long.
        "spark.serializer.objectStreamReset": 1,
        "spark.python.authenticate.socketTimeout": f"{MEETING_S}s",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.execution.arrow.pyspark.enabled": True,
        "spark.sql.streaming.checkpointFileManagerClass": (
            "org.apache.spark.sql.execution.streaming.checkpointing"
            ".FileSystemBasedCheckpointFileManager"
        ),
        # The analysis is one loop, and may be a larger method than Java compiles by itself.
        # The collector has few cores to share, and a small heap: none that works all the time.
        "spark.driver.defaultJavaOptions": (
            f"{collector(os.environ)} -XX:-DontCompileHugeMethods {UNCHECKED}"
            f" -Dlog4j2.configurationFile={LOG_SETTINGS}"
            + (archive.options(home / "bin" / "java") if java_options is None else java_options)
        ),
    }
    builder = SparkSession.builder.master(settings.master).appName("skyfarer")
    for key, value in options.items():
        builder = builder.config(key, str(value))
    with _no_child_left():
        return builder.getOrCreate()


@contextmanager
def _no_child_left() -> Iterator[None]:
    """What is begun and then broken off is killed.

    A JVM that nobody waits for any more fails to say where it listens, and listens for ever: it
    looks whether its standard input has ended only after that.
    """
    before = _children()
    try:
        yield
    except BaseException:
        for pid in _children() - before:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        raise


def _children() -> set[int]:
    found = set()
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(FileNotFoundError, ProcessLookupError):  # it has just ended
            parent = stat.read_text(errors="replace").rpartition(")")[2].split()[1]
            if int(parent) == os.getpid():
                found.add(int(stat.parent.name))
    return found
