from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from oap.pipeline.bench import Bench
from skyfarer.oap.core.inventory import InventoryScope
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


@pytest.fixture
def registered(bench: Bench) -> Bench:
    """Services shop (2) and web (4), with instances 3 and 5; endpoint 7; address 9."""
    for service, instance, name in ((2, 3, "shop"), (4, 5, "web")):
        bench.inventories.add(InventoryScope.SERVICE, service, name)
        bench.inventories.add(InventoryScope.SERVICE_INSTANCE, instance, f"{name}-pid:1", service)
    bench.inventories.add(InventoryScope.ENDPOINT, 7, "/pay", 2)
    bench.inventories.add(InventoryScope.NETWORK_ADDRESS, 9, "db:5432")
    return bench
