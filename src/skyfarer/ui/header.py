"""The top of a page: product, the pages there are, the ledger, server time, and its buttons."""

from __future__ import annotations

from collections.abc import Callable

from nicegui import ui

from skyfarer.ui.api import Status
from skyfarer.ui.boxes import box
from skyfarer.ui.keys import OPEN_HELP, keys
from skyfarer.ui.links import link
from skyfarer.ui.marks import KEYS, LOGO, PAUSE, THEME
from skyfarer.ui.model import Ledger, count_text
from skyfarer.ui.window import Window

PLACES = {
    "/": ("Services", "s"),
    "/map": ("Map", "m"),
    "/traces": ("Traces", "t"),
    "/logs": ("Logs", "l"),
    "/pipeline": ("Pipeline", "p"),
    "/registry": ("Registry", "r"),
}
"""Each with its name, and the letter that leads to it after a g."""

_TOGGLE_THEME = """() => {
  const dark = !document.body.classList.contains("body--dark");
  setDark(dark);
  localStorage.setItem("skyfarer-theme", dark ? "dark" : "light");
  if (document.querySelector("canvas")) location.reload();
}"""
"""What is drawn has the colours of when it was drawn."""

REMEMBERED_THEME = """
const theme = localStorage.getItem("skyfarer-theme");
if (theme !== null) setDark(theme === "dark");
"""


def name_of(path: str) -> str:
    """Of a page, also of one that the top does not lead to."""
    return PLACES[path][0] if path in PLACES else path.strip("/").capitalize()


class Header:
    """`path` is the page that it stands on. `refreshing` is called with whether the page is to
    refresh by itself, which it does until then. Made in the layout, it stands before the page's
    main part, not in it. Its links keep the time of `window`."""

    def __init__(self, path: str, refreshing: Callable[[bool], object], window: Window) -> None:
        self._refreshing = refreshing
        self._paused = False
        self._ways: dict[str, ui.link] = {}
        with box("top", tag="header") as top:
            with box("brand"):
                ui.html(LOGO, sanitize=False).classes("logo")
                ui.label("Skyfarer").classes("brand-name")
            with box("places", tag="nav").props('aria-label="Pages"'):
                for place, (name, key) in PLACES.items():
                    here = place == path
                    way = ui.link(name, place).classes("place here" if here else "place")
                    way.props(f"aria-current={'page' if here else 'false'} data-key={key}")
                    self._ways[place] = way
            self._ledger = _LedgerLine()
            with box("top-right"):
                self._pulse = box("pulse", "live")
                self._time = ui.label("connecting").classes("muted time")
                self._button = _button("refreshing", PAUSE, "Auto-refresh")
                self._button.props("aria-pressed=true").on("click", self._toggle)
                _button("keys", KEYS, "Keys").on("click", js_handler=OPEN_HELP)
                _button("theme", THEME, "Light or dark").on("click", js_handler=_TOGGLE_THEME)
        top.move(target_index=0)
        self.keep(window)
        keys({key: name for name, key in PLACES.values()})

    def keep(self, window: Window) -> None:
        """In its links, from now on."""
        for place, way in self._ways.items():
            way.props["href"] = link(place, window)

    def show(self, status: Status) -> None:
        self._time.set_text(status.time.now.strftime("%H:%M:%S %z"))
        self._ledger.show(status.ledger)

    def _toggle(self) -> None:
        self._paused = not self._paused
        self._button.props(f"aria-pressed={'false' if self._paused else 'true'}")
        for one in (self._button, self._pulse):
            one.classes(
                add="paused" if self._paused else "", remove="" if self._paused else "paused"
            )
        self._refreshing(not self._paused)

    def here(self) -> None:
        self._pulse.classes(remove="away")

    def away(self) -> None:
        self._pulse.classes(add="away")


def _button(name: str, drawn: str, label: str) -> ui.element:
    with box(name, "mark-button", tag="button") as button:
        ui.html(drawn, sanitize=False)
    return button.props(f'type=button aria-label="{label}" title="{label}"')


class _LedgerLine:
    """accepted = delivered + queued + dropped, with the four numbers in it."""

    def __init__(self) -> None:
        with box("ledger").props('title="Every record that was ever accepted"') as self._box:
            self._accepted = _term("accepted")
            ui.label("=").classes("muted")
            self._delivered = _term("delivered")
            ui.label("+").classes("muted")
            self._queued = _term("queued")
            ui.label("+").classes("muted")
            self._dropped = _term("dropped")
            self._verdict = ui.label().classes("chip verdict")
        self._box.set_visibility(False)

    def show(self, ledger: Ledger | None) -> None:
        self._box.set_visibility(ledger is not None)
        if ledger is None:
            return
        self._accepted.set_text(count_text(ledger.accepted))
        self._delivered.set_text(count_text(ledger.delivered))
        self._queued.set_text(count_text(ledger.queued))
        self._dropped.set_text(count_text(ledger.dropped))
        self._verdict.set_text("balanced" if ledger.balanced else "does not balance")
        self._verdict.classes(remove="chip-good chip-failing")
        self._verdict.classes(add="chip-good" if ledger.balanced else "chip-failing")


def _term(name: str) -> ui.label:
    with box("term"):
        number = ui.label().classes("term-number")
        ui.label(name).classes("muted")
    return number
