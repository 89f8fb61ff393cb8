"""The main process's end of a receiver's standard input."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from typing import IO, Any


class Replies:
    """Lines to one receiver, whole each, from any thread; they block while it does not read.

    One that is gone gets nothing, and nobody is told: whoever waited for it has gone with it.
    """

    def __init__(self, pipe: IO[str]) -> None:
        self._pipe = pipe
        self._lock = threading.Lock()
        self._gone = False

    def say(self, message: Mapping[str, Any]) -> None:
        self.write(json.dumps(message))

    def write(self, line: str) -> None:
        with self._lock:
            if self._gone:
                return
            try:
                self._pipe.write(line + "\n")
                self._pipe.flush()
            except OSError:
                self._gone = True

    def close(self, timeout_s: float) -> None:
        """Tells it to end; one that has not read for so long cannot be told. Safe twice."""
        if not self._lock.acquire(timeout=timeout_s):
            return
        try:
            self._gone = True
            self._pipe.close()
        except OSError:
            return  # the receiver is gone, and what was left to write with it
        finally:
            self._lock.release()
