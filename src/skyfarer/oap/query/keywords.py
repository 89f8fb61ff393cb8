"""Logs by words of their content.

Storage finds the logs whose bytes have the words. Here each is read, in their order, and those are
left out that have a word elsewhere (in a tag, in a name) or have one that they must not have. What
is looked at is bounded: a word that is hardly ever in the content may be in every log.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Any

from skyfarer.oap.core.logs import StoredLog
from skyfarer.oap.query import limits
from skyfarer.oap.query.errors import QueryError

Read = Callable[[int, int], Sequence[StoredLog]]
"""Of the logs whose bytes have the words: offset and limit, as `LogReader.logs`."""


@dataclass(frozen=True)
class Keywords:
    """Letters A to Z are the same in either case."""

    wanted: tuple[str, ...] = ()
    unwanted: tuple[str, ...] = ()

    @classmethod
    def of(cls, condition: Mapping[str, Any]) -> Keywords:
        """QueryError for more than anyone searches for."""
        wanted, unwanted = "keywordsOfContent", "excludingKeywordsOfContent"
        return cls(_words(condition, wanted), _words(condition, unwanted))

    def __bool__(self) -> bool:
        return bool(self.wanted or self.unwanted)

    def fit(self, content: str) -> bool:
        text = _folded(content)
        if any(_folded(word) in text for word in self.unwanted):
            return False
        return all(_folded(word) in text for word in self.wanted)


def _words(condition: Mapping[str, Any], field: str) -> tuple[str, ...]:
    words = tuple(word for word in condition.get(field) or () if word)
    if len(words) > limits.KEYWORDS_MAX:
        raise QueryError(f"{len(words)} {field} are more than the {limits.KEYWORDS_MAX} allowed")
    for word in words:
        if len(word) > limits.KEYWORD_CHARS_MAX:
            raise QueryError(f"one of {field} has more than {limits.KEYWORD_CHARS_MAX} characters")
    return words


def _folded(text: str) -> bytes:
    """Of bytes only A to Z are made small, as storage does."""
    return text.encode(errors="replace").lower()


@dataclass(frozen=True)
class Page:
    """`stopped_at`: so many logs were looked at before the page was full; None where it is, or
    where there are no more."""

    logs: list[StoredLog]
    stopped_at: int | None = None


def page(read: Read, fits: Callable[[StoredLog], bool], offset: int, limit: int) -> Page:
    """Of those that fit. Bytes beyond LOGS_BYTES_MAX are left out, as storage does it."""
    passed, looked_at, size = 0, 0, limits.LOGS_LOOKED_AT_FIRST
    kept, bytes_left = list[StoredLog](), limits.LOGS_BYTES_MAX
    for _ in range(limits.LOG_SEARCHES_MAX):
        some = read(looked_at, size)
        whole = list(takewhile(lambda one: one.data is not None, some))
        for one in filter(fits, whole):
            passed += 1
            if passed > offset:
                bytes_left -= len(one.data or b"")
                kept.append(one if bytes_left >= 0 else replace(one, data=None))
            if len(kept) == limit:
                return Page(kept)
        if len(whole) == len(some) < size:
            return Page(kept)
        looked_at += max(len(whole), 1)  # one that is too large on its own is passed over
        size *= limits.LOGS_LOOKED_AT_GROWTH
    return Page(kept, looked_at)
