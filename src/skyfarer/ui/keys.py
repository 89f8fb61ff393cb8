"""Keys of all pages, and the dialog that tells of them."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import resources
from typing import Final

from nicegui import ui

from skyfarer.ui.boxes import box

OPEN_HELP: Final = '() => document.querySelector("dialog.help").showModal()'
_CLOSE_HELP: Final = '() => document.querySelector("dialog.help").close()'
_EVERYWHERE: Final = {
    "/": "the search",
    "↓ ↑": "in a list, or down from the search; j and k from anywhere",
    "Enter": "open what has the focus",
    "a": "auto-refresh on or off",
    "?": "this help",
    "Esc": "leave the search or this help",
}


def keys(places: Mapping[str, str]) -> None:
    """`places` are the names of pages by their letters. Once a page, anywhere in it."""
    ui.run_javascript(resources.files(__package__).joinpath("keys.js").read_text("utf-8"))
    with box("help", tag="dialog").props("aria-labelledby=help-title"):
        ui.label("Keys").classes("panel-title").props("id=help-title")
        with box("facts", tag="dl"):
            for letter, name in places.items():
                _key(("g", letter), name)
            for key, what in _EVERYWHERE.items():
                _key((key,), what)
        with box("help-close", tag="button").props("type=button") as close:
            ui.label("Close")
        close.on("click", js_handler=_CLOSE_HELP)


def _key(pressed: tuple[str, ...], what: str) -> None:
    with box(tag="dt"):
        for one in pressed:
            with box("key", tag="kbd"):
                ui.label(one)
    with box(tag="dd"):
        ui.label(what)
