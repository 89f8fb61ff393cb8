"""A chart in the browser, and what it says in words."""

from __future__ import annotations

from nicegui import ui

from skyfarer.ui.boxes import in_words
from skyfarer.ui.charts import Look, Options, spoken


def drawing(look: Look, first: Options) -> ui.echart:
    """With nothing in it yet."""
    chart = ui.echart(first).classes("canvas")
    in_words(chart, spoken(look, {}))
    return chart


def redraw(chart: ui.echart, new: Options, words: str) -> None:
    """Sends the browser new options only when they differ from what it has."""
    if new != chart.options:
        in_words(chart, words)
        chart.options.clear()
        chart.options.update(new)
        chart.update()
