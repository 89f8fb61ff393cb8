from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from skyfarer.testing.programs import Oap


@pytest.fixture
def oap(tmp_path: Path) -> Iterator[Oap]:
    oap = Oap(tmp_path)
    oap.start()
    yield oap
    oap.kill()
