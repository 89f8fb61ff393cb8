from __future__ import annotations

from collections.abc import Callable
from datetime import UTC

import psycopg
import pytest

from contracts.catalog_contract import CatalogContract
from skyfarer.oap.storage.postgresql import PostgresStorage

COLUMNS = """SELECT relname || ' column ' || attname || ' ' || format_type(atttypid, atttypmod)
        || coalesce(' COLLATE ' || nullif(collname, 'default'), '')
        || CASE WHEN attnotnull THEN ' NOT NULL' ELSE '' END
    FROM pg_class JOIN pg_attribute ON attrelid = pg_class.oid
        LEFT JOIN pg_collation ON attcollation = pg_collation.oid
    WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r' AND attnum > 0
    ORDER BY relname COLLATE "C", attnum"""
KEYS = """SELECT conrelid::regclass || ' key ' || conname || ' ' || pg_get_constraintdef(oid)
    FROM pg_constraint WHERE connamespace = current_schema()::regnamespace
    ORDER BY conrelid::regclass::text COLLATE "C", conname COLLATE "C" """
INDEXES = """SELECT tablename || ' index ' || replace(indexdef, schemaname || '.', '')
    FROM pg_indexes WHERE schemaname = current_schema()
    ORDER BY tablename COLLATE "C", indexname COLLATE "C" """
OTHERS = """SELECT relname || ' kind ' || relkind::text || coalesce(' ' || reloptions::text, '')
    FROM pg_class WHERE relnamespace = current_schema()::regnamespace AND relkind <> 'i'
    ORDER BY relname COLLATE "C" """


class TestPostgresCatalog(CatalogContract):
    golden = "postgresql.txt"

    @pytest.fixture
    def catalog(self, conninfo: str) -> Callable[[], list[str]]:
        def lines() -> list[str]:
            with psycopg.connect(conninfo) as connection:
                queries = (COLUMNS, KEYS, INDEXES, OTHERS)
                return [line for one in queries for (line,) in connection.execute(one).fetchall()]

        return lines

    @pytest.fixture
    def again(self, storage: PostgresStorage) -> Callable[[bool], None]:
        def restart(install: bool) -> None:
            storage.stop()
            storage.start(UTC, install)

        return restart
