"""What DuckDB says when something fails, in the two words of the house.

RetryableError   the disk is full or fails, memory is short: the transaction is rolled back, and the
                 same call may succeed later
PermanentError   everything else: data or statements it refuses, a file that is no database

A checkpoint that fails, as it does on a full disk, leaves a database that answers nobody until its
file is opened anew (`is_unusable`). The commit before it may be durable.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import duckdb

from skyfarer.base.errors import PermanentError, RetryableError

AFTER_S: Final = 1.0
"""Before a disk that was full is tried again."""
_PASSING: Final = (
    duckdb.OperationalError,  # files, memory, commits
    duckdb.FatalException,
    duckdb.InterruptException,
)
_INVALIDATED: Final = "has been invalidated"
_LOCKED: Final = "Could not set lock on file"
_FULL: Final = "No space left on device"
_ITERATIONS: Final = re.compile(
    r"File checkpoint iteration: (\d+), WAL checkpoint iteration: (\d+)"
)


@contextmanager
def told(doing: str) -> Iterator[None]:
    """`doing` is what fails, as in "write to": part of the sentence."""
    try:
        yield
    except duckdb.Error as error:
        reason = f"cannot {doing} the storage file: {sentence(error)}"
        if isinstance(error, _PASSING):
            raise RetryableError(reason, AFTER_S) from error
        raise PermanentError(reason) from error


def is_unusable(error: BaseException | None) -> bool:
    """Whether nothing is answered after it until the file is opened anew."""
    return isinstance(error, duckdb.FatalException) or (
        isinstance(error, duckdb.Error) and _INVALIDATED in str(error)
    )


def is_locked(error: duckdb.Error) -> bool:
    """Whether another process has the file open, or another storage of this one."""
    return isinstance(error, duckdb.ResourceInUseException) or _LOCKED in str(error)


def is_full(error: duckdb.Error) -> bool:
    return _FULL in str(error)


def has_old_log(error: duckdb.Error) -> bool:
    """Whether the log beside the file is of an earlier checkpoint than the file itself."""
    found = _ITERATIONS.search(str(error))
    return found is not None and int(found[2]) < int(found[1])


def sentence(error: duckdb.Error) -> str:
    """Its first line: the rest repeats the statement."""
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
