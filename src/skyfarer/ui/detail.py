"""The chosen service: its figures, charts, endpoints and instances."""

from __future__ import annotations

from datetime import datetime
from urllib.parse import urlencode

from nicegui import ui

from skyfarer.ui.boxes import box
from skyfarer.ui.charts import CALLS, LATENCY, PERCENTILE, SUCCESS, Look, Options, lines, options
from skyfarer.ui.dashboard import Dashboard
from skyfarer.ui.figures import Figure
from skyfarer.ui.model import (
    SLA_WHOLE,
    WINDOW_MINUTES,
    Overview,
    Series,
    Service,
    Vitals,
    count_text,
    latency_text,
    share_text,
)
from skyfarer.ui.tables import SmallTable


class ServiceDetail:
    def __init__(self) -> None:
        with box("detail", tag="section"):
            with box("detail-head"):
                self._name = ui.label().classes("detail-name").props("role=heading aria-level=1")
                self._layers = ui.label().classes("chip")
                self._traces = ui.link("Traces", "/traces").classes("detail-link")
                self._logs = ui.link("Logs", "/logs").classes("detail-link")
                self._note = ui.label().classes("muted detail-note")
            with box("figures"):
                self._cpm = Figure("Calls / min")
                self._resp_time = Figure("Response time")
                self._sla = Figure("Success rate")
                self._slowest = Figure("Slowest 1 %")
                self._apdex = Figure("Apdex")
            with box("charts"):
                self._calls = _Chart(CALLS, "service_cpm")
                self._latency = _Chart(LATENCY, "service_resp_time")
                self._percentiles = _Chart(PERCENTILE, "service_percentile")
                self._success = _Chart(SUCCESS, "service_sla")
            with box("small-tables"):
                self._slow = SmallTable("Slowest endpoints", "slow-endpoints", ["average"])
                self._busy = SmallTable("Busiest endpoints", "busy-endpoints", ["calls / min"])
                heads = ["calls / min", "average", "success"]
                self._instances = SmallTable("Instances", "instances", heads)

    def show(self, overview: Overview, dashboard: Dashboard | None) -> None:
        service = overview.selected
        if service is None:
            return
        vitals = overview.vitals.get(service.name, Vitals())
        self._show_head(service, vitals)
        self._cpm.show(count_text(vitals.cpm.current))
        self._resp_time.show(latency_text(vitals.resp_time.current), slow=vitals.slow)
        self._sla.show(share_text(vitals.sla.current), failing=vitals.failing)
        minutes = overview.time.minutes(WINDOW_MINUTES + 1)
        self._calls.show(options(CALLS, minutes, vitals.cpm))
        self._latency.show(options(LATENCY, minutes, vitals.resp_time))
        self._success.show(options(SUCCESS, minutes, _percent(vitals.sla)))
        if dashboard is not None:
            self._show_dashboard(minutes, dashboard)

    def _show_head(self, service: Service, vitals: Vitals) -> None:
        self._name.set_text(service.name)
        self._layers.set_text(" · ".join(service.layers))
        self._note.set_text(_note(vitals))
        for link, page in ((self._traces, "/traces"), (self._logs, "/logs")):
            link.props["href"] = f"{page}?{urlencode({'service': service.name})}"
            link.set_visibility(service.normal)

    def _show_dashboard(self, minutes: list[datetime], dashboard: Dashboard) -> None:
        slowest = dashboard.percentiles.get("99", Series())
        self._slowest.show(latency_text(slowest.current))
        self._apdex.show(_apdex(dashboard.apdex.current))
        named = {f"p{p}": series for p, series in dashboard.percentiles.items()}
        self._percentiles.show(lines(PERCENTILE, minutes, named))
        self._slow.show([(one.name, latency_text(one.value)) for one in dashboard.slowest])
        self._busy.show([(one.name, count_text(one.value)) for one in dashboard.busiest])
        self._instances.show(
            [
                (
                    f"{one.name} · {one.language.lower()}",
                    count_text(one.cpm),
                    latency_text(one.resp_time_ms),
                    share_text(one.sla),
                )
                for one in dashboard.instances
            ]
        )


def _note(vitals: Vitals) -> str:
    if vitals.cpm.current is None:
        return "no calls in the last minute"
    return "this minute so far" if vitals.cpm.only_begun else "last full minute"


def _percent(sla: Series) -> Series:
    return Series(tuple(None if one is None else one * 100 // SLA_WHOLE for one in sla.values))


def _apdex(value: int | None) -> str:
    return "–" if value is None else f"{value / SLA_WHOLE:.2f}"


class _Chart:
    """Sends the browser new options only when they differ from what it has."""

    def __init__(self, look: Look, metric: str) -> None:
        with box("panel", "chart", f"chart-{metric}"):
            with box("panel-head"):
                ui.label(look.name).classes("panel-title")
                ui.label(metric).classes("muted metric")
            self._chart = ui.echart(options(look, [], Series())).classes("canvas")

    def show(self, new: Options) -> None:
        if new != self._chart.options:
            self._chart.options.clear()
            self._chart.options.update(new)
            self._chart.update()
