"""The one element that everything is put into, and what readers that cannot see are told."""

from __future__ import annotations

from nicegui import ui


def box(*classes: str, tag: str = "div") -> ui.element:
    return ui.element(tag).classes(" ".join(classes))


def heading(text: str, level: int) -> ui.label:
    """Those who listen go from heading to heading; a page has one of level 1."""
    return ui.label(text).props(f"role=heading aria-level={level}")


def in_words(drawing: ui.element, text: str) -> None:
    """What it says, for those who do not see it; sent with the drawing's next update."""
    drawing.props["role"], drawing.props["aria-label"] = "img", text


def mark(failed: bool) -> None:
    """A dot whose colour says it, and whose name does."""
    name = "failed" if failed else "succeeded"
    in_words(box("mark", "mark-failed" if failed else "mark-good"), name)
