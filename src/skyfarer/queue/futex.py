"""The kernel's futex on a word of a shared map. Imported by those who sleep or wake, and no others:
ctypes is a megabyte that a sidecar without sleepers does not spend."""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
import platform
from typing import Final

from skyfarer.base.errors import PermanentError

_NUMBERS: Final = {"x86_64": 202, "aarch64": 98, "riscv64": 98, "ppc64le": 221, "s390x": 238}
_WAIT: Final = 0
_WAKE: Final = 1
_EVERYBODY: Final = 2**31 - 1


class _TimeSpec(ctypes.Structure):
    _fields_ = (("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long))


class Futex:
    """On the first 32-bit word of a writable map, which stays mapped until `close`."""

    def __init__(self, mapped: mmap.mmap) -> None:
        number = _NUMBERS.get(platform.machine())
        if number is None:
            raise PermanentError(f"the futex call of a {platform.machine()} is not known here")
        self._number = ctypes.c_long(number)
        self._word: ctypes.c_uint32 | None = ctypes.c_uint32.from_buffer(mapped)
        self._call = ctypes.CDLL(None, use_errno=True).syscall

    def wait(self, expected: int, timeout_s: float) -> None:
        """Until somebody wakes us; at once when the word is not `expected`. May return early."""
        seconds = int(timeout_s)
        limit = _TimeSpec(seconds, int((timeout_s - seconds) * 1e9))
        self._do(_WAIT, expected, ctypes.byref(limit))

    def wake(self) -> None:
        """Everybody, in every process."""
        self._do(_WAKE, _EVERYBODY, None)

    def close(self) -> None:
        self._word = None

    def _do(self, what: int, value: int, limit: object) -> None:
        assert self._word is not None
        address = ctypes.c_void_p(ctypes.addressof(self._word))
        number = ctypes.c_uint32(value)
        if self._call(self._number, address, what, number, limit, None, 0) != -1:
            return
        failure = ctypes.get_errno()
        if failure not in (errno.EAGAIN, errno.ETIMEDOUT, errno.EINTR):
            raise OSError(failure, f"futex: {os.strerror(failure)}")
