"""Which files there are to read: a collector for each, through renaming, cutting and deleting.

    found under its path       it may have grown, or been cut: then it begins again, and the copy
                               made of it before, if one is found, is read from where it was
    found under another name   it was rotated; who has its old name now is its heir
    not found                  open, it is read on; closed, it is looked for beside its old name
    found and not known        new; unless it looks like a copy being made of a file that is read,
                               whose lines would come twice: then it is left alone for a while

A collector that has an heir is read first, and what it leaves unfinished the heir takes over.
"""

from __future__ import annotations

import logging
import os
from contextlib import suppress
from typing import Final

from skyfarer.satellite.fetchers.log.collector import (
    Collector,
    Patience,
    Rewritten,
)
from skyfarer.satellite.fetchers.log.config import LogFetcherConfig
from skyfarer.satellite.fetchers.log.place import Place
from skyfarer.satellite.fetchers.log.positions import Positions
from skyfarer.satellite.fetchers.log.sighting import (
    FileId,
    Sighting,
    beside,
    excluding,
    is_becoming_copy,
    is_copy,
    leads_to,
    line_start,
    original_names,
    sightings,
)
from skyfarer.satellite.fetchers.log.splitting import Splitting
from skyfarer.satellite.notation import seconds
from skyfarer.telemetry import table
from skyfarer.telemetry.metrics import Registry

log = logging.getLogger(__name__)

FORGET_AFTER_S: Final = 3600.0


