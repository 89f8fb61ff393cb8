"""What all pages have in common: the top, the way to the others, the refreshing.

A refresh that fails leaves what is shown, dimmed, and says so above it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from importlib import resources
from typing import ClassVar, Generic, TypeVar
from urllib.parse import urlencode

from nicegui import ui

from skyfarer.ui.api import OapAwayError, OapClient, OapRefusedError, Status
from skyfarer.ui.boxes import box, heading
from skyfarer.ui.header import REMEMBERED_THEME, Header, name_of
from skyfarer.ui.outside import TEXT_CHARS_MAX, shown
from skyfarer.ui.states import Banner
from skyfarer.ui.turns import OneAtATime
from skyfarer.ui.window import Window

REFRESH_S = 2.0

Found = TypeVar("Found")


class Page(ABC, Generic[Found]):
    """One browser's page. `build` once; then `find` and `show` again and again. A page without a
    time of its own hands on the one that its reader came with."""

    path: ClassVar[str]

    def __init__(self, client: OapClient, window: Window) -> None:
        self._client = client
        self._window = window
        self._known = False
        self._turns = OneAtATime(self._refresh)

    @abstractmethod
    def body(self) -> None:
        """Its widgets, inside of the frame."""

    @abstractmethod
    async def find(self, status: Status) -> Found | None:
        """What is to be shown; None where nothing has to change."""

    @abstractmethod
    def show(self, found: Found) -> None: ...

    def build(self) -> None:
        ui.add_css(resources.files(__package__).joinpath("style.css").read_text("utf-8"))
        ui.run_javascript(REMEMBERED_THEME)
        ui.page_title(f"{name_of(self.path)} · Skyfarer")
        with ui.context.client.layout:
            self._header = Header(self.path, self._refreshing, self._window)
        heading(name_of(self.path), 1).classes("unseen")
        self._banner = Banner()
        with box("page") as self._page:
            self.body()
        self._timer = ui.timer(REFRESH_S, self._turns.in_turn)

    def look_at(self, window: Window) -> None:
        """The pages that the top leads to look at it too."""
        self._window = window
        self._header.keep(window)

    def _refreshing(self, by_itself: bool) -> None:
        """What a reader asks for is still brought at once."""
        if by_itself:
            self._timer.activate()
        else:
            self._timer.deactivate()

    async def refresh(self) -> None:
        """For what is to be shown now; while a refresh runs, after it."""
        await self._turns.anew()

    async def _refresh(self) -> None:
        try:
            status = await self._client.status()
            self._header.show(status)
            found = await self.find(status)
        except OapAwayError as reason:
            self._away(f"No answer from the OAP at {self._client.url} ({reason}).")
        except OapRefusedError as reason:
            self._away(f"The OAP at {self._client.url} cannot answer: {str(reason).rstrip('.')}.")
        else:
            self._known = True
            self._banner.say("")
            self._page.classes(remove="stale")
            self._header.here()
            if found is not None:
                self.show(found)

    def _away(self, what: str) -> None:
        left = " What you see is the last it said." if self._known else ""
        self._banner.say(f"{shown(what, TEXT_CHARS_MAX)} Trying again every {REFRESH_S:g} s.{left}")
        self._header.away()
        self._page.classes(add="stale")


def told(address: Mapping[str, str]) -> None:
    """Puts it into the browser's address, without what is empty: a link to what is shown."""
    ui.navigate.history.replace("?" + urlencode({k: v for k, v in address.items() if v}))
