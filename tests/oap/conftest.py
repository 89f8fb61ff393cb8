from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Where a test writes an application.yml of its own."""
    return tmp_path / "application.yml"
