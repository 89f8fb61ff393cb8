"""Where something stands in a text, and what is wrong with it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, order=True)
class Place:
    """Both count from one, as editors do."""

    file: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


@dataclass(frozen=True, order=True)
class Problem:
    place: Place
    sentence: str

    def __str__(self) -> str:
        return f"{self.place}: {self.sentence}"


class OalMistake(Exception):  # noqa: N818 - it never leaves the room: whoever raises is answered
    """Ends the reading of one statement; becomes its `Problem`."""

    def __init__(self, place: Place, sentence: str) -> None:
        super().__init__(sentence)
        self.problem = Problem(place, sentence)
