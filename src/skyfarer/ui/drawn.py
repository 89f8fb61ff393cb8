"""A chart in the browser, and what it says in words."""

from __future__ import annotations

from collections.abc import Callable

from nicegui import events, ui

from skyfarer.ui.boxes import box, in_words
from skyfarer.ui.charts import Options

_FETCH = 'import("nicegui-echart")'
Clicked = Callable[[events.EChartPointClickEventArguments], object]


class Drawing:
    """An empty place until there is something to draw. A page is painted before the browser has
    the megabyte that draws, which it fetches while the OAP is asked."""

    def __init__(self, clicked: Clicked | None = None) -> None:
        self._clicked = clicked
        self._chart: ui.echart | None = None
        self.place = box("drawing")
        ui.run_javascript(_FETCH)

    def show(self, new: Options, words: str) -> None:
        """Sends the browser new options only when they differ from what it has."""
        if self._chart is None:
            with self.place:
                self._chart = ui.echart(new, on_point_click=self._clicked).classes("canvas")
            in_words(self._chart, words)
        elif new != self._chart.options:
            in_words(self._chart, words)
            self._chart.options.clear()
            self._chart.options.update(new)
            self._chart.update()
