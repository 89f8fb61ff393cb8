from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Where a test writes an application.yml of its own."""
    return tmp_path / "application.yml"


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """Puts this process into a zone."""

    def is_in(zone: str) -> None:
        monkeypatch.setenv("TZ", zone)
        time.tzset()

    yield is_in
    monkeypatch.undo()
    time.tzset()
