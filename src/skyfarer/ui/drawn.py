"""A chart in the browser."""

from __future__ import annotations

from nicegui import ui

from skyfarer.ui.charts import Options


def redraw(chart: ui.echart, new: Options) -> None:
    """Sends the browser new options only when they differ from what it has."""
    if new != chart.options:
        chart.options.clear()
        chart.options.update(new)
        chart.update()
