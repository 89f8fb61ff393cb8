"""Numbers of a column in as few bytes each as their range needs.

form     numpy's name of the numbers in `octets`
base     of whole numbers: each says so much less than it is
octets   one number after the other
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[Any]
WHOLE, REAL = "<i8", "<f8"
_NARROW: Final = {"<u1": 2**8, "<u2": 2**16, "<u4": 2**32}
FORMS: Final = (*_NARROW, WHOLE, REAL)


class Narrow(NamedTuple):
    form: str
    base: int
    octets: bytes


def narrowed(numbers: Numbers) -> Narrow:
    if numbers.dtype.kind == "f":
        return Narrow(REAL, 0, numbers.astype(REAL).tobytes())
    base, most = (int(numbers.min()), int(numbers.max())) if len(numbers) else (0, 0)
    for form, values in _NARROW.items():
        if most - base < values:
            return Narrow(form, base, (numbers - base if base else numbers).astype(form).tobytes())
    return Narrow(WHOLE, 0, numbers.astype(WHOLE).tobytes())


def widened(numbers: Numbers, base: int, to: type[np.signedinteger[Any]] = np.int64) -> Numbers:
    """A copy of what the numbers in `octets` say, which may lie anywhere."""
    wide: Numbers = numbers.astype(np.float64 if numbers.dtype.kind == "f" else to)
    return wide + to(base) if base else wide
