"""Text from outside: what agents sent, and what stands in an address.

NiceGUI puts a label's text into the page as text, whatever is in it. Two things are left to see to.
A text may be long: a page gets a part of it and says how much is missing. And some characters are
not seen, or turn around the text beside them, so that a name looks like another: they are spelt.

Must never: be called for a text that is looked for or linked to, which stays as it came.
"""

from __future__ import annotations

import re
from typing import Final

from nicegui import ui

from skyfarer.ui import whole_texts

NAME_CHARS_MAX: Final = 200
TEXT_CHARS_MAX: Final = 2_000
SCROLLED_CHARS: Final = 300
SCROLLED_LINES: Final = 8
"""From here on a text may not fit into its box."""
_CONTROL_PICTURES = 0x2400
_UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def shown(text: str, chars_max: int = NAME_CHARS_MAX) -> str:
    part = _UNSEEN.sub(_spelt, text[:chars_max])
    more = len(text) - chars_max
    return part if more <= 0 else f"{part}… ({more:,} characters more)"


def long_text(text: str, *classes: str) -> None:
    """Drawn where it is called; a click fetches the whole of one that is cut."""
    label = ui.label(shown(text, TEXT_CHARS_MAX)).classes(" ".join(classes))
    if len(text) > SCROLLED_CHARS or text.count("\n") > SCROLLED_LINES:
        label.props("tabindex=0")  # who scrolls by keyboard has to get there
    if len(text) > TEXT_CHARS_MAX:
        whole = ui.button("Whole text", on_click=lambda: whole_texts.save(text))
        whole.props("flat dense no-caps").classes("whole-text")


def _spelt(found: re.Match[str]) -> str:
    code = ord(found[0])
    return chr(_CONTROL_PICTURES + code) if code < 0x20 else f"<U+{code:04X}>"
