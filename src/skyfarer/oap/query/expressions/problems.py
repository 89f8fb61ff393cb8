"""Where something stands in an expression, and what is wrong with it."""

from __future__ import annotations

from dataclasses import dataclass

NAME_CHARS_MAX = 200
"""Of a name that is shown; no metric has a longer one."""


@dataclass(frozen=True, order=True)
class Place:
    """Both count from one, as editors do."""

    line: int
    column: int

    def __str__(self) -> str:
        return f"line {self.line}, column {self.column}"


class Mistake(Exception):  # noqa: N818 - it never leaves the room: it becomes the result's `error`
    """The expression cannot be evaluated as it stands. Its text is written for whoever wrote it."""

    def __init__(self, place: Place, sentence: str) -> None:
        super().__init__(f"{place}: {sentence}")
        self.place = place


class UnknownMetric(Mistake):
    """Told apart, because `view_as_seq` and `is_present` are asked about metrics that may not be
    there."""

    def __init__(self, place: Place, name: str) -> None:
        super().__init__(place, f"Metric: [{name[:NAME_CHARS_MAX]}] does not exist")
        self.name = name
