"""PostgreSQL through psycopg: a pool of connections that only read, and one that writes.

A transaction is durable when COMMIT returns. Reading happens in one snapshot, with a bound on its
time. Whoever is cut off in a transaction (a killed process, a cable, a paused node) is rolled back,
IDLE_S later, so that nobody waits for it for ever: by the server, or, in the middle of a statement,
by another node (`stuck`).

Several OAPs may write to one database (`writes`).
"""

from __future__ import annotations

import select
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import tzinfo
from typing import Any, Final

import psycopg
from psycopg.conninfo import make_conninfo
from psycopg_pool import ConnectionPool

from skyfarer.base.errors import PermanentError
from skyfarer.oap.core.capabilities import Capability
from skyfarer.oap.core.deadline import left_s
from skyfarer.oap.core.storage import METADATA_ROWS_MAX
from skyfarer.oap.storage.postgresql import (
    aliases,
    expiry,
    inventory,
    packed,
    parked,
    schema,
    tasks,
)
from skyfarer.oap.storage.postgresql.copying import Cursor, Text
from skyfarer.oap.storage.postgresql.expiry import Expiry
from skyfarer.oap.storage.postgresql.failures import told, told_of_reading
from skyfarer.oap.storage.postgresql.folding import FOLD_S, Folding
from skyfarer.oap.storage.postgresql.inventory import Inventories
from skyfarer.oap.storage.postgresql.parked import ParkedTables
from skyfarer.oap.storage.postgresql.reads import Reads
from skyfarer.oap.storage.postgresql.searching import bound_to
from skyfarer.oap.storage.postgresql.tasks import AgentTables
from skyfarer.oap.storage.postgresql.templates import SavedTemplates
from skyfarer.oap.storage.postgresql.upgrading import upgrade
from skyfarer.oap.storage.postgresql.writes import Writes
from skyfarer.oap.storage.seen import Seen

