"""The original's arithmetic: Java's doubles, which never fail.

A division by zero is infinite, or no number (NaN) where zero is divided; the remainder has the sign
of the dividend. Text has at most three decimals, no grouping, and Java's words for what is no
number.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Final

DECIMALS_MAX: Final = 3
_EXACT_BELOW: Final = 1e15
"""A double from here on has no decimal to show, and fewer digits than it would be written with."""
_LONG_MAX: Final = 2**63 - 1
_WIDE: Final = Context(prec=400, rounding=ROUND_HALF_UP)


def divided(left: float, right: float) -> float:
    if right:
        return left / right
    if not left or math.isnan(left) or math.isnan(right):
        return math.nan
    return math.copysign(math.inf, left) * math.copysign(1.0, right)


def remainder(left: float, right: float) -> float:
    if not right or math.isinf(left) or math.isnan(left) or math.isnan(right):
        return math.nan
    return math.fmod(left, right)


OPERATORS: Final[Mapping[str, Callable[[float, float], float]]] = {
    "+": lambda left, right: left + right,
    "-": lambda left, right: left - right,
    "*": lambda left, right: left * right,
    "/": divided,
    "%": remainder,
    "==": lambda left, right: float(left == right),
    "!=": lambda left, right: float(left != right),
    "<": lambda left, right: float(left < right),
    "<=": lambda left, right: float(left <= right),
    ">": lambda left, right: float(left > right),
    ">=": lambda left, right: float(left >= right),
    "&&": lambda left, right: float(left == 1 and right == 1),
    "||": lambda left, right: float(left == 1 or right == 1),
}


def rounded(number: float, places: int) -> float:
    """Half away from zero, by the digits that the number is written with: 2.675 is 2.68."""
    if not math.isfinite(number):
        return number
    return float(Decimal(repr(number)).quantize(Decimal(1).scaleb(-places), context=_WIDE))


def changed(function: str, number: float, places: int) -> float:
    """By abs, ceil, floor or round."""
    if function == "round":
        return rounded(number, places)
    if function == "abs":
        return abs(number)
    if not math.isfinite(number):
        return number
    return float(math.ceil(number) if function == "ceil" else math.floor(number))


def total(numbers: Iterable[float]) -> float:
    """Exact, then rounded once; Java's is within a digit of it."""
    found = list(numbers)
    try:
        return math.fsum(found)
    except (OverflowError, ValueError):  # infinite on the way, or of both signs
        return sum(found)


def mean(numbers: Sequence[float]) -> float:
    return total(numbers) / len(numbers)


def rank(number: float) -> tuple[bool, float]:
    """To sort by: what is no number is the greatest."""
    return math.isnan(number), 0.0 if math.isnan(number) else number


def whole(number: float) -> int:
    """Towards zero, within 64 bits, as Java casts."""
    if math.isnan(number):
        return 0
    return int(number) if abs(number) < 2.0**63 else _LONG_MAX if number > 0 else ~_LONG_MAX


def text(number: float) -> str:
    if math.isnan(number):
        return "NaN"
    if math.isinf(number):
        return "∞" if number > 0 else "-∞"
    if abs(number) >= _EXACT_BELOW:
        return format(Decimal(repr(number)), "f").removesuffix(".0")
    shown = f"{number:.{DECIMALS_MAX}f}".rstrip("0").rstrip(".")
    return "0" if shown == "-0" else shown
