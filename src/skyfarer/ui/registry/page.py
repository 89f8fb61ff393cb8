"""The page of the registry: a search, and a table of ids."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from nicegui import ui

from skyfarer.ui import fields
from skyfarer.ui.api import OapClient, Status
from skyfarer.ui.boxes import box
from skyfarer.ui.frame import Page, told
from skyfarer.ui.outside import TEXT_CHARS_MAX, shown
from skyfarer.ui.registry import api
from skyfarer.ui.registry.model import (
    KEYWORD_CHARS_MAX,
    KINDS,
    OWNED,
    PAGES_MAX,
    Entries,
    Entry,
    Lookup,
)
from skyfarer.ui.window import Window

ROUNDS_BETWEEN = 5
"""Refreshes of the page for one of the table."""
NOTHING = (
    "Nothing is registered. Agents of SkyWalking 6 and 7 are given ids here; newer ones send names,"
    " and are on the page Services."
)
NOTHING_FITS = "Nothing fits. Ask for less, or for another kind."


class RegistryPage(Page[tuple[Status, Entries]]):
    path = "/registry"

    def __init__(self, client: OapClient, lookup: Lookup, window: Window) -> None:
        super().__init__(client, window)
        self._lookup = lookup
        self._rounds = 0
        self._shown: Entries | None = None

    def body(self) -> None:
        with box("panel", "form"):
            self._kind = fields.choice("Kind", KINDS, self._lookup.kind)
            self._keyword = fields.text("Part of a name, or #id", self._lookup.keyword)
            self._keyword.props(f"maxlength={KEYWORD_CHARS_MAX}")
        for field in (self._kind, self._keyword):
            field.on_value_change(self._changed)
        self._none = ui.label().classes("state-text missing")
        with box("panel", "list") as self._panel:
            self._rows = box("list-rows", "registry-rows").props("role=table aria-label=Registry")
            with box("pages"):
                self._back = fields.button("‹ Back", lambda: self._turn(-1))
                self._number = ui.label().classes("muted")
                self._next = fields.button("Next ›", lambda: self._turn(1))
        self._panel.set_visibility(False)

    async def find(self, status: Status) -> tuple[Status, Entries] | None:
        self._rounds += 1
        if self._shown is not None and self._rounds % ROUNDS_BETWEEN:
            return None
        lookup = self._lookup
        found = await api.entries(self._client, lookup)
        return (status, found) if lookup == self._lookup else None

    def show(self, both: tuple[Status, Entries]) -> None:
        status, found = both
        if found == self._shown:
            return
        self._shown = found
        self._panel.set_visibility(bool(found.rows))
        self._none.set_text("" if found.rows else self._why_none())
        self._rows.clear()
        with self._rows:
            owned = self._lookup.kind in OWNED
            _heads(owned)
            for entry in found.rows:
                _line(entry, status, owned)
        page, last = self._lookup.page, self._lookup.page == PAGES_MAX
        end = ", the last that can be had: look for a part of a name"
        self._number.set_text(f"page {page}{end if last and found.more else ''}")
        self._back.set_enabled(page > 1)
        self._next.set_enabled(found.more and not last)

    def _why_none(self) -> str:
        if self._lookup.page > 1:
            return "There are no more. Go back a page."
        return NOTHING_FITS if self._lookup.keyword else NOTHING

    def _turn(self, pages: int) -> None:
        self._ask({"page": self._lookup.page + pages})

    def _changed(self) -> None:
        keyword = str(self._keyword.value or "").strip()[:KEYWORD_CHARS_MAX]
        self._ask({"kind": self._kind.value, "keyword": keyword, "page": 1})

    def _ask(self, changed: Mapping[str, Any]) -> None:
        lookup = replace(self._lookup, **changed)
        if lookup != self._lookup:
            self._lookup, self._shown = lookup, None
            told({**lookup.address(), **self._window.kept()})
            ui.timer(0, self.refresh, once=True)


def _heads(owned: bool) -> None:
    owner = ("service",) if owned else ()
    with _row(owned, "registry-heads", "muted"):
        for head in ("id", "name", *owner, "is", "registered", "last seen"):
            ui.label(head).props("role=columnheader")


def _row(owned: bool, *classes: str) -> ui.element:
    return box("registry-row", *(["owned"] if owned else []), *classes).props("role=row")


def _line(entry: Entry, status: Status, owned: bool) -> None:
    """The OAP has cut a name that is long, and says so in it."""
    cells = {
        "registry-id": str(entry.id),
        "registry-name": shown(entry.name, TEXT_CHARS_MAX),
        **({"registry-owner": shown(entry.owner)} if owned else {}),
        "registry-facts muted": shown(" · ".join(entry.facts)),
        "registry-time muted born": _when(entry.registered_ms, status),
        "registry-time muted seen": _when(entry.heartbeat_ms, status),
    }
    with _row(owned):
        for classes, text in cells.items():
            ui.label(text).classes(classes).props("role=cell")


def _when(time_ms: int, status: Status) -> str:
    """An agent may tell any time there is, and some that are none."""
    if time_ms <= 0:
        return "–"
    try:
        moment = datetime.fromtimestamp(time_ms / 1000, status.time.now.tzinfo)
    except (ValueError, OverflowError, OSError):
        return "–"
    return moment.strftime("%m-%d %H:%M:%S")
