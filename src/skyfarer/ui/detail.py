"""The chosen service: its name, three figures, two charts."""

from __future__ import annotations

from datetime import datetime

from nicegui import ui

from skyfarer.ui.boxes import box
from skyfarer.ui.charts import CALLS, LATENCY, Look, options
from skyfarer.ui.model import (
    WINDOW_MINUTES,
    Overview,
    Series,
    Vitals,
    count_text,
    latency_text,
    share_text,
)


class ServiceDetail:
    def __init__(self) -> None:
        with box("detail", tag="section"):
            with box("detail-head"):
                self._name = ui.label().classes("detail-name").props("role=heading aria-level=1")
                self._layers = ui.label().classes("chip")
                self._note = ui.label().classes("muted detail-note")
            with box("figures"):
                self._cpm = _Figure("Calls / min")
                self._resp_time = _Figure("Response time")
                self._sla = _Figure("Success rate")
            self._calls = _Chart(CALLS, "service_cpm")
            self._latency = _Chart(LATENCY, "service_resp_time")

    def show(self, overview: Overview) -> None:
        service = overview.selected
        if service is None:
            return
        vitals = overview.vitals.get(service.name, Vitals())
        self._name.set_text(service.name)
        self._layers.set_text(" · ".join(service.layers))
        self._note.set_text(_note(vitals))
        self._cpm.show(count_text(vitals.cpm.current))
        self._resp_time.show(latency_text(vitals.resp_time.current), slow=vitals.slow)
        self._sla.show(share_text(vitals.sla.current), failing=vitals.failing)
        minutes = overview.time.minutes(WINDOW_MINUTES + 1)
        self._calls.show(minutes, vitals.cpm)
        self._latency.show(minutes, vitals.resp_time)


def _note(vitals: Vitals) -> str:
    if vitals.cpm.current is None:
        return "no calls in the last minute"
    return "this minute so far" if vitals.cpm.only_begun else "last full minute"


class _Figure:
    def __init__(self, title: str) -> None:
        with box("panel", "figure") as self._panel:
            ui.label(title).classes("muted")
            self._value = ui.label("–").classes("figure-value")

    def show(self, text: str, slow: bool = False, failing: bool = False) -> None:
        self._value.set_text(text)
        tone = "failing" if failing else "slow" if slow else ""
        self._panel.classes(remove="slow failing", add=tone)


class _Chart:
    """Sends the browser new options only when they differ from what it has."""

    def __init__(self, look: Look, metric: str) -> None:
        self._look = look
        with box("panel", "chart", f"chart-{metric}"):
            with box("panel-head"):
                ui.label(look.name).classes("panel-title")
                ui.label(metric).classes("muted metric")
            self._chart = ui.echart(options(look, [], Series())).classes("canvas")

    def show(self, minutes: list[datetime], series: Series) -> None:
        new = options(self._look, minutes, series)
        if new != self._chart.options:
            self._chart.options.clear()
            self._chart.options.update(new)
            self._chart.update()
