"""What a provider of storage may be unable to do. It says so by name, and does all the rest."""

from __future__ import annotations

from enum import Enum
from typing import Protocol


class Capability(Enum):
    SEVERAL_NODES = "several nodes write to one storage, and read from it, at once"
    ANY_CHARACTER = "a text is read as it was stored, with U+0000 in it too"


class Limited(Protocol):
    """From any thread, unstarted too: it never changes."""

    @property
    def lacks(self) -> frozenset[Capability]:
        """Who needs one of these looks for another provider, or is told that it must do without."""
