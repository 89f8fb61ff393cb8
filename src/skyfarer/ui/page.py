"""The services page: the list, and the chosen one in full."""

from __future__ import annotations

from dataclasses import replace

from nicegui import ui

from skyfarer.ui.api import OapClient, Status, Wanted
from skyfarer.ui.boxes import box
from skyfarer.ui.dashboard import Dashboard, dashboard
from skyfarer.ui.detail import ServiceDetail
from skyfarer.ui.frame import Page, told
from skyfarer.ui.model import Overview
from skyfarer.ui.outside import shown
from skyfarer.ui.picker import Picker
from skyfarer.ui.services import ServiceList
from skyfarer.ui.states import Empty, collector_of
from skyfarer.ui.window import Window


class ServicesPage(Page[tuple[Overview, Dashboard | None]]):
    path = "/"

    def __init__(self, client: OapClient, wanted: Wanted) -> None:
        super().__init__(client, wanted.window)
        self._wanted = wanted

    def body(self) -> None:
        self._empty = Empty(collector_of(self._client.url))
        with box("work") as self._work:
            self._list = ServiceList(self._choose, self._search)
            with box("side"):
                self._missing = ui.label().classes("state-text missing")
                self._detail_box = box("detail-box")
                with self._detail_box:
                    self._detail = ServiceDetail(self._choose_instance, self._picker)
        for part in (self._work, self._missing):
            part.set_visibility(False)

    async def find(self, status: Status) -> tuple[Overview, Dashboard | None] | None:
        wanted = self._wanted
        overview = await self._client.overview(status.time, wanted)
        whole = None
        if overview.selected is not None:
            buckets = wanted.window.buckets(status.time)
            whole = await dashboard(self._client, buckets, overview.selected, wanted.instance)
        return (overview, whole) if wanted == self._wanted else None

    def show(self, both: tuple[Overview, Dashboard | None]) -> None:
        found, whole = both
        anyone = bool(found.total or self._wanted.filter or found.selected)
        self._empty.show(not anyone)
        self._work.set_visibility(anyone)
        self._list.show(found)
        self._detail.show(found, whole, self._wanted.window)
        self._detail_box.set_visibility(found.selected is not None)
        missing = anyone and found.selected is None and bool(self._wanted.selected)
        self._missing.set_visibility(missing)
        self._missing.set_text(
            f"No service is named “{shown(self._wanted.selected)}”. Choose one from the list."
        )

    def _picker(self) -> None:
        Picker(self._wanted.window, self.look_at)

    def _choose(self, name: str) -> None:
        self._want(replace(self._wanted, selected=name, instance=""))

    def _choose_instance(self, name: str) -> None:
        self._want(replace(self._wanted, instance=name))

    def look_at(self, window: Window) -> None:
        super().look_at(window)
        self._want(replace(self._wanted, window=window))

    async def _search(self, text: str) -> None:
        self._wanted = replace(self._wanted, filter=text)
        await self.refresh()

    def _want(self, wanted: Wanted) -> None:
        """What is chosen is in the address; the usual time need not be."""
        self._wanted = wanted
        chosen = {"service": wanted.selected, "instance": wanted.instance}
        told({**chosen, **wanted.window.kept()})
        ui.timer(0, self.refresh, once=True)
