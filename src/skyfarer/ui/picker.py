"""The time picker: the last minutes, hours or days, or from one minute to another."""

from __future__ import annotations

from collections.abc import Callable

from nicegui import ui

from skyfarer.ui import fields
from skyfarer.ui.boxes import box
from skyfarer.ui.window import CHOICES, Window, last_words

FIXED = "fixed"


class Picker:
    """`picked` is called with the new window."""

    def __init__(self, window: Window, picked: Callable[[Window], object]) -> None:
        self._picked = picked
        choices = {name: last_words(name) for name in CHOICES}
        if window.last and window.last not in choices:
            choices[window.last] = f"last {window.last}"
        choices[FIXED] = "from … to …"
        with box("picker"):
            self._choice = fields.choice("Time", choices, window.last or FIXED)
            self._choice.on_value_change(self._chosen)
            with box("picker-fixed") as self._fixed:
                self._start = _moment("From")
                self._end = _moment("To")
            start, end = (window.address().get(name, "") for name in ("start", "end"))
            self._start.set_value(start)
            self._end.set_value(end)
            for field in (self._start, self._end):
                field.on_value_change(self._chosen)
        self._fixed.set_visibility(window.fixed is not None)

    def _chosen(self) -> None:
        fixed = self._choice.value == FIXED
        self._fixed.set_visibility(fixed)
        if not fixed:
            self._picked(Window.of(self._choice.value))
            return
        window = Window.of("", self._start.value or "", self._end.value or "")
        if window.fixed is not None:
            self._picked(window)


def _moment(label: str) -> ui.input:
    return ui.input(label).props("dense outlined stack-label type=datetime-local")
