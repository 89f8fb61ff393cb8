"""Fields of a form."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from nicegui import ui

from skyfarer.ui.outside import shown

ALL_SERVICES = "All services"
Field = ui.input | ui.select | ui.number
_OPTIONS_ALONE = """() => setTimeout(() => {
  for (const inner of document.querySelectorAll(".q-virtual-scroll__content")) {
    inner.removeAttribute("tabindex");
  }
})"""
"""A list of options may hold nothing else that can have the focus: Quasar's scrolling part has it
for no use of ours."""

_WHAT_STANDS_THERE = "(event) => emit(event.target.value)"


def choice(label: str, options: Mapping[str, str], value: str) -> ui.select:
    """A value that is none of the options, as an address may have it, is the first."""
    chosen = value if value in options else next(iter(options))
    field = ui.select(_shown(options), value=chosen, label=label)
    field.on("popup-show", js_handler=_OPTIONS_ALONE)
    return field.props("dense outlined options-dense").classes("field")


def services(value: str) -> ui.select:
    return choice("Service", {"": ALL_SERVICES} | ({value: value} if value else {}), value)


def offer(field: ui.select, names: Sequence[str], chosen: str) -> None:
    """The services there are, in place of those that were; the chosen one stays, there or not."""
    known = dict.fromkeys((*names, *([chosen] if chosen else ())))
    options = {"": ALL_SERVICES} | _shown({name: name for name in known})
    if options != field.options:
        field.set_options(options, value=chosen)


def _shown(options: Mapping[str, str]) -> dict[str, str]:
    return {value: shown(text) for value, text in options.items()}


def number(label: str, value: int | None) -> ui.number:
    field = ui.number(label, value=value, min=0, precision=0)
    return field.props("dense outlined debounce=500").classes("field field-short")


def text(label: str, value: str, hint: str = "") -> ui.input:
    field = ui.input(label, value=value, placeholder=hint)
    return field.props("dense outlined debounce=500").classes("field field-long")


def on_enter(field: ui.input, entered: Callable[[str], object]) -> None:
    """Called with what stands there, which the server may not have been told yet."""
    field.on("keydown.enter", lambda event: entered(str(event.args)), js_handler=_WHAT_STANDS_THERE)


def button(label: str, clicked: Callable[[], None]) -> ui.button:
    return ui.button(label, on_click=clicked).props("flat dense no-caps")


def pairs(tags: str) -> list[tuple[str, str]]:
    """`key=value, key=value`; a word without `=` is none."""
    words = (word.strip().partition("=") for word in tags.split(","))
    return [(key, value) for key, separator, value in words if key and separator]
