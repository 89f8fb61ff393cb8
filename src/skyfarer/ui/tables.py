"""Small tables: a title, and rows of a name with its figures."""

from __future__ import annotations

from collections.abc import Sequence

from nicegui import ui

from skyfarer.ui.boxes import box, heading
from skyfarer.ui.outside import shown


class SmallTable:
    """Drawn anew only when its rows have changed."""

    def __init__(
        self, title: str, name: str, heads: Sequence[str], none: str = "none in this time"
    ) -> None:
        self._shown: Sequence[Sequence[str]] | None = None
        self._heads = heads
        self._none = none
        with box("panel", "small-table", name) as self.element:
            with box("panel-head"):
                self._title = heading(title, 3).classes("panel-title")
            self._body = box("small-rows")

    def entitle(self, title: str, heads: Sequence[str]) -> None:
        """As another table, whose rows come next."""
        if (title, heads) != (self._title.text, self._heads):
            self._title.set_text(title)
            self._heads, self._shown = heads, None

    def show(self, rows: Sequence[Sequence[str]]) -> None:
        """Each a name and as many figures as there are heads."""
        if rows == self._shown:
            return
        self._shown = rows
        self._body.clear()
        with self._body:
            if not rows:
                self._body.props(remove="role aria-label")
                ui.label(self._none).classes("muted small-none")
                return
            self._body.props["role"], self._body.props["aria-label"] = "table", self._title.text
            if any(self._heads):
                self._line(("Name", *self._heads), "muted", "columnheader")
            for row in rows:
                self._line(row, "", "cell")

    def _line(self, cells: Sequence[str], tone: str, role: str) -> None:
        with box("small-row", tone).props("role=row"):
            name, *figures = cells
            ui.label(shown(name)).classes("small-name").props(f"role={role}")
            for figure in figures:
                ui.label(figure).classes("small-figure").props(f"role={role}")
