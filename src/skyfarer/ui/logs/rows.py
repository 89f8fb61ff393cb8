"""Logs as lines: when, who, how grave, what."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from urllib.parse import quote

from nicegui import ui

from skyfarer.ui.api import Status
from skyfarer.ui.boxes import box
from skyfarer.ui.logs.model import TEXT_SHOWN_MAX, LogRow

_TONES = {"error": "chip-failing", "fatal": "chip-failing", "warn": "chip-slow"}


def log_rows(rows: Iterable[LogRow], status: Status) -> None:
    for row in rows:
        _line(row, status)


def _line(row: LogRow, status: Status) -> None:
    zone = status.time.now.tzinfo
    when = datetime.fromtimestamp(row.time_ms / 1000, zone).strftime("%m-%d %H:%M:%S.%f")[:-3]
    with box("log-row"):
        ui.label(when).classes("muted log-time")
        ui.label(row.service).classes("log-service")
        tone = next((t for name, t in _TONES.items() if row.level.lower().startswith(name)), "")
        ui.label(row.level).classes(f"chip {tone} log-level")
        cut = len(row.text) - TEXT_SHOWN_MAX
        text = row.text if cut <= 0 else f"{row.text[:TEXT_SHOWN_MAX]}… ({cut:,} characters more)"
        ui.label(text).classes("log-text")
        if row.trace_id:
            ui.link("trace", f"/trace?id={quote(row.trace_id, safe='')}").classes("log-trace")
