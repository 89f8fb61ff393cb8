"""The chosen service: its figures, charts, endpoints and instances."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime

from nicegui import ui

from skyfarer.ui.boxes import box, heading
from skyfarer.ui.charts import CALLS, LATENCY, PERCENTILE, SUCCESS, Look, lines, options, spoken
from skyfarer.ui.dashboard import Dashboard, Named
from skyfarer.ui.drawn import Drawing
from skyfarer.ui.figures import Figure
from skyfarer.ui.kinds import Kind, Ranking, kind_of
from skyfarer.ui.links import link
from skyfarer.ui.model import (
    SLA_WHOLE,
    Overview,
    Series,
    Service,
    Vitals,
    count_text,
    latency_text,
    percent,
    share_text,
)
from skyfarer.ui.outside import shown
from skyfarer.ui.runtime_panel import RuntimePanel
from skyfarer.ui.tables import SmallTable
from skyfarer.ui.window import Window


class ServiceDetail:
    """`choose_instance` is called with the name of one whose runtime is to be shown, `beside` once,
    to put something beside the name."""

    def __init__(
        self, choose_instance: Callable[[str], object], beside: Callable[[], object]
    ) -> None:
        with box("detail", tag="section"):
            with box("detail-head"):
                self._name = heading("", 2).classes("detail-name")
                self._layers = ui.label().classes("chip")
                self._traces = ui.link("Traces", "/traces").classes("detail-link")
                self._logs = ui.link("Logs", "/logs").classes("detail-link")
                self._note = ui.label().classes("muted detail-note")
                beside()
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
            self._runtime = RuntimePanel(choose_instance)

    def show(self, overview: Overview, dashboard: Dashboard | None, window: Window) -> None:
        service = overview.selected
        if service is None:
            return
        vitals = overview.vitals.get(service.name, Vitals())
        self._show_head(service, vitals, overview.step)
        self._show_links(service, window)
        self._cpm.show(count_text(vitals.cpm.current))
        self._resp_time.show(latency_text(vitals.resp_time.current), slow=vitals.slow)
        self._sla.show(share_text(vitals.sla.current), failing=vitals.failing)
        kind, times = kind_of(service), overview.times
        self._calls.show(times, vitals.cpm, kind.cpm)
        self._latency.show(times, vitals.resp_time, kind.resp_time)
        self._success.show(times, percent(vitals.sla), kind.sla)
        if dashboard is not None:
            self._show_dashboard(times, dashboard, kind)
            self._runtime.show(times, dashboard)
            self._instances.element.set_visibility(service.normal)

    def _show_head(self, service: Service, vitals: Vitals, step: str) -> None:
        self._name.set_text(shown(service.name))
        self._layers.set_text(shown(" · ".join(service.layers)))
        self._note.set_text(_note(vitals, step.lower()))

    def _show_links(self, service: Service, window: Window) -> None:
        for way, page in ((self._traces, "/traces"), (self._logs, "/logs")):
            where = link(page, window, service=service.name)
            if way.props.get("href") != where:
                way.props["href"] = where
            way.set_visibility(service.normal)

    def _show_dashboard(self, times: Sequence[datetime], dashboard: Dashboard, kind: Kind) -> None:
        slowest = dashboard.percentiles.get("99", Series())
        self._slowest.show(latency_text(slowest.current))
        self._apdex.show(_apdex(dashboard.apdex.current))
        named = {f"p{p}": series for p, series in dashboard.percentiles.items()}
        self._percentiles.show_several(times, named, kind.percentile)
        _rank(self._slow, kind.slow, dashboard.slowest)
        self._busy.element.set_visibility(kind.busy is not None)
        if kind.busy is not None:
            _rank(self._busy, kind.busy, dashboard.busiest)
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


def _rank(table: SmallTable, ranking: Ranking, found: Iterable[Named]) -> None:
    table.entitle(ranking.title, [ranking.head])
    table.show([(one.name, ranking.shown(one.value)) for one in found])


def _note(vitals: Vitals, step: str) -> str:
    if vitals.cpm.current is None:
        return f"no calls in the last {step}"
    return f"this {step} so far" if vitals.cpm.only_begun else f"last full {step}"


def _apdex(value: float | None) -> str:
    return "–" if value is None else f"{value / SLA_WHOLE:.2f}"


class _Chart:
    def __init__(self, look: Look, metric: str) -> None:
        self._look = look
        with box("panel", "chart", f"chart-{metric}"):
            with box("panel-head"):
                heading(look.name, 3).classes("panel-title")
                self._metric = ui.label(metric).classes("muted metric")
            self._drawing = Drawing()

    def show(self, times: Sequence[datetime], series: Series, metric: str) -> None:
        self._metric.set_text(metric)
        look = self._look
        self._drawing.show(options(look, times, series), spoken(look, {"": series}))

    def show_several(
        self, times: Sequence[datetime], named: Mapping[str, Series], metric: str
    ) -> None:
        self._metric.set_text(metric)
        self._drawing.show(lines(self._look, times, named), spoken(self._look, named))
