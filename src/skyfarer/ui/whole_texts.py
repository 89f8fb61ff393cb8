"""Texts that a page shows a part of, to be fetched whole: over HTTP, since what goes over a page's
socket has to stay small.

They are in the memory of this process from the click until others take their room; an address is a
secret that nobody can guess. Called on the event loop alone.
"""

from __future__ import annotations

import secrets
from typing import Final

from fastapi import Response
from fastapi.responses import PlainTextResponse
from nicegui import app as pages
from nicegui import ui

PATH: Final = "/text"
KEPT_CHARS_MAX: Final = 16_000_000
_HEADERS: Final = {
    "Content-Disposition": 'attachment; filename="text.txt"',
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
}
_kept: Final[dict[str, str]] = {}


def save(text: str) -> None:
    """By the browser that has just clicked, as a file."""
    while _kept and sum(map(len, _kept.values())) + len(text) > KEPT_CHARS_MAX:
        _kept.pop(next(iter(_kept)))
    key = secrets.token_urlsafe()
    _kept[key] = text
    ui.download.from_url(f"{PATH}/{key}", "text.txt")


def register() -> None:
    """Once, with the pages."""

    @pages.get(PATH + "/{key}")
    def whole_text(key: str) -> Response:
        if key not in _kept:
            return PlainTextResponse("This text is no longer kept: ask for it again.", 404)
        return PlainTextResponse(_kept[key], headers=_HEADERS)
