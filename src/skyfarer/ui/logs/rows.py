"""Logs as lines: when, who, how grave, what."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from nicegui import ui

from skyfarer.ui.api import Status
from skyfarer.ui.boxes import box
from skyfarer.ui.links import trace_link
from skyfarer.ui.logs.model import LogRow
from skyfarer.ui.outside import long_text, shown
from skyfarer.ui.window import Window

LEVEL_CHARS_MAX = 20
_TONES = {"error": "chip-failing", "fatal": "chip-failing", "warn": "chip-slow"}


def log_rows(rows: Iterable[LogRow], status: Status, window: Window | None) -> None:
    """With links to their traces that keep `window`; where it is None, on the page of a trace,
    without."""
    for row in rows:
        _line(row, status, window)


def _line(row: LogRow, status: Status, window: Window | None) -> None:
    zone = status.time.now.tzinfo
    when = datetime.fromtimestamp(row.time_ms / 1000, zone).strftime("%m-%d %H:%M:%S.%f")[:-3]
    with box("log-row"):
        ui.label(when).classes("muted log-time")
        ui.label(shown(row.service)).classes("log-service")
        tone = next((t for name, t in _TONES.items() if row.level.lower().startswith(name)), "")
        ui.label(shown(row.level, LEVEL_CHARS_MAX)).classes(f"chip {tone} log-level")
        with box("log-body"):
            long_text(row.text, "log-text")
        if row.trace_id and window is not None:
            ui.link("trace", trace_link(row.trace_id, window)).classes("log-trace")
