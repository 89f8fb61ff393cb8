from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC
from pathlib import Path

import pytest

from skyfarer.oap.storage.embedded import EmbeddedStorage


@pytest.fixture
def storage(tmp_path: Path) -> Iterator[EmbeddedStorage]:
    storage = EmbeddedStorage()
    storage.start(tmp_path / "skyfarer.duckdb", UTC)
    yield storage
    storage.stop()
