from __future__ import annotations

from datetime import UTC
from pathlib import Path

from contracts.templates_contract import ONE, TemplatesContract
from skyfarer.oap.storage.embedded import EmbeddedStorage


class TestEmbeddedStorage(TemplatesContract):
    pass


def test_a_dashboard_outlives_the_program(tmp_path: Path) -> None:
    for expected in ([], [ONE]):
        storage = EmbeddedStorage()
        storage.start(tmp_path / "skyfarer.duckdb", UTC)
        assert storage.templates() == expected
        storage.save_template(ONE)
        storage.stop()
