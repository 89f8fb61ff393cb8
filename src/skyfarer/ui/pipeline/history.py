"""What the page has seen since it was opened, as charts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, tzinfo
from typing import Final

from nicegui import ui

from skyfarer.ui.boxes import box, heading
from skyfarer.ui.charts import Look as Colours
from skyfarer.ui.charts import lines, spoken
from skyfarer.ui.drawn import Drawing
from skyfarer.ui.model import Series
from skyfarer.ui.pipeline.model import Looks

RATES: Final = Colours("Records a second", "#4a70e8", "", growing=False)
SECONDS_ROOM_PX: Final = 30
"""For half of the last label."""
_MARKS: Final = ":interval"
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
        _draw(self._rates, RATES, rates, times)
        _draw(self._delays, DELAYS, delays, times)


def _chart(look: Colours, name: str, note: str) -> Drawing:
    with box("panel", "chart", name):
        with box("panel-head"):
            heading(look.name, 3).classes("panel-title")
            ui.label(note).classes("muted")
        return Drawing()


def _draw(
    drawing: Drawing, look: Colours, named: Mapping[str, Series], times: Sequence[datetime]
) -> None:
    """With seconds, which the axis of a service's charts does not have."""
    options = lines(look, times, named)
    axis = {key: value for key, value in options["xAxis"]["axisLabel"].items() if key != _MARKS}
    options["xAxis"] |= {"data": [one.strftime("%H:%M:%S") for one in times], "axisLabel": axis}
    options["grid"] = {**options["grid"], "right": SECONDS_ROOM_PX}
    drawing.show(options, spoken(look, named))


def _rounded(values: Sequence[float | None]) -> Series:
    return Series(tuple(None if one is None else round(one) for one in values))


def _milliseconds(values: Sequence[float | None]) -> Series:
    return Series(tuple(None if one is None else round(one * 1000) for one in values))
