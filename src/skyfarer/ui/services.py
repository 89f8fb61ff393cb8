"""The list of services: one row each, changed in place so that nothing flickers."""

from __future__ import annotations

from collections.abc import Callable

from nicegui import ui

from skyfarer.ui.boxes import box, heading
from skyfarer.ui.charts import sparkline
from skyfarer.ui.kinds import layer_text
from skyfarer.ui.model import Overview, Service, Vitals, count_text, failing_text, latency_text
from skyfarer.ui.outside import shown

FILTER_FROM = 8


class ServiceList:
    """`choose` is called with a name when its row is clicked, `search` when the filter changes."""

    def __init__(self, choose: Callable[[str], object], search: Callable[[str], object]) -> None:
        self._choose = choose
        self._rows: dict[str, _Row] = {}
        with box("panel", "services", tag="nav").props('aria-label="Services"'):
            with box("panel-head"):
                heading("Services", 2).classes("panel-title")
                self._count = ui.label().classes("muted")
            self._filter = ui.input(placeholder="Filter by name").props(
                'dense borderless clearable aria-label="Filter by name"'
            )
            self._filter.classes("filter").on_value_change(lambda e: search(e.value or ""))
            self._list = box("rows")
            self._virtual_head = ui.label("Called, without an agent").classes("muted rows-head")
            self._virtual = box("rows", "virtual")
            self._more = ui.label().classes("muted note")
        for part in (self._filter, self._virtual_head):
            part.set_visibility(False)

    def show(self, overview: Overview) -> None:
        shown = {service.name: service for service in overview.shown}
        if list(shown) != list(self._rows):
            self._rebuild(shown)
        for name, row in self._rows.items():
            selected = overview.selected is not None and overview.selected.name == name
            row.show(overview.vitals.get(name, Vitals()), selected)
        self._count.set_text(count_text(overview.total))
        hidden = overview.total - len(shown)
        self._more.set_text(f"{hidden} more: filter by name to see them" if hidden else "")
        if overview.total > FILTER_FROM:
            self._filter.set_visibility(True)

    def _rebuild(self, shown: dict[str, Service]) -> None:
        """Databases, queues and the like have a heading of their own."""
        self._rows = {}
        self._virtual_head.set_visibility(not all(one.normal for one in shown.values()))
        for place, normal in ((self._list, True), (self._virtual, False)):
            place.clear()
            with place:
                for service in (one for one in shown.values() if one.normal is normal):
                    self._rows[service.name] = _Row(service, self._choose)


class _Row:
    def __init__(self, service: Service, choose: Callable[[str], object]) -> None:
        self._kind = "" if service.normal else layer_text(service)
        self._button = box("service", tag="button").props("type=button")
        self._button.on("click", lambda: choose(service.name))
        with self._button:
            with box("row-main"):
                ui.label(shown(service.name)).classes("row-name")
                with box("row-facts"):
                    self._latency = ui.label().classes("muted")
                    self._slow = ui.label("slow").classes("chip chip-slow")
                    self._failing = ui.label().classes("chip chip-failing")
            self._spark = ui.html("", sanitize=False).classes("row-spark")
            with box("row-rate"):
                self._cpm = ui.label().classes("row-cpm")
                self._unit = ui.label("cpm").classes("muted")

    def show(self, vitals: Vitals, selected: bool) -> None:
        self._button.classes(
            add="selected" if selected else "", remove="" if selected else "selected"
        )
        self._button.props(f"aria-current={'true' if selected else 'false'}")
        self._latency.set_text(self._facts(vitals))
        self._slow.set_visibility(vitals.slow and not vitals.failing)
        self._failing.set_visibility(vitals.failing)
        if vitals.failing:
            self._failing.set_text(failing_text(vitals.sla.current or 0))
        measured = not self._kind or any(value is not None for value in vitals.cpm.values)
        for part in (self._spark, self._cpm, self._unit):
            part.set_visibility(measured)
        self._spark.set_content(sparkline(vitals.cpm))
        self._cpm.set_text(count_text(vitals.cpm.current))

    def _facts(self, vitals: Vitals) -> str:
        """What agents only conjecture says what it is; its latency where there is one, and room."""
        latency = vitals.resp_time.current
        if not self._kind:
            return latency_text(latency)
        crowded = latency is None or vitals.failing or vitals.slow
        return self._kind if crowded else f"{self._kind} · {latency_text(latency)}"
