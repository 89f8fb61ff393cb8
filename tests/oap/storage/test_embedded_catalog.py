from __future__ import annotations

from collections.abc import Callable
from datetime import UTC
from pathlib import Path

import pytest

from contracts.catalog_contract import CatalogContract
from skyfarer.oap.storage.embedded import EmbeddedStorage

COLUMNS = """SELECT table_name || ' column ' || column_name || ' ' || data_type
        || CASE WHEN is_nullable THEN '' ELSE ' NOT NULL' END
    FROM duckdb_columns() WHERE NOT internal ORDER BY table_name, column_index"""
KEYS = """SELECT table_name || ' key ' || constraint_text FROM duckdb_constraints()
    WHERE constraint_type <> 'NOT NULL' ORDER BY table_name, constraint_index"""
INDEXES = """SELECT table_name || ' index ' || index_name || ' ' || expressions
    FROM duckdb_indexes() ORDER BY table_name, index_name"""


class TestEmbeddedCatalog(CatalogContract):
    golden = "duckdb.txt"

    @pytest.fixture
    def catalog(self, storage: EmbeddedStorage) -> Callable[[], list[str]]:
        def lines() -> list[str]:
            cursor = storage._cursor()
            queries = (COLUMNS, KEYS, INDEXES)
            return [line for query in queries for (line,) in cursor.execute(query).fetchall()]

        return lines

    @pytest.fixture
    def again(self, storage: EmbeddedStorage, tmp_path: Path) -> Callable[[bool], None]:
        def restart(install: bool) -> None:
            storage.stop()
            storage.start(tmp_path / "skyfarer.duckdb", UTC, install)

        return restart
