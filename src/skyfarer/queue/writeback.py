"""`sync_file_range`: the disk begins with pages while the program goes on. Imported by writers that
sync, and no others: ctypes is a megabyte.

It promises nothing, and is asked to wait for nothing. A page that fails on its way to the disk is
reported by the next `fdatasync`, as it would have been without; only a call that waited for pages
could take that report away.
"""

from __future__ import annotations

import ctypes
import errno
import os
from typing import Final

_WRITE: Final = 2
_NOT_OFFERED: Final = frozenset({errno.ENOSYS, errno.EPERM})  # by a kernel, by a sandbox

_call = ctypes.CDLL(None, use_errno=True).sync_file_range
_call.argtypes = (ctypes.c_int, ctypes.c_int64, ctypes.c_int64, ctypes.c_uint)


def begin_writeback(fd: int, offset: int, size_bytes: int) -> None:
    """Where the call is not offered it does nothing: a sync will do it all."""
    if _call(fd, offset, size_bytes, _WRITE):
        failure = ctypes.get_errno()
        if failure not in _NOT_OFFERED:
            raise OSError(failure, os.strerror(failure))
