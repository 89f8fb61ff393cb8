"""DuckDB: one writing connection behind a lock, a cursor of its own for every read.

A transaction of DuckDB is durable when `COMMIT` returns (its log is synced), and a killed process
finds the last committed state. The file belongs to one process: a second one is refused by name.
Where a full disk has made DuckDB give it up, it is opened anew by whoever asks next (`failures`).

It is attached to a database in memory, since only so its row groups can be made small (ADR 017).
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import tzinfo
from pathlib import Path
from typing import Final

import duckdb

from skyfarer.base.clock import Clock, SystemClock
from skyfarer.base.errors import PermanentError
from skyfarer.oap.core.capabilities import Capability
from skyfarer.oap.core.storage import METADATA_ROWS_MAX
from skyfarer.oap.storage.embedded import expiry, opening
from skyfarer.oap.storage.embedded.expiry import Expiry
from skyfarer.oap.storage.embedded.failures import is_unusable, told
from skyfarer.oap.storage.embedded.inventory import Inventories
from skyfarer.oap.storage.embedded.known import Known
from skyfarer.oap.storage.embedded.parked import ParkedTables
from skyfarer.oap.storage.embedded.reads import Reads
from skyfarer.oap.storage.embedded.searching import READ_TIMEOUT_S, bounded
from skyfarer.oap.storage.embedded.slow import SlowReads
from skyfarer.oap.storage.embedded.tasks import AgentTables
from skyfarer.oap.storage.embedded.templates import SavedTemplates
from skyfarer.oap.storage.embedded.writes import Writes
from skyfarer.oap.storage.seen import Seen

ROW_GROUP_ROWS = 8192
"""Compressed at once, by the batch that fills it: DuckDB's own 122,880 hold that one up. Smaller
ones cost whoever reads or drops a day."""
CLOSING_S = 1.0
"""For whoever was broken off to notice."""
CLOSE_EVERY_S = 0.02

log = logging.getLogger(__name__)


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
        metadata_rows_max: int = METADATA_ROWS_MAX,
        read_timeout_s: float = READ_TIMEOUT_S,
    ) -> None:
        self._memory_limit = memory_limit
        self._row_group_rows = row_group_rows
        self._metadata_rows_max = metadata_rows_max
        self._read_timeout_s = read_timeout_s
        self._writing = threading.Lock()
        self._applying = threading.Lock()
        self._opening = threading.Lock()
        self._unusable = False
        self._connection: duckdb.DuckDBPyConnection | None = None
        self._writer: duckdb.DuckDBPyConnection | None = None
        self._tables, self._seen, self._known, self._expired = {}, Seen(), Known(), {}
        self._ended = []
        self._clock = clock or SystemClock()

    def start(self, path: Path, zone: tzinfo, install: bool = True) -> None:
        """Without `install` file and tables must be there: RetryableError until they are."""
        if self._connection is not None:
            return
        if not install and not path.exists():
            raise opening.not_there(path)
        self._path, self._zone = path, zone
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        connection = opening.connected(path, self._memory_limit)
        try:
            with told("open"):
                opening.attach(connection, path, self._row_group_rows, install)
                cursor = connection.cursor().execute(opening.USE)
                look = opening.install if install else opening.check
                look(cursor, path, zone, self._clock.now_ms())
                self._tables, self._seen, self._known, self._ended = {}, Seen(), Known(), []
                self._expired = expiry.read_expired(cursor)
        except BaseException:
            connection.close()
            raise
        self._aliases_changed()
        self._connection, self._unusable = connection, False

    def stop(self, timeout_s: float = 10.0) -> None:
        """Waits so long for what is being written, which is undone where it is not done by then."""
        until_s = time.monotonic() + timeout_s
        done = self._writing.acquire(timeout=timeout_s)
        connection, writer, self._connection = self._connection, self._writer, None
        self._aliases_changed()
        try:
            if not done and writer is not None:
                log.warning("what was still being written after %g s is undone", timeout_s)
                writer.interrupt()
            if connection is not None:
                _close(connection, max(until_s, time.monotonic() + CLOSING_S))
        finally:
            if done:
                self._writing.release()

    def _cursor(self) -> duckdb.DuckDBPyConnection:
        with self._opening:
            if self._connection is None:
                raise PermanentError("the storage is not started")
            if self._unusable:
                self._open_again(self._connection)
            return self._connection.cursor().execute(opening.USE)

    def _open_again(self, connection: duckdb.DuckDBPyConnection) -> None:
        """What is remembered of batches holds: it follows commits that did not fail. One that did
        may be durable all the same, so what else it may have changed is read again."""
        with told("open"):
            opening.attach_again(connection, self._path, self._row_group_rows)
            stored = expiry.read_expired(connection.cursor().execute(opening.USE))
        for model, day in stored.items():
            self._expired[model] = max(day, self._expired.get(model, 0))
        self._aliases_changed()
        self._unusable = False
        log.warning("the storage file was opened anew, after it had been given up")

    @contextmanager
    def _reading(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """A cursor on one snapshot, ended after `read_timeout_s`."""
        cursor = self._cursor()
        with bounded(cursor, self._read_timeout_s):
            yield cursor

    @contextmanager
    def _transaction(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """A cursor whose work is durable when the block ends, and undone when it raises."""
        with self._writing, told("write to"):
            cursor = self._writer = self._cursor()
            cursor.begin()
            try:
                yield cursor
                if self._connection is None:
                    raise PermanentError("the storage was stopped meanwhile")
                cursor.commit()
            except BaseException as error:
                self._unusable = self._unusable or is_unusable(error)
                _undo(cursor)
                raise
            finally:
                self._writer = None


def _close(connection: duckdb.DuckDBPyConnection, until_s: float) -> None:
    """DuckDB refuses while a cursor is at work, a reader's too."""
    while True:
        try:
            return connection.close()
        except duckdb.ResourceInUseException:
            if time.monotonic() >= until_s:
                return log.warning("the storage file stays open for whoever still reads it")
        time.sleep(CLOSE_EVERY_S)


def _undo(cursor: duckdb.DuckDBPyConnection) -> None:
    """A commit that failed has undone it already, and so has a file that was given up."""
    try:
        cursor.rollback()
    except duckdb.Error as error:
        log.debug("nothing to undo: %s", error)
