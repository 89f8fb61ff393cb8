"""One figure in large letters, with its name."""

from __future__ import annotations

from nicegui import ui

from skyfarer.ui.boxes import box


class Figure:
    def __init__(self, title: str, name: str = "") -> None:
        with box("panel", "figure", name) as self._panel:
            ui.label(title).classes("muted")
            self._value = ui.label("–").classes("figure-value")
            self._note = ui.label().classes("muted figure-note")

    def show(self, text: str, note: str = "", slow: bool = False, failing: bool = False) -> None:
        self._value.set_text(text)
        self._note.set_text(note)
        tone = "failing" if failing else "slow" if slow else ""
        self._panel.classes(remove="slow failing", add=tone)
