"""DuckDB: one writing connection behind a lock, a cursor of its own for every read.

A transaction of DuckDB is durable when `COMMIT` returns (its log is synced), and a killed process
finds the last committed state. The file belongs to one process: a second one is refused by name.

It is attached to a database in memory, since only so its row groups can be made small (ADR 017).
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import tzinfo
from pathlib import Path
from typing import Final

import duckdb

from skyfarer.base.clock import Clock, SystemClock
from skyfarer.base.errors import PermanentError, RetryableError
from skyfarer.oap.core.capabilities import Capability
from skyfarer.oap.storage.embedded import expiry, parked, schema, tasks
from skyfarer.oap.storage.embedded.expiry import Expiry
from skyfarer.oap.storage.embedded.inventory import Inventories
from skyfarer.oap.storage.embedded.known import Known
from skyfarer.oap.storage.embedded.parked import ParkedTables
from skyfarer.oap.storage.embedded.reads import Reads
from skyfarer.oap.storage.embedded.slow import SlowReads
from skyfarer.oap.storage.embedded.tasks import AgentTables
from skyfarer.oap.storage.embedded.templates import SavedTemplates
from skyfarer.oap.storage.embedded.writes import Writes
from skyfarer.oap.storage.seen import Seen

ROW_GROUP_ROWS = 8192
"""Compressed at once, by the batch that fills it: DuckDB's own 122,880 hold that one up. Smaller
ones cost whoever reads or drops a day."""
_ATTACHED = "store"
_USE = f"USE {_ATTACHED}"


class EmbeddedStorage(
    Reads, SlowReads, Expiry, Writes, Inventories, ParkedTables, AgentTables, SavedTemplates
):
    """The whole storage contract (Writer, Reader, InventoryReader, ParkedRecords, TaskTables,
    TemplateTables, DayTables) on one DuckDB file."""

    lacks: Final = frozenset({Capability.SEVERAL_NODES})

    def __init__(
        self,
        memory_limit: str = "1GB",
        row_group_rows: int = ROW_GROUP_ROWS,
        clock: Clock | None = None,
    ) -> None:
        self._memory_limit = memory_limit
        self._row_group_rows = row_group_rows
        self._writing = threading.Lock()
        self._applying = threading.Lock()
        self._connection: duckdb.DuckDBPyConnection | None = None
        self._tables, self._seen, self._known, self._expired = {}, Seen(), Known(), {}
        self._ended = []
        self._clock = clock or SystemClock()

    def start(self, path: Path, zone: tzinfo, install: bool = True) -> None:
        """Without `install` file and tables must be there: RetryableError until they are."""
        if self._connection is not None:
            return
        if not install and not path.exists():
            raise RetryableError(f"the storage file {path} does not exist")
        self._zone = zone
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        config: dict[str, str | bool | int | float | list[str]] = {
            "memory_limit": self._memory_limit,
            "autoinstall_known_extensions": False,
            "temp_directory": f"{path}.tmp",
        }
        connection = duckdb.connect(config=config)
        try:
            connection.execute(_attaching(path, self._row_group_rows))
        except (duckdb.IOException, duckdb.ResourceInUseException) as error:
            connection.close()
            raise PermanentError(
                f"cannot open the storage file {path}: {error}; if another OAP runs on it, "
                "stop that one or set SKYFARER_DATA_DIR"
            ) from error
        connection.execute(_USE)
        if install:
            for statements in (schema.FIXED, parked.DDL, tasks.DDL, expiry.DDL):
                connection.execute(statements)
        elif schema.VERSION_TABLE not in schema.present(connection):
            connection.close()
            raise RetryableError(f"table: {schema.VERSION_TABLE} does not exist in {path}")
        (version,) = connection.execute("SELECT max(version) FROM schema_version").fetchall()[0]
        if version > schema.VERSION:
            connection.close()
            raise PermanentError(
                f"{path} has schema {version}, this program knows {schema.VERSION}: "
                "start the newer program, or move the file away"
            )
        if version < schema.VERSION:
            schema.upgrade(connection, version)
        self._connection = connection
        self._tables, self._seen, self._known, self._ended = {}, Seen(), Known(), []
        self._expired = expiry.read_expired(connection)
        self._aliases_changed()

    def stop(self, timeout_s: float = 10.0) -> None:
        with self._writing:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def _cursor(self) -> duckdb.DuckDBPyConnection:
        if self._connection is None:
            raise PermanentError("the storage is not started")
        return self._connection.cursor().execute(_USE)

    @contextmanager
    def _transaction(self) -> Iterator[duckdb.DuckDBPyConnection]:
        with self._writing:
            cursor = self._cursor()
            cursor.begin()
            try:
                yield cursor
            except BaseException:
                cursor.rollback()
                raise
            cursor.commit()


def _attaching(path: Path, row_group_rows: int) -> str:
    quoted = str(path).replace("'", "''")
    return f"ATTACH '{quoted}' AS {_ATTACHED} (ROW_GROUP_SIZE {row_group_rows})"
