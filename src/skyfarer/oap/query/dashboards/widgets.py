"""The parts of a dashboard, in the format of SkyWalking's page.

A page has 24 columns; what stands on it knows its place (x, y), its size (w, h) and its number (i).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

Part = dict[str, Any]

COLUMNS: Final = 24
PAGE_ROWS: Final = 48
LINE_ROWS: Final = 12
CARD_ROWS: Final = 5
LIST_ROWS: Final = 14
PERCENTILES: Final = "50,75,90,95,99"


@dataclass(frozen=True)
class Metric:
    """An expression, and how its values are called and measured."""

    expression: str
    label: str = ""
    unit: str = ""

    def config(self) -> Part:
        words = {"label": self.label, "detailLabel": _key(self.label), "unit": self.unit}
        return {name: word for name, word in words.items() if word}

    def averaged(self) -> str:
        metric, slash, divisor = self.expression.partition("/")
        return f"avg({metric}){slash}{divisor}"


def percentiles(metric: str) -> Metric:
    """Its labels become the percentiles' own names."""
    labels = f"p='{PERCENTILES}', percentile='{PERCENTILES}'"
    return Metric(f"relabels({metric}{{p='{PERCENTILES}'}}, {labels})")


def line(title: str, *metrics: Metric) -> Part:
    graph = {"type": "Line", "showSymbol": True, "showXAxis": True, "showYAxis": True}
    return _widget(title, metrics, {**graph, "step": False, "smooth": False}, LINE_ROWS)


def card(title: str, metric: Metric) -> Part:
    """One number: the average over the time that is looked at."""
    shown = Metric(metric.averaged(), "", metric.unit)
    graph = {"type": "Card", "fontSize": 14, "textAlign": "center", "showUnit": True}
    return _widget(title, [shown], graph, CARD_ROWS)


def top(title: str, expression: str, dashboard: str) -> Part:
    """The first of many, each with its own dashboard."""
    part = _widget(title, [Metric(expression)], {"type": "TopList", "topN": "10"}, LIST_ROWS)
    return {**part, "valueRelatedDashboard": dashboard, "relatedTrace": {"refIdType": "owner"}}


def statements(title: str, expression: str) -> Part:
    """The slowest, each with its trace."""
    part = _widget(title, [Metric(expression)], {"type": "TopList"}, PAGE_ROWS)
    return {**part, "relatedTrace": {"refIdType": "traceId"}}


def listed(kind: str, dashboard: str, metrics: Sequence[Metric]) -> Part:
    """A table of services, instances or endpoints (`ServiceList`, …)."""
    graph = {"type": kind, "dashboardName": dashboard, "fontSize": 12, "showGroup": True}
    part = _widget("", [Metric(m.averaged(), m.label, m.unit) for m in metrics], graph, PAGE_ROWS)
    return {**part, "subExpressions": [metric.expression for metric in metrics]}


def bare(kind: str, rows: int = PAGE_ROWS) -> Part:
    """What the page draws by itself: `Trace`, `Log`, `Event`."""
    return {"type": kind, "h": rows}


def stacked(*rows: Sequence[Part]) -> list[Part]:
    """Rows from above, whose parts share the width; numbered as they come."""
    placed: list[Part] = []
    y = 0
    for row in rows:
        width = COLUMNS // len(row)
        for place, part in enumerate(row):
            spot = {"x": place * width, "y": y, "w": width, "i": str(len(placed))}
            placed.append({**part, **spot})
        y += max(part["h"] for part in row)
    return placed


def tabs(**pages: Sequence[Sequence[Part]]) -> Part:
    """By name, blanks as underscores; each is rows."""
    children = [
        {"name": name.replace("_", " "), "children": stacked(*rows)} for name, rows in pages.items()
    ]
    return {"type": "Tab", "children": children, "h": PAGE_ROWS + 4}


def dashboard(name: str, layer: str, entity: str, rows: Iterable[Sequence[Part]]) -> Part:
    """`entity` is All for the first page of a layer, which is its root."""
    head = {"id": name, "name": name, "layer": layer, "entity": entity, "isRoot": entity == "All"}
    return {**head, "children": stacked(*rows)}


def _widget(title: str, metrics: Sequence[Metric], graph: Part, rows: int) -> Part:
    part: Part = {"type": "Widget", "graph": graph, "h": rows}
    if title:
        part["widget"] = {"title": title, "name": _key(title)}
    part["metricConfig"] = [metric.config() for metric in metrics]
    part["expressions"] = [metric.expression for metric in metrics]
    return part


def _key(words: str) -> str:
    return "_".join("".join(c if c.isalnum() else " " for c in words.lower()).split())
