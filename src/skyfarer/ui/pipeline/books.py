"""The ledger in full: every record that was ever accepted, where it is, and the sum."""

from __future__ import annotations

from nicegui import ui

from skyfarer.ui.boxes import box, heading
from skyfarer.ui.outside import shown
from skyfarer.ui.pipeline.model import Look, by_count


class Books:
    def __init__(self) -> None:
        self._shown: object = None
        with box("panel", "books"):
            with box("panel-head"):
                heading("Ledger", 3).classes("panel-title")
                self._verdict = ui.label().classes("chip verdict")
            self._rows = box("small-rows").props("role=table aria-label=Ledger")

    def show(self, look: Look) -> None:
        if self._shown == (look.ledger, look.dropped):
            return
        self._shown = (look.ledger, look.dropped)
        held = look.ledger.balanced
        self._verdict.set_text("balanced" if held else "does not balance")
        self._verdict.classes(remove="chip-good chip-failing")
        self._verdict.classes(add="chip-good" if held else "chip-failing")
        self._rows.clear()
        with self._rows:
            self._lines(look)

    def _lines(self, look: Look) -> None:
        books = look.ledger
        _line("Accepted", books.accepted, "books-whole")
        _line("= delivered to storage", books.delivered)
        _line("+ queued", books.queued)
        _line("+ dropped", books.dropped)
        for reason, number in by_count(look.dropped):
            _line(reason, number, "books-part")
        together = books.delivered + books.queued + books.dropped
        _line("Sum", together, "books-whole books-sum")
        if together != books.accepted:
            _line("Missing", books.accepted - together, "books-wrong")


def _line(name: str, number: int, tone: str = "") -> None:
    with box("small-row", tone).props("role=row"):
        ui.label(shown(name)).classes("small-name").props("role=cell")
        ui.label(f"{number:,}").classes("small-figure").props("role=cell")
