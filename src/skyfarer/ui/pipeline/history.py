"""What the page has seen since it was opened, as charts."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, tzinfo
from typing import Any, Final

from nicegui import ui

from skyfarer.ui.boxes import box
from skyfarer.ui.charts import Look as Colours
from skyfarer.ui.charts import lines
from skyfarer.ui.drawn import redraw
from skyfarer.ui.model import Series
from skyfarer.ui.pipeline.model import Looks

RATES: Final = Colours("Records a second", "#4a70e8", "", growing=False)
SECONDS_ROOM_PX: Final = 30
"""For half of the last label."""
DELAYS: Final = Colours("Lag and batches", "#9a5fd0", " ms", growing=False)


class History:
    def __init__(self) -> None:
        with box("charts"):
            self._rates = _chart(RATES, "chart-rates", "since this page was opened")
            self._delays = _chart(DELAYS, "chart-delays", "milliseconds")

    def show(self, looks: Looks, zone: tzinfo | None) -> None:
        times = [datetime.fromtimestamp(one.time_ms / 1000, zone) for one in looks.kept]
        rates = {
            "delivered": _rounded(looks.rates("delivered")),
            "accepted": _rounded(looks.rates("accepted")),
        }
        delays = {
            "batch": _milliseconds([one.analysis.last_batch_s for one in looks.kept]),
            "lag": _milliseconds([one.analysis.lag_s for one in looks.kept]),
        }
        _draw(self._rates, lines(RATES, times, rates), times)
        _draw(self._delays, lines(DELAYS, times, delays), times)


def _chart(look: Colours, name: str, note: str) -> ui.echart:
    with box("panel", "chart", name):
        with box("panel-head"):
            ui.label(look.name).classes("panel-title")
            ui.label(note).classes("muted")
        return ui.echart({}).classes("canvas")


def _draw(chart: ui.echart, options: dict[str, Any], times: Sequence[datetime]) -> None:
    """With seconds, which the axis of a service's charts does not have."""
    axis = {key: value for key, value in options["xAxis"]["axisLabel"].items() if key[0] != ":"}
    options["xAxis"] |= {"data": [one.strftime("%H:%M:%S") for one in times], "axisLabel": axis}
    options["grid"] = {**options["grid"], "right": SECONDS_ROOM_PX}
    redraw(chart, options)


def _rounded(values: Sequence[float | None]) -> Series:
    return Series(tuple(None if one is None else round(one) for one in values))


def _milliseconds(values: Sequence[float | None]) -> Series:
    return Series(tuple(None if one is None else round(one * 1000) for one in values))
