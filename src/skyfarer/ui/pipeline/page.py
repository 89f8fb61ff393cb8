"""The page of the pipeline of the node that answers."""

from __future__ import annotations

from nicegui import ui

from skyfarer.ui.api import OapClient, Status
from skyfarer.ui.boxes import box, heading
from skyfarer.ui.figures import Figure
from skyfarer.ui.frame import Page
from skyfarer.ui.model import count_text
from skyfarer.ui.outside import shown
from skyfarer.ui.pipeline import api
from skyfarer.ui.pipeline.books import Books
from skyfarer.ui.pipeline.history import History
from skyfarer.ui.pipeline.model import Look, Looks, rate_text, seconds_text
from skyfarer.ui.pipeline.panels import Panels, expiry, nodes
from skyfarer.ui.states import collector_of
from skyfarer.ui.tables import SmallTable
from skyfarer.ui.window import Window

LAG_LONG_S = 60.0
QUEUE_SHORT_S = 300.0


class PipelinePage(Page[tuple[Status, Look]]):
    path = "/pipeline"

    def __init__(self, client: OapClient, window: Window) -> None:
        super().__init__(client, window)
        self._looks = Looks()

    def body(self) -> None:
        with box("detail-head"):
            heading("Pipeline", 2).classes("detail-name")
            self._health = ui.label().classes("chip health")
            self._note = ui.label().classes("muted detail-note")
        self._unwell = box("unwell", "panel")
        self._nothing = ui.label().classes("state-text missing")
        with box("pipeline") as self._all:
            with box("figures"):
                self._rate = Figure("Accepted / s", "figure-rate")
                self._lag = Figure("Lag", "figure-lag")
                self._batch = Figure("Last batch", "figure-batch")
                self._queue = Figure("Queue full in", "figure-queue")
                self._agents = Figure("Connections", "figure-connections")
            with box("charts"):
                with box("pipeline-side"):
                    self._books = Books()
                    self._nodes = SmallTable("Cluster", "cluster", [""], "no node is known")
                    self._expiry = SmallTable("Expiry", "expiry", [""])
                with box("pipeline-side"):
                    self._history = History()
            self._panels = Panels()
        for part in (self._unwell, self._all):
            part.set_visibility(False)

    async def find(self, status: Status) -> tuple[Status, Look]:
        return status, await api.look(self._client, status.time)

    def show(self, found: tuple[Status, Look]) -> None:
        status, look = found
        self._looks.add(look)
        self._all.set_visibility(True)
        self._show_health(look)
        self._nothing.set_text("" if look.ledger.accepted else self._nothing_yet())
        self._show_figures(look)
        self._books.show(look)
        self._nodes.show(nodes(look))
        self._expiry.show(expiry(look.ttl))
        self._history.show(self._looks, status.time.now.tzinfo)
        self._panels.show(look)

    def _show_health(self, look: Look) -> None:
        bad = len(look.unwell)
        self._health.set_text(f"{bad} part{'s' if bad > 1 else ''} unwell" if bad else "healthy")
        self._health.classes(remove="chip-good chip-failing")
        self._health.classes(add="chip-failing" if bad else "chip-good")
        up = None if look.started_ms is None else (look.time_ms - look.started_ms) / 1000
        own = next((node.name for node in look.nodes if node.is_self), "this node")
        parts = [own, *([f"up {seconds_text(up)}"] if up is not None else [])]
        self._note.set_text(" · ".join([*parts, *([look.storage] if look.storage else [])]))
        self._unwell.set_visibility(bool(bad))
        self._unwell.clear()
        with self._unwell:
            for sentence in look.unwell:
                ui.label(shown(sentence)).classes("unwell-line")

    def _show_figures(self, look: Look) -> None:
        looks, analysis = self._looks, look.analysis
        self._rate.show(
            rate_text(looks.accepted_per_s()), f"delivered {rate_text(looks.delivered_per_s())} / s"
        )
        lag_s = analysis.lag_s
        self._lag.show(
            seconds_text(lag_s),
            f"{count_text(look.ledger.queued)} records",
            slow=lag_s is not None and lag_s >= LAG_LONG_S,
        )
        self._batch.show(
            seconds_text(analysis.last_batch_s),
            f"{count_text(analysis.last_batch_records)} records",
        )
        self._show_queue(look)
        self._agents.show(count_text(look.connections), "of agents and satellites")

    def _show_queue(self, look: Look) -> None:
        free_s = look.free_s
        if free_s is None:
            self._queue.show("never", "at the current rate")
            return
        self._queue.show(
            seconds_text(free_s),
            f"of {seconds_text(look.capacity_s)} at this rate",
            slow=free_s < QUEUE_SHORT_S,
            failing=free_s <= 0,
        )

    def _nothing_yet(self) -> str:
        collector = collector_of(self._client.url)
        return (
            f"Nothing has arrived yet. Point an agent or a satellite at {collector}; the page"
            " Services says how. Everything below counts from the first record on."
        )
