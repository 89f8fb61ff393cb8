"""What PostgreSQL says when something fails, in the two words of the house.

RetryableError   the server is away, restarts, is full, or another transaction was in the way:
                 the transaction is rolled back, and the same call may succeed later
PermanentError   everything else: rights, a wrong password, data or statements it refuses
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import psycopg
from psycopg import errors

from skyfarer.base.errors import PermanentError, RetryableError

AFTER_S: Final = 1.0
"""Before a server that was away is asked again."""
_PASSING: Final = (
    errors.OperationalError,  # connections, resources, shutdowns, deadlocks, timeouts of locks
    errors.IdleInTransactionSessionTimeout,
    errors.ReadOnlySqlTransaction,  # a server that has become another one's copy
    errors.InterfaceError,  # a connection that has been closed meanwhile
    errors.UndefinedTable,  # a day that another node has dropped, after this one had seen it
)
_SETTLED: Final = (
    errors.InvalidPassword,
    errors.InvalidAuthorizationSpecification,
    errors.InvalidCatalogName,
)


@contextmanager
def told(doing: str) -> Iterator[None]:
    """`doing` is what fails, as in "write to": part of the sentence."""
    try:
        yield
    except psycopg.Error as error:
        reason = f"cannot {doing} PostgreSQL: {_sentence(error)}"
        if isinstance(error, _PASSING) and not isinstance(error, _SETTLED):
            raise RetryableError(reason, AFTER_S) from error
        raise PermanentError(reason) from error


@contextmanager
def told_of_reading(timeout_s: float) -> Iterator[None]:
    try:
        with told("read from"):
            yield
    except RetryableError as error:
        cause = error.__cause__
        if isinstance(cause, errors.QueryCanceled):
            raise RetryableError(
                f"storage was searched for {timeout_s:.3g} s without an end; ask for a shorter time"
            ) from cause
        if isinstance(cause, errors.UndefinedTable):
            raise RetryableError("a day expired while it was read; ask again") from cause
        raise


def _sentence(error: psycopg.Error) -> str:
    """Its first line and its hint: the rest repeats the statement."""
    lines = str(error.diag.message_primary or error).strip().splitlines()
    said = lines[0] if lines else type(error).__name__
    return f"{said} ({error.diag.message_hint})" if error.diag.message_hint else said
