"""The services page: puts the parts together and refreshes them."""

from __future__ import annotations

from importlib import resources
from urllib.parse import urlencode

from nicegui import ui

from skyfarer.ui.api import OapAwayError, OapClient, OapRefusedError, Wanted
from skyfarer.ui.detail import ServiceDetail
from skyfarer.ui.header import REMEMBERED_THEME, Header
from skyfarer.ui.model import Overview
from skyfarer.ui.services import ServiceList, box
from skyfarer.ui.states import Banner, Empty

REFRESH_S = 2.0


class ServicesPage:
    """One browser's page. A refresh that fails leaves what is shown, dimmed, and says so on top."""

    def __init__(self, client: OapClient, service: str) -> None:
        self._client = client
        self._wanted = Wanted(selected=service)
        self._known = False

    def build(self) -> None:
        ui.add_css(resources.files(__package__).joinpath("style.css").read_text("utf-8"))
        ui.run_javascript(REMEMBERED_THEME)
        self._header = Header()
        self._banner = Banner()
        self._empty = Empty()
        with box("work", tag="main") as self._work:
            self._list = ServiceList(self._choose, self._search)
            with box("side"):
                self._missing = ui.label().classes("state-text missing")
                self._detail_box = box("detail-box")
                with self._detail_box:
                    self._detail = ServiceDetail()
        for part in (self._empty.element, self._work, self._missing):
            part.set_visibility(False)
        ui.timer(REFRESH_S, self._refresh)

    async def _refresh(self) -> None:
        wanted = self._wanted
        try:
            overview = await self._client.overview(wanted)
        except OapAwayError as reason:
            self._away(f"No answer from the OAP at {self._client.url} ({reason}).")
        except OapRefusedError as reason:
            self._away(f"The OAP at {self._client.url} cannot answer: {str(reason).rstrip('.')}.")
        else:
            if wanted == self._wanted:
                self._show(overview)

    def _away(self, what: str) -> None:
        left = " What you see is the last it said." if self._known else ""
        self._banner.say(f"{what} Trying again every {REFRESH_S:g} s.{left}")
        self._header.away()
        self._work.classes(add="stale")

    def _show(self, overview: Overview) -> None:
        self._known = True
        self._banner.say("")
        self._work.classes(remove="stale")
        self._header.show(overview)
        anyone = bool(overview.total or self._wanted.filter or overview.selected)
        self._empty.element.set_visibility(not anyone)
        self._work.set_visibility(anyone)
        self._list.show(overview)
        self._detail.show(overview)
        self._detail_box.set_visibility(overview.selected is not None)
        missing = anyone and overview.selected is None and bool(self._wanted.selected)
        self._missing.set_visibility(missing)
        self._missing.set_text(
            f"No service is named “{self._wanted.selected}”. Choose one from the list."
        )

    async def _choose(self, name: str) -> None:
        self._wanted = Wanted(self._wanted.filter, name)
        ui.navigate.history.replace("?" + urlencode({"service": name}))
        await self._refresh()

    async def _search(self, text: str) -> None:
        self._wanted = Wanted(text, self._wanted.selected)
        await self._refresh()
