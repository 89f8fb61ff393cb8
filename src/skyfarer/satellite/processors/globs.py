"""Texts against names with `*` and `?`, in time linear in the text.

What `fnmatch` makes of a glob never goes back over what a star has taken, unlike the patterns that
people write; so Python's own engine will do.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from fnmatch import translate
from typing import Final

GLOBS_MAX: Final = 100
CHARACTERS_MAX: Final = 1000
KNOWN_MAX: Final = 1000
NOT: Final = "!"


class Globs:
    """Matches when one of its globs does and none that begins with `!`; with only such, when none
    of them does. ValueError for too many or too long."""

    def __init__(self, globs: Sequence[str], ignore_case: bool = False) -> None:
        if len(globs) > GLOBS_MAX or any(len(glob) > CHARACTERS_MAX for glob in globs):
            raise ValueError(f"at most {GLOBS_MAX} values of {CHARACTERS_MAX} characters")
        flags = re.IGNORECASE if ignore_case else 0
        self._wanted = _union([glob for glob in globs if not glob.startswith(NOT)], flags)
        self._unwanted = _union([glob[1:] for glob in globs if glob.startswith(NOT)], flags)
        self._known: dict[str, bool] = {}

    def match_name(self, name: str) -> bool:
        """As `match`, for texts of which there are few: what was found is remembered."""
        known = self._known.get(name)
        if known is None:
            known = self.match(name)
            if len(self._known) < KNOWN_MAX:
                self._known[name] = known
        return known

    def match(self, text: str) -> bool:
        if self._unwanted is not None and self._unwanted.match(text):
            return False
        return self._wanted is None or self._wanted.match(text) is not None

    def match_any(self, texts: Iterable[str]) -> bool:
        """One of the texts is wanted and none is unwanted; without a text, never."""
        found = list(texts)
        if self._unwanted is not None and any(map(self._unwanted.match, found)):
            return False
        return any(map(self.match, found))


def _union(globs: Sequence[str], flags: int) -> re.Pattern[str] | None:
    return re.compile("|".join(map(translate, globs)), flags) if globs else None
