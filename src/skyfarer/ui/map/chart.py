"""The map as options for ECharts. Names come from the wire: they are drawn as text on the canvas,
in labels and tooltips alike, and never become HTML.

What a node is stands in its shape; its state in a colour, a border and a word beside its name, and
that of a call in a colour and a word beside its number. `legend` says the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from skyfarer.ui.charts import FONTS, INKED, Options
from skyfarer.ui.map.layout import Place, placed
from skyfarer.ui.map.model import Call, Map, Node, State, Vital
from skyfarer.ui.model import count_text, latency_text, share_text
from skyfarer.ui.outside import shown

COLUMN_WIDTH, ROW_HEIGHT = 200, 120
COLUMN_WIDTH_MIN = 120
NAME_CHARS_MAX = 28
_COLOURS = {State.GOOD: "#4a70e8", State.SLOW: "#d18a1b", State.FAILING: "#d1481f"}
_GUESSED = "#8792a5"
_BORDERS = {State.SLOW: "dashed", State.FAILING: "solid"}
_BORDER_WIDTH = 4
_INK = "getComputedStyle(document.body).getPropertyValue('--ink')"
_LINE = "#8792a5"
_UNUSED = 0
"""NiceGUI tells of no click on what has no value."""


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
                "data": [_node(node, shown.step, *places[node.id]) for node in shown.nodes],
                "links": [_link(call, shown.step, _bend(call, places)) for call in shown.calls],
            }
        ],
    }


def size(shown: Map) -> tuple[int, int]:
    """The least width at which names do not run into each other, and the height."""
    places = placed([node.id for node in shown.nodes], {(c.source, c.target) for c in shown.calls})
    columns = [column for column, _ in places.values()]
    tallest = max((columns.count(column) for column in set(columns)), default=1)
    height = min(max(tallest, 2) * ROW_HEIGHT + 100, 900)
    return len(set(columns)) * COLUMN_WIDTH_MIN, height


def _node(node: Node, step: str, column: float, row: float) -> dict[str, Any]:
    return {
        "id": node.id,
        "name": _named(node),
        "value": _UNUSED,
        "x": column * COLUMN_WIDTH,
        "y": row * ROW_HEIGHT,
        "symbolSize": 34 if node.has_agent else 26,
        "symbol": "circle" if node.has_agent else "roundRect",
        "itemStyle": {"color": _colour(node), **_border(node.state)},
        "tooltip": {"formatter": _plain(f"{shown(node.name)}\n{facts(node.vital, step)}")},
    }


def _bend(call: Call, places: Mapping[str, Place]) -> float:
    """A call over the heads of others, or back, makes way for them."""
    columns = places[call.target][0] - places[call.source][0]
    return 0.04 if columns == 1 else 0.24


def _link(call: Call, step: str, bend: float) -> dict[str, Any]:
    failing = call.vital.failing
    return {
        "source": call.source,
        "target": call.target,
        "value": _UNUSED,
        "lineStyle": {
            "color": _COLOURS[State.FAILING] if failing else _LINE,
            "width": 2,
            "curveness": bend,
            "opacity": 1,
        },
        "tooltip": {"formatter": _plain(facts(call.vital, step))},
        "label": {
            "show": call.vital.cpm is not None,
            "formatter": count_text(call.vital.cpm) + (" failing" if failing else ""),
            **INKED,
            "fontSize": 11,
        },
    }


def facts(vital: Vital | None, step: str) -> str:
    if vital is None:
        return "known by its calls alone"
    if vital.cpm is None:
        return f"no calls in the last {step}"
    parts = (
        f"{count_text(vital.cpm)} cpm",
        latency_text(vital.resp_time_ms),
        share_text(vital.sla),
    )
    return " · ".join(parts)


def _named(node: Node) -> str:
    state = node.state
    return _short(node.name) if state is State.GOOD else f"{_short(node.name)} · {state.value}"


def _border(state: State) -> dict[str, Any]:
    if state not in _BORDERS:
        return {}
    return {":borderColor": _INK, "borderWidth": _BORDER_WIDTH, "borderType": _BORDERS[state]}


def _colour(node: Node) -> str:
    state = node.state
    return _COLOURS[state] if node.has_agent or state is not State.GOOD else _GUESSED


def _short(name: str) -> str:
    text = shown(name)
    return text if len(text) <= NAME_CHARS_MAX else f"{text[: NAME_CHARS_MAX - 1]}…"


def _plain(text: str) -> str:
    """ECharts fills in what stands in braces."""
    return text.replace("{", "(").replace("}", ")")
