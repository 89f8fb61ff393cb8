"""How far every file has been read, to the line, across SIGKILL.

    the file `positions`, frames of `journal`
    S {"queue": "…", "next_key": n, "files": [row, …]}                  first, and only first
    F {"writing": n, "files": [row, …], "forgotten": [key, …]}          what is new or changed
    I an intent, see `intent`

An intent stands before its append. Only the queue knows whether it came true, and says so by how
many records it has: with all of the intent's, with none, or with some first ones. So an intent
needs no second write to confirm it, and if it came to nothing the next one has its sequence.

A queue that is not the one written down, the other having been removed, knows nothing. Then every
intent is taken for true that another frame follows, and the last for untrue: its lines may come
twice, none is missing.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from skyfarer.base.units import MIB
from skyfarer.queue.disk import Disk, make_directory
from skyfarer.satellite.contracts import Inlet
from skyfarer.satellite.fetchers.log.intent import Intent
from skyfarer.satellite.fetchers.log.journal import Journal
from skyfarer.satellite.fetchers.log.place import Place

log = logging.getLogger(__name__)

JOURNAL_BYTES_MAX: Final = 4 * MIB


class Positions:
    """One process, one thread. A call is one small write to a file, now and then a sync of it.

    What raises (RetryableError, PermanentError) may be repeated. Between `start` and `stop` the
    inlet must be started and nobody else may append to it.
    """

    def __init__(self, directory: Path, inlet: Inlet, disk: Disk | None = None) -> None:
        self.places: dict[int, Place] = {}
        self.fresh = True
        self._directory = directory
        self._inlet = inlet
        self._disk = disk or Disk()
        self._journal = Journal(directory / "positions", disk)
        self._next_key = 1
        self._started = False

    def start(self) -> None:
        """Settles what was left by what the queue has. `fresh`: there was nothing to go on from."""
        make_directory(self._disk, self._directory, durable=False)
        bodies = self._journal.read()
        self.fresh = not bodies
        self._restore(bodies)
        self._begin()
        self._started = True

    def stop(self) -> None:
        """Safe twice and unstarted. Nothing is lost if it fails or is not called."""
        if self._started:
            self._started = False
            self._begin()
        self._journal.close()

    def enroll(self, path: str, device: int, inode: int) -> Place:
        """A place for a file not known before; `note` writes it down."""
        place = Place(self._next_key, path, path, device, inode)
        self._next_key += 1
        self.places[place.key] = place
        return place

    def note(self, places: Iterable[Place] = (), forgotten: Iterable[Place] = ()) -> None:
        """Writes down all of these changes or, raising, none."""
        keys = [place.key for place in forgotten]
        rows = [place.row() for place in places]
        change = {"writing": self._inlet.writing, "files": rows, "forgotten": keys}
        self._journal.add(b"F" + json.dumps(change).encode())
        for key in keys:
            self.places.pop(key, None)

    def intend(self, intent: Intent) -> None:
        """Must have returned before the append is made."""
        if self._journal.size_bytes > JOURNAL_BYTES_MAX:
            self._begin()
        self._journal.add(b"I" + intent.encode())

    def settle(self, intent: Intent) -> int:
        """After the append, however it ended; how many of the records the queue has."""
        return intent.apply(self._inlet.writing, self.places)

    def _begin(self) -> None:
        rows = [place.row() for place in self.places.values()]
        whole = {"queue": self._inlet.queue_id, "next_key": self._next_key, "files": rows}
        self._journal.begin(b"S" + json.dumps(whole).encode())

    def _restore(self, bodies: list[bytes]) -> None:
        last: Intent | None = None
        for body in bodies:
            intent = Intent.decode(body[1:]) if body[:1] == b"I" else None
            change = json.loads(body[1:]) if intent is None else {}
            if last is not None:
                known = intent.sequence if intent is not None else change["writing"]
                last.apply(known, self.places)
            self._take(change)
            last = intent
        if last is not None:
            self._settle_last(last, json.loads(bodies[0][1:])["queue"])

    def _settle_last(self, last: Intent, queue_id: str) -> None:
        path, writing = self._journal.path, self._inlet.writing
        if queue_id != self._inlet.queue_id:
            log.warning("%s is of another queue: the lines read last may come twice", path)
            return
        if last.apply(writing, self.places) < writing - last.sequence:
            log.warning("%s: others append to this queue; lines may be lost or come twice", path)

    def _take(self, change: dict[str, Any]) -> None:
        for row in change.get("files", ()):
            self.places[row["key"]] = Place(**row)
        for key in change.get("forgotten", ()):
            self.places.pop(key, None)
        self._next_key = max(
            self._next_key, change.get("next_key", 0), *map(_after, self.places), 0
        )


def _after(key: int) -> int:
    return key + 1
