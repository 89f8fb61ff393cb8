"""What the signs of the map mean, and which services have them now."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from nicegui import ui

from skyfarer.ui.boxes import box
from skyfarer.ui.links import service_link
from skyfarer.ui.map.model import Map, Node, State
from skyfarer.ui.model import FAILING_BELOW_SLA, SLOW_FROM_MS, latency_text, share_text
from skyfarer.ui.outside import shown
from skyfarer.ui.window import Window

NAMED_MAX: Final = 10
_SIGNS: Final = {
    "sign-good": "with an agent",
    "sign-guessed": "without an agent",
    "sign-slow": f"slow: from {latency_text(SLOW_FROM_MS)} on average",
    "sign-failing": f"failing: below {share_text(FAILING_BELOW_SLA)} success",
}


class Legend:
    """Drawn once; `show` says who is slow or failing."""

    def __init__(self) -> None:
        with box("legend"):
            for sign, words in _SIGNS.items():
                with box("legend-sign"):
                    box("sign", sign)
                    ui.label(words).classes("muted")
        self._unwell = box("legend", "unwell-services")

    def show(self, found: Map, window: Window) -> None:
        self._unwell.clear()
        with self._unwell:
            for state in (State.FAILING, State.SLOW):
                _names(state, [node for node in found.nodes if node.state is state], window)


def _names(state: State, nodes: Sequence[Node], window: Window) -> None:
    if not nodes:
        return
    with box("legend-sign", f"now-{state.value}"):
        ui.label(f"{state.value} now:").classes("muted")
        for node in nodes[:NAMED_MAX]:
            ui.link(shown(node.name), service_link(node.name, window)).classes("call-end")
        if len(nodes) > NAMED_MAX:
            ui.label(f"and {len(nodes) - NAMED_MAX} more").classes("muted")
