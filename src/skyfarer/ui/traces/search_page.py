"""The search for traces."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from nicegui import ui

from skyfarer.ui import fields
from skyfarer.ui.api import Status
from skyfarer.ui.boxes import mark
from skyfarer.ui.links import trace_link
from skyfarer.ui.listing import Listed, ListPage
from skyfarer.ui.model import latency_text
from skyfarer.ui.outside import shown
from skyfarer.ui.traces import api
from skyfarer.ui.traces.model import ORDERS, STATES, Search, TraceRow
from skyfarer.ui.window import Window


class SearchPage(ListPage[Search, TraceRow]):
    path = "/traces"

    def form(self, asked: Search) -> Mapping[str, fields.Field]:
        return {
            "state": fields.choice("State", STATES, asked.state),
            "order": fields.choice("Order", ORDERS, asked.order),
            "min_ms": fields.number("At least, ms", asked.min_ms),
            "max_ms": fields.number("At most, ms", asked.max_ms),
            "tags": fields.text("Tags", asked.tags, "http.method=GET, …"),
            "trace_id": fields.text("Trace id", asked.trace_id),
        }

    async def search(self, status: Status, asked: Search) -> Listed[TraceRow]:
        return await api.search(self._client, status.time, asked)

    def lines(self, rows: Sequence[TraceRow], status: Status) -> None:
        for row in rows:
            _line(row, status, self._window)

    def nothing(self, asked: Search) -> str:
        return "No trace fits."

    def advice(self, asked: Search) -> str:
        return "Look at a longer time, or ask for less."


def _line(row: TraceRow, status: Status, window: Window) -> None:
    began = datetime.fromtimestamp(row.start_ms / 1000, status.time.now.tzinfo)
    with ui.link(target=trace_link(row.trace_id, window)).classes("trace-row"):
        mark(row.is_error)
        ui.label(shown(row.endpoint)).classes("trace-name")
        ui.label("failed" if row.is_error else "").classes("chip chip-failing")
        ui.label(latency_text(row.duration_ms)).classes("trace-duration")
        ui.label(began.strftime("%m-%d %H:%M:%S.%f")[:-3]).classes("muted trace-start")
