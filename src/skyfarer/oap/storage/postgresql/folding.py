"""What batches have appended becomes part of the merged rows, every few seconds, in the background.

    locked     one node of all folds at a time (`Lock.FOLDING`); the others go on without waiting
    gathered   batches of one appended table, ROWS_A_FOLD at most, then more (`gathering`)
    merged     into minutes, hours and days, which take them in (`taking`)
    removed    what was gathered
    committed  all in one transaction: whoever reads sees a row in one place, never in both

A fold that is killed at any step has not happened, and neither has one that was not on the server's
disk yet when the power failed. No row is lost by that, so it does not wait for the disk. Readers
put both places together, so nobody waits for a fold; it is there so that few rows are to be put
together, and that a row of an hour or a day is changed once a fold and not once a batch. Where
folding is behind by APPENDED_ROWS_MAX rows of this node, batches wait for it.

The merged table is locked before the appended one, as whoever drops a day or adds a column does.
"""

from __future__ import annotations

import logging
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Final

import pyarrow.compute as pc
from psycopg.errors import UndefinedTable

from skyfarer.base.errors import PermanentError, RetryableError
from skyfarer.base.units import MIB
from skyfarer.oap.storage.postgresql import appended, packed, schema
from skyfarer.oap.storage.postgresql.copying import Cursor
from skyfarer.oap.storage.postgresql.gathering import gathered, removed
from skyfarer.oap.storage.postgresql.metrics import Wide, stored_columns
from skyfarer.oap.storage.postgresql.packing import Packing
from skyfarer.oap.storage.postgresql.stuck import end_stuck
from skyfarer.oap.storage.postgresql.taking import take_in

FOLD_S: Final = 10.0
ROWS_MANY: Final = 70_000
"""Of one node and table: then it is folded at once."""
ROWS_A_FOLD: Final = 100_000
BYTES_A_FOLD: Final = 24 * MIB
"""Of the tables in them, as bundles have them: two bytes may be an entry."""
APPENDED_ROWS_MAX: Final = 1_000_000
_WITHOUT_WAITING: Final = "SET LOCAL synchronous_commit = off"
log = logging.getLogger(__name__)


