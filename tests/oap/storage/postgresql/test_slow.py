from __future__ import annotations

from contracts.slow_contract import SlowContract


class TestPostgresSlow(SlowContract):
    pass