READ_TIMEOUT_S: Final = 10.0
CONNECT_S: Final = 5
POOL_S: Final = 3
"""For a connection of the pool, so that whoever asks three times while the server is away, as the
metrics of this program do, is not itself given up."""
IDLE_S: Final = 60
LOCK_S: Final = 60
"""A lock that is not had by then: the batch is tried again."""
WRITERS_MAX: Final = 3
"""One for batches, one for folding, one for what else is written meanwhile."""
PREPARED_AFTER: Final = 2
"""Times that a statement is sent before the server keeps its plan."""
_SECOND_MS: Final = 1000
_ALIVE: Final = {"keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 3}
"""Of the client's end of a connection; the server's has the same."""
_CONNECTION: Final[Mapping[str, Any]] = {
    "application_name": "skyfarer",
    "connect_timeout": CONNECT_S,
    "client_encoding": "UTF8",
    **_ALIVE,
    "tcp_user_timeout": IDLE_S * _SECOND_MS,
}
_PLANNING: Final[Mapping[str, Any]] = {"random_page_cost": 1.1, "jit": "off"}
"""Most of what is searched is in memory: a row by its index is no dearer than its neighbour. And no
search is long enough to be compiled first."""
_Pool = ConnectionPool[psycopg.Connection[tuple[Any, ...]]]


_FIXED: Final = (
    *(schema.FIXED, aliases.DDL, inventory.DDL, parked.DDL, tasks.DDL, expiry.DDL, packed.DDL),
)


class PostgresStorage(
    Reads, Folding, Writes, Inventories, ParkedTables, AgentTables, SavedTemplates, Expiry
):
    """The whole storage contract (Writer, Reader, InventoryReader, ParkedRecords, TaskTables,
    TemplateTables, DayTables) on one database, in the schema that the connection finds first."""

    lacks: Final = frozenset({Capability.ANY_CHARACTER})

    def __init__(
        self,
        conninfo: str,
        pool_size: int = 4,
        metadata_rows_max: int = METADATA_ROWS_MAX,
        read_timeout_s: float = READ_TIMEOUT_S,
        fold_s: float = FOLD_S,
        idle_s: float = IDLE_S,
    ) -> None:
        self._conninfo = conninfo
        self._metadata_rows_max = metadata_rows_max
        self._pool_size = pool_size
        self._read_timeout_s = read_timeout_s
        self._fold_s = fold_s
        self._idle_s = idle_s
        self._applying = threading.Lock()
        self._tables, self._seen, self._remembered = {}, Seen(), packed.Remembered()
        self._readers: _Pool | None = None
        self._writers: _Pool | None = None

    def start(self, zone: tzinfo, install: bool = True) -> None:
        """Without `install` the fixed tables must be there: RetryableError until they are."""
        if self._writers is not None:
            return
        self._zone = zone
        self._tables, self._seen, self._aliases_read = {}, Seen(), None
        with told("connect to"):
            psycopg.connect(make_conninfo(self._conninfo, **_CONNECTION)).close()
        self._readers = self._pool(self._pool_size, _read_only(self._read_timeout_s, self._idle_s))
        self._writers = self._pool(WRITERS_MAX, _writing(self._idle_s))
        try:
            with self._transaction() as cursor:
                if install:
                    schema.install(cursor, _FIXED, upgrade, zone)
                else:
                    schema.check(cursor, _FIXED, zone)
        except BaseException:
            self.stop()
            raise
        self._start_folding()

    def stop(self, timeout_s: float = 10.0) -> None:
        self._stop_folding(timeout_s / 2)
        pools, self._readers, self._writers = (self._readers, self._writers), None, None
        for pool in pools:
            if pool is not None:
                pool.close(timeout_s / 2 / len(pools))

    def _pool(self, size: int, configure: Any) -> _Pool:
        """A connection is looked at before it is given out: one that a restarted server has left
        behind is replaced, not handed to the caller."""
        pool: _Pool = ConnectionPool(
            make_conninfo(self._conninfo, **_CONNECTION),
            min_size=0,
            max_size=size,
            timeout=POOL_S,
            reconnect_timeout=CONNECT_S,
            configure=configure,
            check=_check,
            open=False,
        )
        pool.open()
        return pool

    @contextmanager
    def _reading(self) -> Iterator[Cursor]:
        """A cursor on one snapshot; only for reading, ended after `read_timeout_s`, or when the
        time of whoever asked is over."""
        if self._readers is None:
            raise PermanentError("the storage is not started")
        timeout_s = left_s(self._read_timeout_s)
        with (
            told_of_reading(timeout_s),
            self._readers.connection(min(timeout_s, POOL_S)) as connection,
            connection.cursor(binary=True) as cursor,
        ):
            if timeout_s < self._read_timeout_s:
                bound_to(cursor, timeout_s)
            yield cursor

    @contextmanager
    def _looking_up(self) -> Iterator[Cursor]:
        """As `_reading`, but each statement has a snapshot of its own: two ways to the server and
        back are saved, which is much for what is found at once."""
        if left_s(self._read_timeout_s) < self._read_timeout_s:
            with self._reading() as cursor:  # whose time can be told to a transaction alone
                yield cursor
            return
        if self._readers is None:
            raise PermanentError("the storage is not started")
        with told_of_reading(self._read_timeout_s), self._readers.connection() as connection:
            connection.autocommit = True
            try:
                with connection.cursor(binary=True) as cursor:
                    yield cursor
            finally:
                if not connection.closed:
                    connection.autocommit = False

    @contextmanager
    def _transaction(self) -> Iterator[Cursor]:
        """A cursor whose work is durable when the block ends, and undone when it raises."""
        if self._writers is None:
            raise PermanentError("the storage is not started")
        with (
            told("write to"),
            self._writers.connection() as connection,
            connection.cursor(binary=True) as cursor,
        ):
            yield cursor

    @contextmanager
    def _alone(self) -> Iterator[Cursor]:
        """A cursor whose statements are transactions of their own, as VACUUM must be."""
        if self._writers is None:
            raise PermanentError("the storage is not started")
        with told("write to"), self._writers.connection() as connection:
            connection.autocommit = True
            try:
                with connection.cursor(binary=True) as cursor:
                    yield cursor
            finally:
                if not connection.closed:
                    connection.autocommit = False


def _check(connection: psycopg.Connection[Any]) -> None:
    """A server that has ended left its farewell or an end of file to be read: only then is the way
    there and back worth it."""
    waiting = select.poll()
    waiting.register(connection.fileno(), select.POLLIN)
    if waiting.poll(0):
        ConnectionPool.check_connection(connection)


def _read_only(timeout_s: float, idle_s: float) -> Any:
    def configure(connection: psycopg.Connection[Any]) -> None:
        settings = {"statement_timeout": int(timeout_s * _SECOND_MS), **_PLANNING}
        _bound(connection, idle_s, settings)
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        connection.read_only = True

    return configure


def _writing(idle_s: float) -> Any:
    def configure(connection: psycopg.Connection[Any]) -> None:
        settings = {"lock_timeout": LOCK_S * _SECOND_MS, "synchronous_commit": "on", "jit": "off"}
        _bound(connection, idle_s, settings)
        connection.isolation_level = psycopg.IsolationLevel.READ_COMMITTED

    return configure


def _bound(
    connection: psycopg.Connection[Any], idle_s: float, settings: Mapping[str, object]
) -> None:
    connection.prepare_threshold = PREPARED_AFTER
    connection.adapters.register_dumper(str, Text)
    idle_ms = int(idle_s * _SECOND_MS)
    alive: dict[str, object] = {f"tcp_{name}": value for name, value in _ALIVE.items()}
    alive |= {"tcp_user_timeout": idle_ms, "idle_in_transaction_session_timeout": idle_ms}
    for name, value in {**alive, **settings}.items():
        connection.execute("SELECT set_config(%s, %s, false)", [name, str(value)])
    connection.commit()