class Folding(Packing, ABC):
    """A thread of its own from `_start_folding` to `_stop_folding`."""

    _fold_s: float  # between two turns
    _idle_s: float  # of whoever stands still with a lock
    _appended: dict[str, int]  # rows that this node has brought and nobody has folded, by table
    _counting: threading.Lock  # of `_appended`
    _fold_wanted: threading.Event
    _folding: tuple[threading.Thread, threading.Event] | None = None  # and what ends it

    @abstractmethod
    def _reading(self) -> AbstractContextManager[Cursor]: ...

    @abstractmethod
    def _transaction(self) -> AbstractContextManager[Cursor]: ...

    @abstractmethod
    def _alone(self) -> AbstractContextManager[Cursor]: ...

    def fold(self, wait: bool = False) -> int:
        """All that is there when it is called; how many rows it were. What another node is folding
        is left to it, or with `wait` waited for. Blocks on the database; from any thread."""
        counted = self._counted()
        with self._reading() as cursor:
            there = _not_empty(cursor)
        self._are_folded({table: count for table, count in counted.items() if table not in there})
        folded, failed = 0, None
        for table in there:
            try:
                folded += self._fold_table(table, wait)
            except PermanentError as error:
                failed = error  # which is no reason for the others to wait
        if failed is not None:
            raise failed
        return folded

    def _fold_table(self, table: str, wait: bool) -> int:
        counted, folded, more = self._counted().get(table, 0), 0, True
        with _until_dropped():
            while more:
                with self._transaction() as cursor:
                    cursor.execute(_WITHOUT_WAITING)
                    if not _is_mine(cursor, wait):
                        return folded
                    count, more = _fold(cursor, table)
                folded += count
            if folded:
                with self._alone() as cursor:
                    cursor.execute(f"VACUUM {table}")
        self._are_folded({table: counted})
        return folded

    def _await_folding(self) -> None:
        """Before a batch: RetryableError where there is too much to fold, and it fails."""
        if self._most_appended() < APPENDED_ROWS_MAX:
            return
        try:
            self.fold(wait=True)
        except PermanentError as error:
            raise RetryableError(
                f"appended metrics are too many and not folded: {error}"
            ) from error

    def _brought(self, rows: Mapping[str, int]) -> None:
        """By a batch that is durable, to these tables."""
        with self._counting:
            for table, count in rows.items():
                self._appended[table] = self._appended.get(table, 0) + count
        if self._most_appended() >= ROWS_MANY:
            self._fold_wanted.set()

    def _are_folded(self, rows: Mapping[str, int]) -> None:
        """By whichever node; what was brought meanwhile still counts."""
        with self._counting:
            for table, count in rows.items():
                left = self._appended.pop(table, 0) - count
                self._appended |= {table: left} if left > 0 else {}

    def _counted(self) -> dict[str, int]:
        with self._counting:
            return dict(self._appended)

    def _most_appended(self) -> int:
        return max(self._counted().values(), default=0)

    def _start_folding(self) -> None:
        self._appended, self._counting, self._packed_s = {}, threading.Lock(), {}
        self._fold_wanted, ends = threading.Event(), threading.Event()
        thread = threading.Thread(
            target=self._fold_on, args=[ends], name="postgresql-fold", daemon=True
        )
        self._folding = thread, ends
        thread.start()

    def _stop_folding(self, timeout_s: float) -> None:
        """What is not folded yet is durable where it is."""
        folding, self._folding = self._folding, None
        if folding is not None:
            thread, ends = folding
            ends.set()
            self._fold_wanted.set()
            thread.join(timeout_s)

    def _fold_on(self, ends: threading.Event) -> None:
        failing = False
        while True:
            self._fold_wanted.wait(self._fold_s)
            self._fold_wanted.clear()
            if ends.is_set():
                return
            try:
                with self._alone() as cursor:
                    end_stuck(cursor, self._idle_s)
                self.fold()
                self.pack()
                failing = False
            except Exception as error:  # whatever it is, the next turn may do better
                if not failing:
                    unforeseen = not isinstance(error, (RetryableError, PermanentError))
                    text = "metrics are not folded or not packed, and will be tried again: %s"
                    log.warning(text, error, exc_info=unforeseen)
                failing = True


@contextmanager
def _until_dropped() -> Iterator[None]:
    """The end of a day is no failure."""
    try:
        yield
    except RetryableError as error:
        if not isinstance(error.__cause__, UndefinedTable):
            raise


def _not_empty(cursor: Cursor) -> list[str]:
    """Appended tables that may have rows: those without any are cut to no page."""
    cursor.execute(
        """SELECT relname FROM pg_class WHERE relname >= %s::name AND relname < %s::name
        AND relnamespace = current_schema()::regnamespace AND relkind = 'r'
        AND pg_relation_size(oid) > 0 ORDER BY relname""",
        [appended.PREFIX, f"{appended.PREFIX[:-1]}{chr(ord(appended.PREFIX[-1]) + 1)}"],
    )
    return [name for (name,) in cursor.fetchall()]


def _is_mine(cursor: Cursor, wait: bool) -> bool:
    """Whether this transaction may fold; `wait` for whoever does."""
    if wait:
        schema.take(cursor, schema.Lock.FOLDING)
    return wait or schema.try_to_take(cursor, schema.Lock.FOLDING)


def _fold(cursor: Cursor, table: str) -> tuple[int, bool]:
    """How many rows, and whether there may be more."""
    merged = appended.merged_of(table)
    cursor.execute(f"LOCK TABLE {merged} IN ROW EXCLUSIVE MODE")
    both = stored_columns(cursor, merged), stored_columns(cursor, table)
    found = gathered(cursor, table, both, ROWS_A_FOLD, BYTES_A_FOLD)
    rows = found.rows
    if rows.num_rows:
        packed.forget(cursor, merged, pc.min(rows["time_bucket"]).as_py())
        take_in(cursor, Wide(merged, rows, found.columns), found.each)
        removed(cursor, table, found.batches)
    return rows.num_rows, found.more
