"""Pages that search: a form, what it found, and pages of that.

What is asked for is in the browser's address, so that it can be sent to somebody. The list is
renewed more slowly than the rest, and only drawn when it has changed: it should not run away under
the reader's hand.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final, Generic, TypeVar

from nicegui import ui

from skyfarer.ui import fields
from skyfarer.ui.api import OapClient, OapRefusedError, Status
from skyfarer.ui.boxes import box
from skyfarer.ui.fields import Field
from skyfarer.ui.frame import REFRESH_S, Page, told
from skyfarer.ui.outside import TEXT_CHARS_MAX, shown
from skyfarer.ui.picker import Picker
from skyfarer.ui.states import Empty, collector_of
from skyfarer.ui.window import Window

ROUNDS_BETWEEN = 5
"""Refreshes of the page for one of the list."""

TEXT_MAX: Final = 1_000
REACH_MAX: Final = 10_000
"""Rows, as far as the OAP can be paged."""
NUMBERS: Final = ("page", "min_ms", "max_ms")
_NUMBER = re.compile("0|[1-9][0-9]{0,8}")

Row = TypeVar("Row")


@dataclass(frozen=True)
class Question:
    """What is looked for. Others add fields; `address` has those that differ from the usual."""

    window: Window = field(default_factory=Window)
    service: str = ""
    tags: str = ""
    trace_id: str = ""
    page: int = 1

    page_rows = 20

    @classmethod
    def pages_max(cls) -> int:
        return REACH_MAX // cls.page_rows

    def address(self) -> dict[str, str]:
        usual = type(self)()
        names = [name for name in self.__dataclass_fields__ if name != "window"]
        changed = {name: getattr(self, name) for name in names}
        told = {
            name: str(value)
            for name, value in changed.items()
            if value is not None and value != getattr(usual, name)
        }
        return {**told, **self.window.address()}


@dataclass(frozen=True)
class Listed(Generic[Row]):
    """A page of what was found. `missing` says what is not shown and why; `more`: whether there
    may be another page; `refused`: why the OAP does not look, in a sentence."""

    rows: tuple[Row, ...]
    services: tuple[str, ...]
    more: bool
    missing: str = ""
    refused: str = ""


Asked = TypeVar("Asked", bound=Question)


class ListPage(Page[tuple[Status, Listed[Row]]], Generic[Asked, Row]):
    def __init__(self, client: OapClient, asked: Asked) -> None:
        super().__init__(client, asked.window)
        self._asked = asked
        self._rounds = 0
        self._shown: Listed[Row] | None = None

    @abstractmethod
    def form(self, asked: Asked) -> Mapping[str, Field]:
        """The fields beside service and time, by the question's names."""

    @abstractmethod
    async def search(self, status: Status, asked: Asked) -> Listed[Row]: ...

    @abstractmethod
    def lines(self, rows: Sequence[Row], status: Status) -> None:
        """Draws them where it is called."""

    @abstractmethod
    def nothing(self, asked: Asked) -> str:
        """Said where nothing was found: what was looked for."""

    @abstractmethod
    def advice(self, asked: Asked) -> str:
        """And what to do."""

    def body(self) -> None:
        with box("panel", "form"):
            self._service = fields.services(self._asked.service)
            self._fields = {"service": self._service, **self.form(self._asked)}
            Picker(self._asked.window, self.look_at)
            self._searching = ui.label("Searching …").classes("muted searching")
        for name, one in self._fields.items():
            one.on_value_change(self._changed)
            if isinstance(one, ui.input):
                one.props(f"maxlength={TEXT_MAX}")
                fields.on_enter(one, partial(self._entered, name))
        self._none = ui.label().classes("state-text missing")
        self._empty = Empty(collector_of(self._client.url))
        with box("panel", "list") as self._panel:
            self._missing = ui.label().classes("muted note")
            self._rows = box("list-rows")
            with box("pages"):
                self._newer = fields.button("‹ Back", lambda: self._turn(-1))
                self._number = ui.label().classes("muted")
                self._older = fields.button("Next ›", lambda: self._turn(1))
        self._panel.set_visibility(False)

    async def find(self, status: Status) -> tuple[Status, Listed[Row]] | None:
        self._rounds += 1
        if self._shown is not None and self._rounds % ROUNDS_BETWEEN:
            return None
        asked = self._asked
        try:
            found = await self.search(status, asked)
        except OapRefusedError as reason:
            found = self._refused(reason)
        return (status, found) if asked == self._asked else None

    def _refused(self, reason: OapRefusedError) -> Listed[Row]:
        """The question may be at fault, so it is asked no more often than another."""
        said = f"The OAP cannot answer: {shown(str(reason).rstrip('.'), TEXT_CHARS_MAX)}."
        again = f"{said} Looking again every {ROUNDS_BETWEEN * REFRESH_S:g} s."
        if self._shown is None:
            return Listed((), (), False, refused=again)
        return replace(self._shown, refused=f"{again} What you see is the last it said.")

    def show(self, found: tuple[Status, Listed[Row]]) -> None:
        status, listed = found
        if listed == self._shown:
            return
        self._shown = listed
        self._searching.set_visibility(False)
        if listed.services:
            fields.offer(self._service, listed.services, self._asked.service)
        self._panel.set_visibility(bool(listed.rows))
        nobody = self._is_nobody_there(listed)
        self._empty.show(nobody)
        quiet = not listed.rows and not nobody
        self._none.set_text((listed.refused or self._why_none(listed)) if quiet else "")
        self._missing.set_text(listed.refused or listed.missing)
        self._rows.clear()
        with self._rows:
            self.lines(listed.rows, status)
        page, last = self._asked.page, self._asked.page == self._asked.pages_max()
        end = f", the last that can be had{'' if self._asked.trace_id else ': ask for less'}"
        self._number.set_text(f"page {page}{end if last and listed.more else ''}")
        self._newer.set_enabled(page > 1)
        self._older.set_enabled(listed.more and not last)

    def _is_nobody_there(self, listed: Listed[Row]) -> bool:
        """Whether no service has ever reported. Who looks for something in particular is told that
        it was not found."""
        for_anything = replace(self._asked, window=Window()) == type(self._asked)()
        return for_anything and not (listed.rows or listed.services or listed.refused)

    def _why_none(self, listed: Listed[Row]) -> str:
        """A search that gave up may have missed some: then its own advice is the one to follow."""
        if self._asked.page > 1:
            what, advice = "There are no more.", "Go back a page."
        else:
            what, advice = self.nothing(self._asked), self.advice(self._asked)
        return f"{what} But {listed.missing}." if listed.missing else f"{what} {advice}"

    def look_at(self, window: Window) -> None:
        super().look_at(window)
        self._ask({"window": window})

    def _turn(self, pages: int) -> None:
        self._ask({"page": self._asked.page + pages})

    def _changed(self) -> None:
        self._ask({name: _told(field) for name, field in self._fields.items()} | {"page": 1})

    def _entered(self, name: str, text: str) -> None:
        """At once, and anew also where nothing was changed: whoever presses Enter wants to see."""
        self._shown = None
        if not self._ask({name: text.strip()}):
            ui.timer(0, self.refresh, once=True)

    def _ask(self, changed: Mapping[str, Any]) -> bool:
        """Whether that is another question than before."""
        asked = replace(self._asked, **{"page": 1, **changed})
        if asked == self._asked:
            return False
        self._asked, self._shown = asked, None
        self._searching.set_visibility(True)
        told(asked.address())
        ui.timer(0, self.refresh, once=True)
        return True


def asked(kind: type[Asked], address: Mapping[str, str]) -> Asked:
    """The question of an address. What cannot be read is the usual: it may be cut or mistyped."""
    usual, found = kind(), dict[str, Any]()
    for name in usual.__dataclass_fields__:
        text = address.get(name, "")[:TEXT_MAX]
        if name in NUMBERS:
            found[name] = int(text) if _NUMBER.fullmatch(text) else getattr(usual, name)
        elif text and name != "window":
            found[name] = text
    window = Window.of(*(address.get(name, "") for name in ("last", "start", "end")))
    page = min(max(found["page"], 1), kind.pages_max())
    return replace(usual, **{**found, "page": page, "window": window})


def _told(field: Field) -> str | int | None:
    if isinstance(field, ui.number):
        return None if field.value is None else int(field.value)
    return str(field.value or "").strip()
