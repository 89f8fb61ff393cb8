"""The map as options for ECharts. Names come from the wire: they are drawn as text on the canvas,
in labels and tooltips alike, and never become HTML."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from skyfarer.ui.charts import FONTS, INKED, Options
from skyfarer.ui.map.layout import Place, placed
from skyfarer.ui.map.model import Call, Map, Node, Vital
from skyfarer.ui.model import count_text, latency_text, share_text
from skyfarer.ui.outside import shown

COLUMN_WIDTH, ROW_HEIGHT = 200, 120
NAME_CHARS_MAX = 28
_GOOD, _SLOW, _FAILING, _GUESSED = "#4a70e8", "#d18a1b", "#d1481f", "#8792a5"
_LINE = "#8792a5"


def options(shown: Map) -> Options:
    places = placed([node.id for node in shown.nodes], {(c.source, c.target) for c in shown.calls})
    return {
        "animation": False,
        "textStyle": {"fontFamily": FONTS},
        "tooltip": {"renderMode": "richText", "confine": True},
        "series": [
            {
                "type": "graph",
                "layout": "none",
                "roam": True,
                "scaleLimit": {"min": 0.3, "max": 3},
                "edgeSymbol": ["none", "arrow"],
                "edgeSymbolSize": 8,
                "label": {"show": True, "position": "bottom", **INKED, "fontSize": 12},
                "emphasis": {"focus": "adjacency"},
                "data": [_node(node, *places[node.id]) for node in shown.nodes],
                "links": [_link(call, _bend(call, places)) for call in shown.calls],
            }
        ],
    }


def height(shown: Map) -> int:
    places = placed([node.id for node in shown.nodes], {(c.source, c.target) for c in shown.calls})
    columns = [column for column, _ in places.values()]
    tallest = max((columns.count(column) for column in set(columns)), default=1)
    return min(max(tallest, 2) * ROW_HEIGHT + 100, 900)


def _node(node: Node, column: float, row: float) -> dict[str, Any]:
    return {
        "id": node.id,
        "name": _short(node.name),
        "x": column * COLUMN_WIDTH,
        "y": row * ROW_HEIGHT,
        "symbolSize": 34 if node.is_real else 26,
        "symbol": "circle" if node.is_real else "roundRect",
        "itemStyle": {"color": _colour(node)},
        "tooltip": {"formatter": _plain(f"{shown(node.name)}\n{facts(node.vital)}")},
    }


def _bend(call: Call, places: Mapping[str, Place]) -> float:
    """A call over the heads of others, or back, makes way for them."""
    columns = places[call.target][0] - places[call.source][0]
    return 0.04 if columns == 1 else 0.24


def _link(call: Call, bend: float) -> dict[str, Any]:
    failing = call.vital.failing
    return {
        "source": call.source,
        "target": call.target,
        "lineStyle": {
            "color": _FAILING if failing else _LINE,
            "width": 2,
            "curveness": bend,
            "opacity": 1,
        },
        "tooltip": {"formatter": _plain(facts(call.vital))},
        "label": {
            "show": call.vital.cpm is not None,
            "formatter": count_text(call.vital.cpm),
            **INKED,
            "fontSize": 11,
        },
    }


def facts(vital: Vital) -> str:
    if vital.cpm is None:
        return "no calls in the last minute"
    parts = (
        f"{count_text(vital.cpm)} cpm",
        latency_text(vital.resp_time_ms),
        share_text(vital.sla),
    )
    return " · ".join(parts)


def _colour(node: Node) -> str:
    if node.vital.failing:
        return _FAILING
    return _SLOW if node.vital.slow else _GOOD if node.is_real else _GUESSED


def _short(name: str) -> str:
    text = shown(name)
    return text if len(text) <= NAME_CHARS_MAX else f"{text[: NAME_CHARS_MAX - 1]}…"


def _plain(text: str) -> str:
    """ECharts fills in what stands in braces."""
    return text.replace("{", "(").replace("}", ")")
