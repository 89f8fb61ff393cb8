from __future__ import annotations

from contracts.storage_contract import StorageContract


class TestPostgresStorage(StorageContract):
    pass
