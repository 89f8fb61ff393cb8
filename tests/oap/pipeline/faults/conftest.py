from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from oap.pipeline.bench import PLAN, SETTINGS
from oap.pipeline.faults.line import Line, Tables, contents
from oap.pipeline.faults.work import fill, work
from skyfarer.oap.pipeline.metrics import Metrics


@pytest.fixture(scope="session")
def metrics() -> Metrics:
    """Of all lives: its expressions are the same in each, and take a second to make."""
    return Metrics(PLAN, SETTINGS)


@pytest.fixture(scope="session")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A queue that nobody has read; to be copied, since its identity is in the tables."""
    directory = tmp_path_factory.mktemp("filled")
    fill(directory, work())
    return directory


@pytest.fixture(scope="session")
def undisturbed(
    filled: Path, tmp_path_factory: pytest.TempPathFactory, spark: SparkSession, metrics: Metrics
) -> Tables:
    directory = tmp_path_factory.mktemp("undisturbed") / "life"
    shutil.copytree(filled, directory)
    with Line(directory, spark, metrics) as line:
        line.run()
    return contents(directory)
