"""Links from page to page. They keep the time that is looked at; the usual need not be told."""

from __future__ import annotations

from typing import Final
from urllib.parse import urlencode

from skyfarer.ui.window import Window

ID_CHARS_MAX: Final = 1_000


def link(path: str, window: Window, **asked: str) -> str:
    address = urlencode({**asked, **window.kept()})
    return f"{path}?{address}" if address else path


def service_link(name: str, window: Window) -> str:
    return link("/", window, service=name)


def trace_link(trace_id: str, window: Window) -> str:
    """One whose id is longer than any can be has a link that leads to no trace."""
    return link("/trace", window, id=trace_id[:ID_CHARS_MAX])
