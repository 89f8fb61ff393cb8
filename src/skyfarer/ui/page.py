"""The services page: the list, and the chosen one in full."""

from __future__ import annotations

from nicegui import ui

from skyfarer.ui.api import OapClient, Status, Wanted
from skyfarer.ui.boxes import box
from skyfarer.ui.dashboard import Dashboard, dashboard
from skyfarer.ui.detail import ServiceDetail
from skyfarer.ui.frame import Page, told
from skyfarer.ui.model import Overview
from skyfarer.ui.outside import shown
from skyfarer.ui.services import ServiceList
from skyfarer.ui.states import Empty


class ServicesPage(Page[tuple[Overview, Dashboard | None]]):
    path = "/"

    def __init__(self, client: OapClient, service: str) -> None:
        super().__init__(client)
        self._wanted = Wanted(selected=service)

    def body(self) -> None:
        self._empty = Empty()
        with box("work") as self._work:
            self._list = ServiceList(self._choose, self._search)
            with box("side"):
                self._missing = ui.label().classes("state-text missing")
                self._detail_box = box("detail-box")
                with self._detail_box:
                    self._detail = ServiceDetail()
        for part in (self._empty.element, self._work, self._missing):
            part.set_visibility(False)

    async def find(self, status: Status) -> tuple[Overview, Dashboard | None] | None:
        wanted = self._wanted
        overview = await self._client.overview(status.time, wanted)
        whole = None
        if overview.selected is not None:
            whole = await dashboard(self._client, status.time, overview.selected)
        return (overview, whole) if wanted == self._wanted else None

    def show(self, both: tuple[Overview, Dashboard | None]) -> None:
        found, whole = both
        anyone = bool(found.total or self._wanted.filter or found.selected)
        self._empty.element.set_visibility(not anyone)
        self._work.set_visibility(anyone)
        self._list.show(found)
        self._detail.show(found, whole)
        self._detail_box.set_visibility(found.selected is not None)
        missing = anyone and found.selected is None and bool(self._wanted.selected)
        self._missing.set_visibility(missing)
        self._missing.set_text(
            f"No service is named “{shown(self._wanted.selected)}”. Choose one from the list."
        )

    async def _choose(self, name: str) -> None:
        self._wanted = Wanted(self._wanted.filter, name)
        told({"service": name})
        await self.refresh()

    async def _search(self, text: str) -> None:
        self._wanted = Wanted(text, self._wanted.selected)
        await self.refresh()
