from __future__ import annotations

import pytest

from contracts.coordinator_contract import CoordinatorContract, Join
from skyfarer.oap.cluster.standalone import Standalone


class TestStandalone(CoordinatorContract):
    @pytest.fixture
    def join(self) -> Join:
        return Standalone
