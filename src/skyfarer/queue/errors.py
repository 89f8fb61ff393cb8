"""What a queue refuses, in words an operator can act on.

RetryableError
  QueueFull          no room until a consumer commits
  QueueMissing       the writer has not made the directory yet
PermanentError
  RecordTooLarge     a record above `record_bytes_max`, or a batch no empty queue could hold
  QueueLocked        another process owns the directory, or the consumer name
"""

from __future__ import annotations

import errno
from pathlib import Path

from skyfarer.base.errors import PermanentError, RetryableError


class QueueFull(RetryableError):  # noqa: N818 - a state, and a word of the contract
    """Nothing of the batch was kept; the same call succeeds once consumers have committed."""


class QueueMissing(RetryableError):  # noqa: N818 - a state, and a word of the contract
    """Readers and consumers wait for the writer: only it creates files."""


class RecordTooLarge(PermanentError):  # noqa: N818 - a state, and a word of the contract
    """Nothing of the batch was kept."""


class QueueLocked(PermanentError):  # noqa: N818 - a state, and a word of the contract
    """For a directory the text names the owner's process id."""


_PASSING = frozenset(
    {errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN}
)


def disk_error(error: OSError, path: Path, doing: str) -> RetryableError | PermanentError:
    """Sorts an OSError into the two words: what passes when somebody makes room, and the rest."""
    reason = error.strerror or str(error)
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return RetryableError(
            f"cannot {doing} {path}: {reason}; nothing was lost, "
            "free space on that file system or give the queue another directory"
        )
    if error.errno in _PASSING:
        return RetryableError(f"cannot {doing} {path}: {reason}; nothing was lost")
    return PermanentError(
        f"cannot {doing} {path}: {reason}; "
        "check the disk and the permissions, or give the queue another directory"
    )