class Roster:
    """Event loop only. `survey` reads directories and asks for a status per file."""

    def __init__(self, config: LogFetcherConfig, positions: Positions, registry: Registry) -> None:
        self.collectors: dict[FileId, Collector] = {}
        self._config = config
        self._positions = positions
        self._registry = registry
        self._excluded = excluding(config.exclude)
        self._splitting = Splitting(config)
        event_s = seconds(config.multiline.timeout) if config.multiline else None
        self._patience = Patience(event_s, seconds(config.close_after))
        self._held: dict[FileId, tuple[int, float]] = {}
        self._vacated: dict[str, Collector] = {}
        self._changed: list[Place] = []
        self._forgotten: list[Place] = []
        self._too_many = False
        self._first = True

    def start(self, now_s: float) -> None:
        """The files that were read before, after `Positions.start`."""
        places = self._positions.places
        made = {key: self._collect(place, now_s) for key, place in places.items()}
        for collector in made.values():
            heir = made.get(collector.place.heir)
            if heir is not None and heir is not collector:
                collector.heir, heir.before = heir, collector

    def stop(self) -> None:
        for collector in self.collectors.values():
            collector.close()

    def survey(self, now_s: float) -> None:
        found = self._found()
        for collector in list(self.collectors.values()):
            collector.stalled = False
            sighting = found.pop(collector.place.file_id, None)
            if sighting is None:
                self._missed(collector, now_s)
            else:
                self._met(collector, sighting, now_s)
        if found:
            self._greet_all(found, now_s)
        self._held = {key: held for key, held in self._held.items() if key in found}
        self._first = False
        self.write_down()

    def write_down(self) -> None:
        """What changed since the last time; kept for the next when it cannot be written."""
        if self._changed or self._forgotten:
            self._positions.note(self._changed, self._forgotten)
            self._changed, self._forgotten = [], []

    def learn(self, collector: Collector) -> None:
        """More of its first bytes, by which to know it again; its file open."""
        if collector.fd is not None and collector.place.learn_head(collector.fd):
            self._changed.append(collector.place)

    def unread_bytes(self) -> int:
        return sum(collector.unread_bytes for collector in self.collectors.values())

    def due(self, now_s: float) -> list[Collector]:
        return [collector for collector in self.collectors.values() if collector.due(now_s)]

    def ready(self, collector: Collector) -> bool:
        """Opens its file, closing the one read longest ago if there are too many. False if there is
        nothing to open; the next survey knows why."""
        if collector.fd is not None:
            return True
        opened = [one for one in self.collectors.values() if one.fd is not None]
        if len(opened) >= self._config.max_open_files:
            for spare in [one for one in opened if one.present and one is not collector.before][:1]:
                spare.close()
        try:
            collector.open()
        except OSError as error:
            self.failed(collector, error)
            return False
        collector.troubled = False
        return True

    def failed(self, collector: Collector, error: OSError) -> None:
        """It is tried again after the next survey."""
        if collector.fails(error):
            log.error("%s cannot be read: %s", collector.place.path, error.strerror)

    def rewritten(self, collector: Collector, now_s: float) -> None:
        """The file was cut off, or is another by now: from its beginning."""
        place = collector.place
        self._registry.inc(table.GATHERER_LOG_ROTATIONS, how="truncated")
        copies = [
            one
            for one in (*beside(place.path), *beside(place.origin))
            if one.file_id not in self.collectors and is_copy(place, one)
        ]
        newest = max(copies, key=lambda one: one.changed_ns, default=None)
        if newest is not None:
            collector.before = self._copy(collector, newest, now_s)
        else:
            log.warning("%s was cut off, no copy of it found: what was unread is lost", place.path)
        collector.restart()
        collector.grew_s = now_s
        self._changed.append(place)

    def _copy(self, collector: Collector, sighting: Sighting, now_s: float) -> Collector:
        mine = collector.place
        place = self._positions.enroll(sighting.path, *sighting.file_id)
        place.origin, place.offset, place.before_crc = mine.origin, mine.offset, mine.before_crc
        place.head_bytes, place.head_crc = mine.head_bytes, mine.head_crc
        place.left, place.torn, place.heir = True, True, mine.key
        self._changed.append(place)
        copy = self._collect(place, now_s)
        copy.size, copy.heir = sighting.size, collector
        with suppress(Rewritten):
            self.ready(copy)
        return copy

    def _found(self) -> dict[FileId, Sighting]:
        found: dict[FileId, Sighting] = {}
        room, left_out = self._config.max_files - len(self.collectors), 0
        for sighting in sightings(self._config.paths, self._excluded):
            if sighting.file_id not in self.collectors:
                room -= 1
                if room < 0:
                    left_out += 1
                    continue
            found[sighting.file_id] = sighting
        if bool(left_out) != self._too_many and left_out:
            log.error("%d files are not read: max_files is %d", left_out, self._config.max_files)
        self._too_many = bool(left_out)
        return found

    def _collect(self, place: Place, now_s: float) -> Collector:
        config = self._config
        collector = Collector(place, self._splitting, self._patience, config.max_bytes, now_s)
        self.collectors[place.file_id] = collector
        return collector

    def _greet_all(self, found: dict[FileId, Sighting], now_s: float) -> None:
        """Those written to longest ago first: that is the order they will be read in."""
        named: dict[str, list[Collector]] = {}
        for one in self.collectors.values():
            for path in {one.place.path, one.place.origin}:
                named.setdefault(path, []).append(one)
        sizes = {one.place.path: one.size for one in self.collectors.values() if one.present}
        sizes |= {one.path: one.size for one in found.values()}
        for sighting in sorted(found.values(), key=lambda one: one.changed_ns):
            names = list(original_names(sighting.path))
            self._check([one for name in names for one in named.get(name, ())], now_s)
            if sighting.file_id not in self.collectors:
                originals = [(name, sizes[name]) for name in names if name in sizes]
                if not self._might_be_copy(sighting, originals, now_s):
                    self._greet(sighting, now_s)

    def _check(self, collectors: list[Collector], now_s: float) -> None:
        """One may have been cut off without being shorter than it was; then its copy is here."""
        for collector in collectors:
            if not collector.is_itself():
                self.rewritten(collector, now_s)

    def _greet(self, sighting: Sighting, now_s: float) -> None:
        place = self._positions.enroll(sighting.path, *sighting.file_id)
        if self._first and self._positions.fresh and self._config.start_at == "end":
            place.offset = line_start(sighting)
        self._changed.append(place)
        collector = self._collect(place, now_s)
        collector.saw(sighting.size, now_s)
        self._inherit(collector)

    def _might_be_copy(
        self, sighting: Sighting, originals: list[tuple[str, int]], now_s: float
    ) -> bool:
        """Whether it may be the copy, perhaps unfinished, of a file that is read or will be. So it
        is only for a while: the copy of a file that is not cut off is a file of its own."""
        size, since_s = self._held.get(sighting.file_id, (-1, now_s))
        since_s = since_s if size == sighting.size else now_s
        self._held[sighting.file_id] = sighting.size, since_s
        if now_s - since_s >= self._patience.file_s:
            return False
        return any(is_becoming_copy(*original, sighting) for original in originals)

    def _inherit(self, heir: Collector) -> None:
        """A new file goes on where the one ended whose name it has."""
        old = self._vacated.pop(heir.place.path, None)
        if old is not None:
            heir.before, old.heir = old, heir
            old.place.heir = heir.place.key
            self._changed.append(old.place)

    def _met(self, collector: Collector, sighting: Sighting, now_s: float) -> None:
        place = collector.place
        if sighting.path != place.path and not leads_to(place.path, place.file_id):
            self._leave(collector, "renamed", now_s)
            place.path = sighting.path
        elif place.left and sighting.path == place.origin:
            collector.left_s, place.left = None, False
            self._changed.append(place)
        collector.present = True
        collector.saw(sighting.size, now_s)
        if collector.was_cut:
            self.rewritten(collector, now_s)
        if collector.ended(now_s):
            self._let_go(collector)

    def _missed(self, collector: Collector, now_s: float) -> None:
        if collector.present:
            collector.present = False
            self._leave(collector, "gone", now_s)
            self._find(collector, now_s)
        if collector.fd is not None:
            status = os.fstat(collector.fd)
            collector.saw(status.st_size, now_s)
            if collector.was_cut:
                self.rewritten(collector, now_s)
            if collector.ended(now_s):
                self._let_go(collector)
        left_s = collector.left_s if collector.left_s is not None else now_s
        if collector.fd is None and now_s - left_s >= FORGET_AFTER_S:
            self._forget(collector)

    def _leave(self, collector: Collector, how: str, now_s: float) -> None:
        if collector.left_s is None:
            collector.left_s, collector.place.left = now_s, True
            self._registry.inc(table.GATHERER_LOG_ROTATIONS, how=how)
        self._vacated[collector.place.path] = collector
        self._changed.append(collector.place)

    def _find(self, collector: Collector, now_s: float) -> None:
        """Its name beside the old one, if it has to be opened."""
        place = collector.place
        for sighting in beside(place.path):
            if sighting.file_id == place.file_id:
                place.path = sighting.path
                collector.saw(sighting.size, now_s)
                self._changed.append(place)
        if collector.fd is None:
            try:
                self.ready(collector)
            except Rewritten:
                self.rewritten(collector, now_s)
        if collector.fd is None and collector.unread_bytes:
            log.error("%s is gone with %d bytes unread", place.path, collector.unread_bytes)
            collector.size = place.offset

    def _let_go(self, collector: Collector) -> None:
        """Nothing more will come of it. Deleted, its inode may soon be another file's."""
        if collector.fd is not None and not os.fstat(collector.fd).st_nlink:
            self._forget(collector)
        else:
            self._unlink(collector)

    def _forget(self, collector: Collector) -> None:
        self._unlink(collector)
        del self.collectors[collector.place.file_id]
        self._forgotten.append(collector.place)

    def _unlink(self, collector: Collector) -> None:
        collector.close()
        self._vacated = {path: one for path, one in self._vacated.items() if one is not collector}
        heir, collector.heir = collector.heir, None
        if heir is not None:
            heir.before, collector.place.heir = None, 0
            self._changed.append(collector.place)
