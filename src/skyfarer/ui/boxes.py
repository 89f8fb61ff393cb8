"""The one element that everything is put into."""

from __future__ import annotations

from nicegui import ui


def box(*classes: str, tag: str = "div") -> ui.element:
    return ui.element(tag).classes(" ".join(classes))
