"""Whether this process is fit to work, part by part.

The score is the original's: -1 until the program has started, then the number of unhealthy parts,
so 0 is healthy. It is what `checkHealth` of the query protocol and `/healthcheck` answer.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import Final

NOT_STARTED: Final = -1


class Health:
    """Never blocks; any thread. A part is unknown, and so counts for nothing, until it is set."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._unhealthy: dict[str, str] = {}
        self._ailments: dict[str, Callable[[], str]] = {}
        self._started = False

    def started(self) -> None:
        """All parts run; from now on the score speaks of them."""
        self._started = True

    def set(self, part: str, healthy: bool, detail: str = "") -> None:
        with self._lock:
            if healthy:
                self._unhealthy.pop(part, None)
            else:
                self._unhealthy[part] = detail

    def ask(self, part: str, ailment: Callable[[], str]) -> None:
        """From now on `ailment` is called whenever the health is asked for, and says what is wrong
        with that part, or nothing: for what goes wrong without anybody to say so. It may neither
        block nor raise."""
        with self._lock:
            self._ailments[part] = ailment

    def score(self) -> int:
        return len(self._found()) if self._started else NOT_STARTED

    def details(self) -> str:
        """The unhealthy parts by name with what they said; empty when all is well."""
        parts = sorted(self._found().items())
        return "; ".join(f"{part}: {detail}" if detail else part for part, detail in parts)

    def _found(self) -> dict[str, str]:
        with self._lock:
            found, asked = dict(self._unhealthy), dict(self._ailments)
        said = ((part, ailment()) for part, ailment in asked.items())
        return found | {part: detail for part, detail in said if detail}
