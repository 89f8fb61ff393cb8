from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from oap.pipeline.bench import Bench
from skyfarer.oap.pipeline.session import SparkSettings, spark_session
from skyfarer.oap.pipeline.sources.queue import QueueSource


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    scratch = tmp_path_factory.mktemp("spark")
    session = spark_session(SparkSettings("local[2]", "512m", 1, scratch))
    session.dataSource.register(QueueSource)
    yield session
    session.stop()


@pytest.fixture
def bench(tmp_path: Path, spark: SparkSession) -> Iterator[Bench]:
    bench = Bench(tmp_path, spark)
    bench.start(tmp_path / "skyfarer.duckdb")
    yield bench
    bench.stop()
