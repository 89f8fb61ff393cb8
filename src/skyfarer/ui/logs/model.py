"""Logs as values, and what is looked for among them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from skyfarer.ui.listing import Question

WORDS_MAX: Final = 10
WORD_CHARS_MAX: Final = 256
"""What the OAP takes of either field; more it would refuse."""
_WORD = re.compile(r'"([^"]*)(?:"|$)|(\S+)')


@dataclass(frozen=True)
class LogQuestion(Question):
    """`keywords` and `excluding` as they were typed: words, and phrases in double quotes."""

    keywords: str = ""
    excluding: str = ""

    page_rows = 50

    @property
    def wanted(self) -> tuple[str, ...]:
        return words(self.keywords)

    @property
    def unwanted(self) -> tuple[str, ...]:
        return words(self.excluding)

    @property
    def fault(self) -> str:
        """Why the OAP would not look for it, and what to do; empty where it would."""
        for some in (self.wanted, self.unwanted):
            if len(some) > WORDS_MAX:
                many = f"{len(some)} words are more than the {WORDS_MAX} that can be looked for"
                return f'{many}. Leave some out, or make a "phrase in quotes" of them.'
            if any(len(word) > WORD_CHARS_MAX for word in some):
                return f"A word or phrase has more than {WORD_CHARS_MAX} characters. Shorten it."
        return ""


def words(text: str) -> tuple[str, ...]:
    """Each once. A quote that is still open ends with the text; one inside of a word is itself."""
    found = (phrase.strip() or word for phrase, word in _WORD.findall(text))
    return tuple(dict.fromkeys(word for word in found if word))


@dataclass(frozen=True)
class LogRow:
    time_ms: int
    service: str
    endpoint: str
    trace_id: str
    text: str
    tags: tuple[tuple[str, str], ...]

    @property
    def level(self) -> str:
        return next((value for key, value in self.tags if key.lower() == "level"), "")
