"""Charts: options for ECharts, and the small line in the list as SVG.

Labels take the page's muted colour, light or dark, when they are drawn; the grid is grey with some
transparency and the tooltip dark in both. Full minutes are a solid line with a soft area; the
minute in progress, whose count is still growing, is an open dot beside it, so that it does not look
like a fall.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from skyfarer.ui.model import Series, Values

Options = dict[str, Any]

FONTS = '-apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif'
SO_FAR = "so far"
INKED = {":color": "getComputedStyle(document.body).getPropertyValue('--muted')"}
"""The colour of text, for ECharts to find out when it draws."""
_MUTED = "#8792a5"
_DASHES = ("dotted", "dashed", "solid")
_HAIRLINE = "rgba(135,146,165,0.18)"
_HOUR, _DAY = timedelta(hours=1), timedelta(days=1)
_SPARK_WIDTH, _SPARK_HEIGHT = 84, 26


@dataclass(frozen=True)
class Look:
    """`unit` follows a value in the tooltip; `growing` marks counts that a minute adds up; `most`
    is the end of the axis."""

    name: str
    colour: str
    unit: str
    growing: bool
    most: int | None = None


CALLS = Look("Calls per minute", "#4a70e8", "", growing=True)
SUCCESS = Look("Success rate", "#1a9a6c", " %", growing=False, most=100)
PERCENTILE = Look("Percentiles", "#9a5fd0", " ms", growing=False)
LATENCY = Look("Response time", "#9a5fd0", " ms", growing=False)


def options(look: Look, minutes: Sequence[datetime], series: Series) -> Options:
    counted = look.growing and series.growing
    full, growing = _split(series.values) if counted else (series.values, ())
    return {
        "animation": False,
        "textStyle": {"fontFamily": FONTS},
        "grid": {"left": 4, "right": 14, "top": 14, "bottom": 2, "containLabel": True},
        "tooltip": _tooltip(look),
        "xAxis": _time_axis(minutes),
        "yAxis": _value_axis(look.most),
        "series": [_line(look, full), _open_dot(look, growing)],
    }


def lines(look: Look, minutes: Sequence[datetime], named: Mapping[str, Series]) -> Options:
    """Several series of one colour, the last one solid and others broken, with their names."""
    drawn = [
        {
            **_line(look, series.values),
            "name": name,
            "areaStyle": None,
            "lineStyle": {"width": 2, "color": look.colour, "type": _dash(place, len(named))},
        }
        for place, (name, series) in enumerate(named.items())
    ]
    chart = options(look, minutes, Series())
    tooltip = {**_tooltip(look), ":formatter": None, "valueFormatter": None}
    tooltip = {key: value for key, value in tooltip.items() if value is not None}
    legend = {"top": 0, "right": 8, "itemHeight": 6, "textStyle": {**INKED}}
    return {**chart, "tooltip": tooltip, "legend": legend, "series": drawn}


def _dash(place: int, lines: int) -> str:
    return _DASHES[max(place - lines, -len(_DASHES))]


def spoken(look: Look, named: Mapping[str, Series]) -> str:
    """The chart in words: of each series the range of its values, and the latest full one."""
    said = [_spoken(look, name, series) for name, series in named.items()]
    return f"{look.name} over time: {'; '.join(said) or 'nothing yet'}"


def _spoken(look: Look, name: str, series: Series) -> str:
    values = [value for value in series.values if value is not None]
    if not values:
        return f"{name} no calls".strip()
    ends = f"{min(values):,} to {max(values):,}{look.unit}"
    lately = "no calls" if series.current is None else f"{series.current:,}{look.unit}"
    return f"{name} {ends}, lately {lately}".strip()


def _split(values: Values) -> tuple[Values, Values]:
    """The full minutes, and apart from them the one in progress; together while it is the only."""
    if all(value is None for value in values[:-1]):
        return values, ()
    before: Values = (None,) * (len(values) - 1)
    return (*values[:-1], None), (*before, values[-1])


def _line(look: Look, values: Values) -> Options:
    return {
        "name": look.name,
        "type": "line",
        "data": list(values),
        "symbol": "circle",
        "symbolSize": 6,
        "showSymbol": _has_lone_points(values),
        "lineStyle": {"width": 2, "color": look.colour},
        "itemStyle": {"color": look.colour},
        "areaStyle": {"color": look.colour, "opacity": 0.09},
    }


def _open_dot(look: Look, values: Values) -> Options:
    return {
        "name": SO_FAR,
        "type": "line",
        "data": list(values),
        "symbol": "circle",
        "symbolSize": 6,
        "showSymbol": True,
        "itemStyle": {"color": "transparent", "borderColor": look.colour, "borderWidth": 1.5},
    }


def _has_lone_points(values: Values) -> bool:
    """A point with nothing on either side draws no line, so it needs its dot."""
    padded = (None, *values, None)
    return any(
        here is not None and before is None and after is None
        for before, here, after in zip(padded, padded[1:], padded[2:], strict=False)
    )


def _tooltip(look: Look) -> Options:
    shown = (
        "(all) => { const p = all.find((q) => q.value !== null && q.value !== undefined);"
        f" const text = p ? Number(p.value).toLocaleString('en') + '{look.unit}' : 'no calls';"
        f" const tail = p && p.seriesName === '{SO_FAR}' ? ' {SO_FAR}' : '';"
        " return all[0].axisValue + '&emsp;<b>' + text + '</b>' + tail; }"
    )
    return {
        "trigger": "axis",
        ":formatter": shown,
        "backgroundColor": "#1c2333",
        "borderWidth": 0,
        "padding": [6, 10],
        "textStyle": {"color": "#f3f5f9", "fontSize": 12},
        "axisPointer": {"lineStyle": {"color": _MUTED, "type": "solid", "opacity": 0.5}},
    }


def _time_axis(times: Sequence[datetime]) -> Options:
    """Minutes by the time of day; hours and days have their date."""
    step = times[1] - times[0] if len(times) > 1 else timedelta(minutes=1)
    form = "%H:%M" if step < _HOUR else "%m-%d %H:%M" if step < _DAY else "%m-%d"
    fives = {":interval": "(index, text) => Number(text.slice(3)) % 5 === 0"}
    return {
        "type": "category",
        "boundaryGap": False,
        "data": [one.strftime(form) for one in times],
        "axisTick": {"show": False},
        "axisLine": {"lineStyle": {"color": _HAIRLINE}},
        "axisLabel": {
            **INKED,
            "fontSize": 11,
            "hideOverlap": True,
            "alignMinLabel": "left",
            **(fives if step < _HOUR else {}),
        },
    }


def _value_axis(most: int | None) -> Options:
    return {
        **({"max": most, "interval": most / 4} if most else {}),
        "type": "value",
        "min": 0,
        "minInterval": 1,
        "splitNumber": 3,
        "splitLine": {"lineStyle": {"color": _HAIRLINE}},
        "axisLabel": {**INKED, "fontSize": 11},
    }


def sparkline(series: Series) -> str:
    """The full minutes as a small SVG line; made of numbers alone, so it needs no escaping."""
    full = series.values[:-1] if series.growing else series.values
    values = [value or 0 for value in full]
    if not any(values):
        values = [0, 0]
    step = _SPARK_WIDTH / max(1, len(values) - 1)
    scale = (_SPARK_HEIGHT - 4) / max(1, *values)
    points = " ".join(
        f"{number * step:.1f},{_SPARK_HEIGHT - 2 - value * scale:.1f}"
        for number, value in enumerate(values)
    )
    floor = f"{_SPARK_WIDTH},{_SPARK_HEIGHT} 0,{_SPARK_HEIGHT}"
    return (
        f'<svg viewBox="0 0 {_SPARK_WIDTH} {_SPARK_HEIGHT}" width="{_SPARK_WIDTH}" '
        f'height="{_SPARK_HEIGHT}" aria-hidden="true">'
        f'<polygon points="{points} {floor}" fill="currentColor" opacity="0.13"/>'
        f'<polyline points="{points}" fill="none" stroke="currentColor" stroke-width="1.5" '
        'stroke-linejoin="round"/></svg>'
    )
