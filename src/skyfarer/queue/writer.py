"""The one writer of a directory."""

from __future__ import annotations

from collections.abc import Sequence

from skyfarer.base.errors import PermanentError, SkyfarerError
from skyfarer.queue.disk import Disk
from skyfarer.queue.errors import RecordTooLarge, disk_error
from skyfarer.queue.lock import DirectoryLock
from skyfarer.queue.meta import open_or_create_meta
from skyfarer.queue.places import Places
from skyfarer.queue.records import KIND_MAX
from skyfarer.queue.recovery import Recovered, recover
from skyfarer.queue.ring import Ring
from skyfarer.queue.segment import Segment, resumed_segment
from skyfarer.queue.settings import QueueSettings
from skyfarer.queue.split import split
from skyfarer.queue.state import State, open_state


class Writer:
    """One per directory, used by one thread at a time; `append` does short file work, never waits.

    A second writer, in this process or another, is refused at `start` with the owner's process id.
    Before `start` and after `stop`, `append` raises PermanentError and the numbers keep their
    value: `writing`, the next sequence and so the number of records ever accepted, and `oldest`,
    the first still held.
    """

    def __init__(self, settings: QueueSettings, disk: Disk | None = None) -> None:
        self.queue_id = ""
        self.writing = 0
        self.recovered: Recovered | None = None
        self._settings = settings
        self._geometry = settings.geometry
        self._record_bytes_max = settings.record_bytes_max
        self._disk = disk or Disk()
        self._lock = DirectoryLock(self._disk, settings.directory)
        self._oldest = 0
        self._places: Places | None = None
        self._state: State | None = None
        self._ring: Ring | None = None
        self._segment: Segment | None = None

    def start(self) -> None:
        """Makes the directory or recovers it. Started twice it stays started."""
        if self._ring is not None:
            return
        directory = self._settings.directory
        try:
            self._disk.make_directory(directory)
        except OSError as error:
            raise disk_error(error, directory, "create") from error
        self._lock.acquire()
        try:
            self._open()
        except BaseException:
            self.stop(0.0)
            raise

    def stop(self, timeout_s: float) -> None:
        """Every record is durable already, so there is nothing to drain."""
        self._close()
        self._lock.release()

    def append(self, kind: int, payloads: Sequence[bytes | memoryview]) -> int:
        """Keeps all payloads, or none and an error; returns the sequence of the first.

        On return they survive SIGKILL. QueueFull and other RetryableErrors (no disk space) may be
        tried again; RecordTooLarge and other PermanentErrors may not. The payloads are not kept
        by reference. A process killed inside the call leaves some first records of the batch,
        whole, or none.
        """
        lengths = list(map(len, payloads))
        sequence, segment, state = self.writing, self._segment, self._state
        if state is None or not 0 < kind <= KIND_MAX or not lengths:
            return self._nothing_kept(kind)
        if max(lengths) > self._record_bytes_max:
            raise self._too_large(max(lengths))
        count, total = len(lengths), sum(lengths)
        try:
            if segment is not None and count <= segment.slots_left and total <= segment.bytes_left:
                segment.place(sequence, kind, lengths, payloads, total)
                segment.enter()
            else:
                self._append_across(kind, lengths, payloads)
            self.writing = sequence + count
            state.publish_writing(self.writing)
        except SkyfarerError:
            raise
        except BaseException:
            self._reopen()
            raise
        return sequence

    @property
    def oldest(self) -> int:
        return self._state.oldest if self._state is not None else self._oldest

    @property
    def dropped(self) -> int:
        """Records overwritten before the consumer that lost most had them.

        Derived from the consumers' own counts and places, so it needs no counter that a crash
        could make wrong. It shrinks by records a consumer was still reading when their segment
        was given up, and delivered after all.
        """
        return self._places.dropped(self.oldest) if self._places is not None else 0

    def _append_across(
        self, kind: int, lengths: Sequence[int], payloads: Sequence[bytes | memoryview]
    ) -> None:
        """Fills the current segment and as many more as needed; enters nothing until all is
        placed, because placing can fail."""
        assert self._ring is not None
        current = self._segment
        slots, room = (current.slots_left, current.bytes_left) if current else (0, 0)
        parts = split(lengths, slots, room, self._geometry)
        targets = (current, *self._ring.reserve(len(parts) - 1))
        placed = []
        for segment, (begin, end, total) in zip(targets, parts, strict=True):
            if segment is not None and end > begin:
                some, sequence = slice(begin, end), self.writing + begin
                segment.place(sequence, kind, lengths[some], payloads[some], total)
                placed.append(segment)
        for segment in placed:
            if segment is not current:
                self._close_segment()
                self._ring.activate(segment)
                self._segment = segment
            segment.enter()

    def _reopen(self) -> None:
        """After an exception that is not ours, say of a signal handler, in the middle of an append:
        whatever it left is what a kill would have left, and recovery knows all of that."""
        self._close()
        self._open()

    def _open(self) -> None:
        disk, directory, geometry = self._disk, self._settings.directory, self._geometry
        meta = open_or_create_meta(disk, directory, geometry)
        self.queue_id = meta.queue_id.hex()
        self._places = Places(disk, directory, self._settings.consumers, meta.queue_id)
        self._state = state = open_state(disk, directory)
        shown = (state.oldest, state.writing) if state.belongs_to(meta.queue_id) else None
        found = recover(disk, directory, meta, shown, self._places.farthest())
        drop_oldest = self._settings.when_full == "drop_oldest"
        ring = Ring(directory, meta, disk, state, self._places.slowest, drop_oldest)
        ring.resume(found.live, found.next_number)
        self._places.make_missing(found.oldest)
        if found.tail is not None:
            self._segment = resumed_segment(disk, directory, meta, found.tail)
        state.show(meta.queue_id, found.oldest, found.writing)
        self.writing, self.recovered, self._ring = found.writing, found, ring

    def _close(self) -> None:
        self._close_segment()
        if self._ring is not None:
            self._ring.close()
            self._ring = None
        if self._state is not None:
            self._oldest = self._state.oldest
            self._state.close()
            self._state = None

    def _nothing_kept(self, kind: int) -> int:
        directory = self._settings.directory
        if self._state is None:
            raise PermanentError(f"{directory}: append before start or after stop")
        if not 0 < kind <= KIND_MAX:
            raise PermanentError(f"{directory}: a kind is between 1 and {KIND_MAX}, not {kind}")
        return self.writing

    def _too_large(self, length: int) -> RecordTooLarge:
        return RecordTooLarge(
            f"{self._settings.directory}: a record of {length} bytes is above record_bytes_max, "
            f"{self._record_bytes_max}"
        )

    def _close_segment(self) -> None:
        segment, self._segment = self._segment, None
        if segment is not None:
            segment.close()
