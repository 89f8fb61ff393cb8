"""The page of the map: the graph, and every call as a line that can be read and clicked."""

from __future__ import annotations

from collections.abc import Mapping

from nicegui import events, ui

from skyfarer.ui.api import OapClient, Status
from skyfarer.ui.boxes import box
from skyfarer.ui.drawn import Drawing
from skyfarer.ui.frame import Page, told
from skyfarer.ui.links import service_link
from skyfarer.ui.map import chart
from skyfarer.ui.map.api import whole_map
from skyfarer.ui.map.legend import Legend
from skyfarer.ui.map.model import Call, Map
from skyfarer.ui.model import count_text
from skyfarer.ui.outside import shown
from skyfarer.ui.picker import Picker
from skyfarer.ui.states import Empty, collector_of
from skyfarer.ui.window import Window


class MapPage(Page[Map]):
    path = "/map"

    def __init__(self, client: OapClient, window: Window) -> None:
        super().__init__(client, window)
        self._shown: Map | None = None

    def body(self) -> None:
        with box("map-head"):
            self._facts = ui.label().classes("muted")
            Picker(self._window, self.look_at)
        self._none = ui.label().classes("state-text missing")
        self._empty = Empty(collector_of(self._client.url))
        with box("panel", "map") as self._panel:
            self._legend = Legend()
            scrolled = box("map-scroll").props('tabindex=0 role=region aria-label="Map"')
            with scrolled:
                self._drawing = Drawing(self._clicked)
        with box("panel", "list") as self._list:
            self._calls = box("list-rows")
        for part in (self._panel, self._list):
            part.set_visibility(False)

    async def find(self, status: Status) -> Map | None:
        window = self._window
        found = await whole_map(self._client, status.time, window)
        return found if window == self._window else None

    def show(self, found: Map) -> None:
        if found == self._shown:
            return
        self._shown = found
        for part in (self._panel, self._list):
            part.set_visibility(bool(found.nodes))
        quiet = not found.nodes and not found.nobody
        self._none.set_text("No calls in this time. Look at a longer one." if quiet else "")
        self._empty.show(found.nobody)
        self._facts.set_text("" if found.nobody else _told(found))
        width, height = chart.size(found)
        self._drawing.place.style(f"height: {height}px; --least-width: {width}px")
        self._drawing.show(
            chart.options(found),
            f"A map of {len(found.nodes)} services and {len(found.calls)} calls between them, which"
            " are listed below",
        )
        self._legend.show(found, self._window)
        names = {node.id: node.name for node in found.nodes}
        self._calls.clear()
        with self._calls:
            for call in found.calls:
                self._line(call, names, found.step)

    def look_at(self, window: Window) -> None:
        super().look_at(window)
        self._shown = None
        told(window.address())
        ui.timer(0, self.refresh, once=True)

    def _line(self, call: Call, names: Mapping[str, str], step: str) -> None:
        with box("call-row"):
            with box("call-ends"):
                self._end(names[call.source])
                ui.label("→").classes("muted")
                self._end(names[call.target])
            ui.label("failing" if call.vital.failing else "").classes("chip chip-failing")
            ui.label(chart.facts(call.vital, step)).classes("muted call-facts")

    def _end(self, name: str) -> None:
        ui.link(shown(name), service_link(name, self._window)).classes("call-end")

    def _clicked(self, event: events.EChartPointClickEventArguments) -> None:
        nodes = self._shown.nodes if self._shown is not None else ()
        if event.data_type == "node" and event.data_index < len(nodes):
            ui.navigate.to(service_link(nodes[event.data_index].name, self._window))


def _told(found: Map) -> str:
    parts = [f"{len(found.nodes)} services", f"{len(found.calls)} calls"]
    if found.hidden:
        parts.append(f"{count_text(found.hidden)} more services are not drawn")
    if found.hidden_calls:
        parts.append(f"{count_text(found.hidden_calls)} more calls are not drawn")
    figures = f" · figures of the last full {found.step}" if found.nodes else ""
    return ", ".join(parts) + figures
