"""One trace: its waterfall, the chosen span in full, and the logs that belong to it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from nicegui import ui

from skyfarer.ui.api import OapClient, Status
from skyfarer.ui.boxes import box, heading, in_words, mark
from skyfarer.ui.frame import Page
from skyfarer.ui.links import link
from skyfarer.ui.logs.api import logs_of_trace
from skyfarer.ui.logs.model import LogRow
from skyfarer.ui.logs.rows import log_rows
from skyfarer.ui.model import count_text, latency_text
from skyfarer.ui.outside import long_text, shown
from skyfarer.ui.traces import api
from skyfarer.ui.traces.model import Span
from skyfarer.ui.traces.waterfall import Row, Waterfall, laid_out
from skyfarer.ui.window import Window

ROWS_SHOWN_MAX = 400
INDENTS_MAX = 24
PAIRS_SHOWN_MAX = 100
LOGS_SHOWN_MAX = 20
ROUNDS_BETWEEN = 5
"""Refreshes of the page for one of the trace: spans may still arrive."""


@dataclass(frozen=True)
class TraceFound:
    status: Status
    waterfall: Waterfall
    logs: tuple[LogRow, ...]


class TracePage(Page[TraceFound]):
    path = "/trace"

    def __init__(self, client: OapClient, trace_id: str, window: Window) -> None:
        super().__init__(client, window)
        self._trace_id = trace_id
        self._rounds = 0
        self._chosen: ui.element | None = None
        self._shown: tuple[Waterfall, tuple[LogRow, ...]] | None = None

    def body(self) -> None:
        with box("detail-head"):
            self._name = heading("", 2).classes("detail-name")
            self._facts = ui.label().classes("muted detail-note")
        ui.label(shown(self._trace_id)).classes("muted metric trace-id")
        self._none = ui.label().classes("state-text missing")
        with box("trace-work") as self._work:
            with box("panel", "waterfall"):
                self._rows = box("waterfall-rows")
                self._more = ui.label().classes("muted note")
            with box("panel", "span") as self._span_panel:
                self._span = box("span-body")
        with box("panel", "list") as self._logs_panel:
            with box("panel-head"):
                heading("Logs of this trace", 3).classes("panel-title")
                ui.link("All", link("/logs", self._window, trace_id=self._trace_id))
            self._logs = box("log-rows")
        for part in (self._work, self._span_panel, self._logs_panel):
            part.set_visibility(False)

    async def find(self, status: Status) -> TraceFound | None:
        self._rounds += 1
        if self._shown is not None and self._rounds % ROUNDS_BETWEEN:
            return None
        waterfall = laid_out(await api.trace(self._client, self._trace_id))
        logs = await logs_of_trace(self._client, self._trace_id) if waterfall.rows else ()
        return TraceFound(status, waterfall, logs)

    def show(self, found: TraceFound) -> None:
        if self._shown == (found.waterfall, found.logs):
            return
        self._shown = (found.waterfall, found.logs)
        rows = found.waterfall.rows
        self._work.set_visibility(bool(rows))
        self._none.set_text("" if rows else self._nothing())
        self._name.set_text(shown(rows[0].span.name) if rows else "No such trace")
        self._facts.set_text(_facts(found) if rows else "")
        self._chosen = None
        self._rows.clear()
        with self._rows:
            for row in rows[:ROWS_SHOWN_MAX]:
                self._row(row)
        hidden = len(rows) - ROWS_SHOWN_MAX
        self._more.set_text(f"{count_text(hidden)} more spans are not shown" if hidden > 0 else "")
        self._logs_panel.set_visibility(bool(found.logs))
        self._logs.clear()
        with self._logs:
            log_rows(found.logs, found.status, None)

    def _nothing(self) -> str:
        return (
            "Nothing of this trace is stored: it may have expired, not have been sampled, or not"
            " have arrived yet. This page looks again by itself."
        )

    def _row(self, row: Row) -> None:
        span = row.span
        button = box("fall", tag="button").props("type=button")
        button.props("aria-pressed=false").on("click", lambda: self._choose(row, button))
        with button:
            indent = min(row.depth, INDENTS_MAX) * 14
            with box("fall-name").style(f"padding-left: {indent}px"):
                mark(span.is_error)
                ui.label(shown(span.name)).classes("fall-text")
                ui.label(shown(span.service)).classes("muted fall-service")
            with box("fall-track") as track:
                in_words(track, _placed(row))
                tone = "failed" if span.is_error else "critical" if row.critical else "quiet"
                place = f"left: {row.offset * 100:.2f}%; width: {max(row.width * 100, 0.3):.2f}%"
                box("fall-bar", tone).style(place)
            ui.label(latency_text(span.duration_ms)).classes("fall-duration")

    def _choose(self, row: Row, button: ui.element) -> None:
        if self._chosen is not None:
            self._chosen.props("aria-pressed=false").classes(remove="chosen")
        self._chosen = button.props("aria-pressed=true").classes("chosen")
        self._span_panel.set_visibility(True)
        self._span.clear()
        with self._span:
            _whole(row)


def _placed(row: Row) -> str:
    path = ", on the critical path" if row.critical else ""
    return f"from {row.offset:.0%} to {row.offset + row.width:.0%} of the trace{path}"


def _facts(found: TraceFound) -> str:
    rows = found.waterfall.rows
    services = len({row.span.service for row in rows})
    failed = sum(row.span.is_error for row in rows)
    zone = found.status.time.now.tzinfo
    began = datetime.fromtimestamp(found.waterfall.start_ms / 1000, zone)
    parts = [
        latency_text(found.waterfall.duration_ms),
        f"{count_text(len(rows))} spans",
        f"{services} service{'s' if services > 1 else ''}",
        *([f"{failed} failed"] if failed else []),
        began.strftime("%Y-%m-%d %H:%M:%S %z"),
    ]
    return " · ".join(parts)


def _whole(row: Row) -> None:
    span = row.span
    heading(shown(span.name), 3).classes("span-name")
    facts = {
        "Service": span.service,
        "Instance": span.instance,
        "Kind": span.kind,
        "Peer": span.peer,
        "Component": span.component,
        "Layer": span.layer,
        "Duration": latency_text(span.duration_ms),
        "Itself": latency_text(row.self_ms),
        "Critical path": "yes" if row.critical else "no",
        "State": "failed" if span.is_error else "succeeded",
    }
    _table(tuple((name, value) for name, value in facts.items() if value))
    if span.tags:
        heading("Tags", 4).classes("panel-title")
        _table(span.tags)
    _logs(span)


def _logs(span: Span) -> None:
    for log in span.logs[:LOGS_SHOWN_MAX]:
        heading(f"Log, {max(log.time_ms - span.start_ms, 0):,} ms in", 4).classes("panel-title")
        _table(log.pairs)
    if len(span.logs) > LOGS_SHOWN_MAX:
        hidden = count_text(len(span.logs) - LOGS_SHOWN_MAX)
        ui.label(f"{hidden} more logs are not shown").classes("muted")


def _table(pairs: tuple[tuple[str, str], ...]) -> None:
    with box("facts", tag="dl"):
        for name, value in pairs[:PAIRS_SHOWN_MAX]:
            with box(tag="dt"):
                ui.label(shown(name)).classes("muted fact-name")
            with box(tag="dd"):
                long_text(value, "fact")
    if len(pairs) > PAIRS_SHOWN_MAX:
        ui.label(f"{count_text(len(pairs) - PAIRS_SHOWN_MAX)} more are not shown").classes("muted")
