from __future__ import annotations

from contracts.log_contract import LogContract


class TestEmbeddedLogs(LogContract):
    pass
