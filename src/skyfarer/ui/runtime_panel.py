"""The runtime of one instance: a choice of instances, and a chart for each of its gauges."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Final

from nicegui import ui

from skyfarer.ui import fields
from skyfarer.ui.boxes import box, heading
from skyfarer.ui.charts import Look, lines, spoken
from skyfarer.ui.dashboard import Dashboard
from skyfarer.ui.drawn import Drawing
from skyfarer.ui.outside import shown
from skyfarer.ui.runtime import Gauge, Runtime

COLOUR: Final = "#b0703a"


class RuntimePanel:
    """Hidden while the instance tells nothing of its runtime and there is no other to choose."""

    def __init__(self, choose: Callable[[str], object]) -> None:
        self._choose = choose
        self._charts: dict[str, Drawing] = {}
        self._told = ""
        with box("runtime") as self._box:
            with box("runtime-head"):
                heading("Runtime", 3).classes("panel-title")
                self._instance = fields.choice("Instance", {"": ""}, "")
                self._instance.classes("field-instance").on_value_change(self._chosen)
            self._none = ui.label().classes("muted runtime-none")
            self._body = box("charts")
        self._box.set_visibility(False)

    def show(self, times: Sequence[datetime], dashboard: Dashboard) -> None:
        found = dashboard.runtime
        self._box.set_visibility(found is not None)
        if found is None:
            return
        self._offer([one.name for one in dashboard.instances], found.instance)
        self._none.set_text("" if found.gauges else "This instance tells nothing of its runtime.")
        self._rebuild(found)
        for gauge, series in found.gauges:
            look = Look(gauge.title, COLOUR, gauge.unit, growing=False)
            self._charts[gauge.title].show(lines(look, times, series), spoken(look, series))

    def _offer(self, names: Sequence[str], chosen: str) -> None:
        options = {name: shown(name) for name in names}
        self._told = chosen
        if options != self._instance.options or self._instance.value != chosen:
            self._instance.set_options(options, value=chosen)

    def _chosen(self) -> None:
        name = str(self._instance.value or "")
        if name and name != self._told:
            self._choose(name)

    def _rebuild(self, found: Runtime) -> None:
        titles = [gauge.title for gauge, _ in found.gauges]
        if titles == list(self._charts):
            return
        self._body.clear()
        with self._body:
            self._charts = {gauge.title: _chart(gauge) for gauge, _ in found.gauges}


def _chart(gauge: Gauge) -> Drawing:
    with box("panel", "chart", "chart-runtime"):
        with box("panel-head"):
            heading(gauge.title, 3).classes("panel-title")
            ui.label(gauge.unit.strip()).classes("muted")
        return Drawing()
