"""What is meant where nothing is said; light, since every command's help needs it."""

from __future__ import annotations

from typing import Final

URL: Final = "http://127.0.0.1:12800"
LAST: Final = "30m"
