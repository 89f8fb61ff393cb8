"""The one writer of a directory."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from os import getpid, register_at_fork
from weakref import WeakSet

from skyfarer.base.errors import PermanentError, SkyfarerError
from skyfarer.queue.checksum import crc32c
from skyfarer.queue.disk import Disk, make_directory, sync_tree
from skyfarer.queue.durability import UNKNOWN, Appending, GroupCommit, SyncFailed
from skyfarer.queue.errors import RecordTooLarge
from skyfarer.queue.layout import SLOT_BYTES
from skyfarer.queue.lock import DirectoryLock
from skyfarer.queue.meta import open_or_create_meta
from skyfarer.queue.opening import resumed_segment
from skyfarer.queue.places import Places
from skyfarer.queue.records import KIND_MAX, pack_checked
from skyfarer.queue.recovery import Recovered, recover
from skyfarer.queue.ring import Patience, Ring
from skyfarer.queue.segment import Segment
from skyfarer.queue.settings import QueueSettings
from skyfarer.queue.split import split
from skyfarer.queue.state import State, open_state
from skyfarer.queue.wake import Waker

_log = logging.getLogger(__name__)
_started: WeakSet[Writer] = WeakSet()


def _nobody() -> None:
    """Listens to appends where no flusher does."""


def _disown() -> None:
    """In a forked child: what it inherited is its parent's. Asking for the process id with every
    append would cost a system call."""
    for writer in _started:
        writer.disown()


register_at_fork(after_in_child=_disown)


class Writer:
    """One per directory, used by one thread at a time, `sync` apart; `append` does short file work
    and waits only where the settings say so: for the disk ("fsync"), for consumers ("block").

    A second writer, in this process or another, is refused at `start` with the owner's process id.
    Before `start` and after `stop`, `append` raises PermanentError and the numbers keep their
    value: `writing`, the next sequence and so the number of records ever accepted, and `oldest`,
    the first still held.
    """

    def __init__(
        self,
        settings: QueueSettings,
        disk: Disk | None = None,
        patience: Patience | None = None,
    ) -> None:
        self.queue_id = ""
        self.writing = 0
        self.sync_failures = 0
        self.recovered: Recovered | None = None
        self._settings = settings
        self._geometry = settings.geometry
        self._record_bytes_max = settings.record_bytes_max
        self._disk = disk or Disk()
        self._lock = DirectoryLock(self._disk, settings.directory)
        self._oldest = 0
        self._places: Places | None = None
        self._state: State | None = None
        self._waker: Waker | None = None
        self._hear: Callable[[], None] = _nobody
        self._shown = self._sleeping = memoryview(b"")
        self._process = 0
        self._ring: Ring | None = None
        self._segment: Segment | None = None
        self._broken = False
        self._fsync = settings.durability == "fsync"
        self._put_bytes_max = -1 if self._fsync else settings.record_bytes_max
        self._patience = patience or Patience()
        self._commit = GroupCommit(self._disk, settings.directory, self._geometry)

    def start(self) -> None:
        """Makes the directory or recovers it. Started twice it stays started."""
        if self._ring is not None or self._broken:
            return
        make_directory(self._disk, self._settings.directory, self._fsync)
        self._lock.acquire()
        try:
            self._open()
        except BaseException:
            self.stop(0.0)
            raise

    def stop(self, timeout_s: float) -> None:
        """Every record is as durable as `append` promised, so there is nothing to drain."""
        self._close()
        self._broken = False
        self._lock.release()

    def append(self, kind: int, payloads: Sequence[bytes | memoryview]) -> int:
        """Keeps all payloads, or none and an error; returns the sequence of the first.

        On return they survive SIGKILL, under "fsync" a power cut as well: a batch is one group, so
        larger batches share the wait for the disk. QueueFull and other RetryableErrors (no disk
        space) may be tried again; RecordTooLarge and other PermanentErrors may not. The payloads
        are not kept by reference. Under "block" the call holds its thread, up to
        `block_timeout_s`, until a consumer has made room. A process killed inside the call leaves
        some first records of the batch, whole, or none.
        """
        sequence, segment = self.writing, self._segment
        try:
            if (
                segment is not None
                and len(payloads) == 1
                and 0 < kind <= KIND_MAX
                and (length := len(payload := payloads[0])) <= self._put_bytes_max
                and (end := (start := segment.start) + length) <= segment.limit
            ):
                # `Segment.place` and `enter` of one record, in the fewest steps. What is called is
                # local, since Python 3.11 looks for a called attribute among the methods each time.
                slot, at = segment.slot, segment.at
                pwrite, store = segment.pwrite, segment.store_entry
                try:
                    if pwrite(segment.fd, payload, segment.payload_offset + start) != length:
                        segment.write_whole(payload)
                except OSError as error:
                    raise segment.unwritten(error) from error
                if segment.before[slot] != segment.check:
                    raise segment.damaged()
                segment.crc = crc = crc32c(payload, segment.crc)
                checked = pack_checked(start, length, kind, crc)
                segment.check = check = crc32c(checked, segment.salt + slot)
                store(segment.index, at, checked, check)
                segment.slot, segment.at, segment.start = slot + 1, at + SLOT_BYTES, end
                if at >= segment.last_at:
                    segment.limit = -1
                count = 1
            else:
                if segment is None:
                    sequence = self._ready(kind)
                count = self._append(kind, payloads)
            self.writing = writing = sequence + count
            shown = self._shown  # `Waker.show`, in place: it spares a call
            shown[0] = shown[1] = writing
            if self._sleeping[0]:
                assert self._waker is not None
                self._waker.wake(writing)
        except SkyfarerError as error:
            if self._fsync and isinstance(error, SyncFailed):
                self._refuse(sequence)
            raise
        except BaseException:
            self._reopen()
            raise
        return sequence

    def sync(self) -> int:
        """Makes what was appended before the call survive a power cut; returns `durable`.

        For a server that appends at once and answers its agents in groups, with one wait for the
        disk per group. It may run in another thread while appends go on, and holds its own until
        the disk is done. A RetryableError means that `durable` has not moved and why; see
        `skyfarer.queue.durability`. Under "fsync" there is never anything to do.
        """
        self._check_owner("sync")
        ring, places = self._ring, self._places
        if ring is None or places is None:
            raise PermanentError(f"{self._settings.directory}: sync before start or after stop")
        try:
            if self._fsync:
                self._commit.check_suspects(self.writing, places.slowest)
                return self.writing
            return self._commit.sync(
                Appending(
                    lambda: self.writing, ring.newest, ring.numbers, places.slowest, self._distrust
                )
            )
        finally:
            with self._commit.turning:
                self._remember_suspects()

    def sync_places(self) -> None:
        """What consumers have committed before the call survives a power cut, too. From any
        thread, as `sync`; without a commit since the last call there is nothing to do."""
        if self._places is not None and self._ring is not None:
            self._places.make_new_durable()

    def listen(self, hear: Callable[[], None]) -> None:
        """`hear` is called from inside an append, which must not wait for it, whenever somebody
        slept; before `start` or after."""
        self._hear = hear

    def arm(self) -> None:
        """Has the next append call what listens, at no cost to any other. From any thread; a
        caller that looks at `writing` afterwards misses none."""
        with self._commit.turning:
            if self._waker is not None:
                self._waker.arm()

    @property
    def durable(self) -> int:
        """Every record below survives a power cut: the watermark up to which agents that ask for
        that may be answered. After a start without "fsync" it is 0 until the first `sync`, and with
        it for as long as records are wanted whose sync has failed before."""
        if not self._fsync:
            return self._commit.durable
        suspect_below, places = min(self._commit.suspect_below, self.writing), self._places
        if suspect_below and places is not None and places.slowest() < suspect_below:
            return 0
        return self.writing

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

    @property
    def used_bytes(self) -> int:
        """What the segments take that hold records some consumer still wants; 0 once stopped."""
        ring, places = self._ring, self._places
        if ring is None or places is None or places.slowest() >= self.writing:
            return 0
        return ring.segments_above(places.slowest()) * self._geometry.segment_bytes

    def disown(self) -> None:
        """Called in a forked child: from now on appends are refused. A thread that held a lock of
        the parent's is not here to give it back."""
        self._segment = None
        self._commit.disown()

    def _append(self, kind: int, payloads: Sequence[bytes | memoryview]) -> int:
        """Any batch, in any state; how many records it was."""
        segment = self._segment
        if not 0 < kind <= KIND_MAX:
            self._check(kind)
        lengths = list(map(len, payloads))
        if not lengths:
            return 0
        if max(lengths) > self._record_bytes_max:
            raise self._too_large(max(lengths))
        if segment is None or not segment.add(self.writing, kind, lengths, payloads, sum(lengths)):
            self._append_across(kind, lengths, payloads)
        return len(lengths)

    def _append_across(
        self, kind: int, lengths: Sequence[int], payloads: Sequence[bytes | memoryview]
    ) -> None:
        """Fills the current segment and as many more as needed; enters nothing until all is
        placed, because placing can fail."""
        assert self._ring is not None
        if self._commit.crowded:
            self.sync()
        current = self._segment
        slots, room = (current.slots_left, current.bytes_left) if current else (0, 0)
        parts = split(lengths, slots, room, self._geometry, self._fsync)
        targets = (current, *self._ring.reserve(len(parts) - 1))
        placed = []
        for segment, (begin, end, total) in zip(targets, parts, strict=True):
            if segment is not None and end > begin:
                some, sequence = slice(begin, end), self.writing + begin
                segment.place(sequence, kind, lengths[some], payloads[some], total)
                self._commit.touch(segment.number)
                placed.append(segment)
        with self._commit.turning:
            if current is None or not current.trusted:
                self._commit.left(self.writing + parts[0][1])
                self._remember_suspects()
            self._enter(self._ring, placed)

    def _enter(self, ring: Ring, placed: Sequence[Segment]) -> None:
        """Under "fsync" a segment is durable before the next has a header: a header vouches for
        every number below its `first`."""
        for segment in placed:
            if segment is not self._segment:
                self._close_segment()
                ring.activate(segment)
                self._segment = segment
            segment.enter()
            if self._fsync:
                segment.sync()

    def _refuse(self, sequence: int) -> None:
        """After a failed sync: the batch from `sequence` on was never there, and its segment is
        not trusted with another."""
        assert self._ring is not None
        self.sync_failures += 1
        self._close_segment()
        self._ring.take_back(sequence)

    def _distrust(self) -> None:
        """A sync of what was appended has failed, and nobody goes on to another segment now."""
        self.sync_failures += 1
        if self._ring is not None:
            self._ring.distrust()
        if (segment := self._segment) is not None:
            segment.distrust()
        self._remember_suspects()

    def _remember_suspects(self) -> None:
        """For the next writer. Whoever calls it holds `turning`, or is alone."""
        if self._state is not None:
            self._state.publish_suspect(self._commit.suspect_below)

    def _reopen(self) -> None:
        """After an exception that is not ours, say of a signal handler, in the middle of an append:
        whatever it left is what a kill would have left, and recovery knows all of that. Where that
        fails, the exception is still the one to tell; the next append tries once more."""
        self._commit.mend()
        self._close()
        self._broken = True
        try:
            self._open_or_close()
        except SkyfarerError as error:
            _log.error("cannot go on after an interrupted append: %s", error)

    def _ready(self, kind: int) -> int:
        """`writing` of a queue that may be appended to."""
        self._check(kind)
        if self._broken:
            self._open_or_close()
        return self.writing

    def _open_or_close(self) -> None:
        try:
            self._open()
        except BaseException:
            self._close()
            raise
        self._broken = False

    def _open(self) -> None:
        disk, directory, geometry = self._disk, self._settings.directory, self._geometry
        meta = open_or_create_meta(disk, directory, geometry)
        self.queue_id = meta.queue_id.hex()
        self._places = Places(disk, directory, self._settings.consumers, meta.queue_id)
        self._state = state = open_state(disk, directory)
        shown = (state.oldest, state.writing) if state.belongs_to(meta.queue_id) else None
        found = recover(disk, directory, meta, shown, self._places.known())
        ring = Ring(self._settings, meta, disk, state, self._places.slowest, self._patience)
        ring.resume(found.live, found.next_number)
        self._places.make_missing(found.oldest)
        if self._fsync:
            self._make_all_durable(state, self._places, ring, found)
        self._commit.resume(state.suspect if shown else 0, found.writing)
        if self._commit.suspect_below:
            ring.distrust()
        tail = found.tail
        if tail is not None and tail.extent.first >= self._commit.suspect_below:
            self._segment = resumed_segment(disk, directory, meta, tail, self._fsync)
        self._remember_suspects()
        state.show(meta.queue_id, found.oldest, found.writing)
        self.writing, self.recovered, self._ring = found.writing, found, ring
        self._commit.open()
        self._waker = Waker(disk, directory, state, lambda: self._hear())
        self._waker.show(found.writing)
        self._shown, self._sleeping = self._waker.shown, self._waker.sleeping
        self._process = getpid()
        _started.add(self)

    def _make_all_durable(self, state: State, places: Places, ring: Ring, found: Recovered) -> None:
        """What earlier writers only appended. Where that fails it is suspect: another start could
        sync the same files without an error, and without a byte."""
        directory, geometry = self._settings.directory, self._geometry
        files = [geometry.path(directory, number) for number in ring.numbers()]
        try:
            places.make_durable()
            sync_tree(self._disk, directory, [*files, directory / "state"])
        except SkyfarerError:
            state.publish_suspect(found.writing)
            state.show(bytes.fromhex(self.queue_id), found.oldest, found.writing)
            raise

    def _close(self) -> None:
        self._close_segment()
        with self._commit.turning:
            if not self._commit.close():
                self._commit.suspect_below = UNKNOWN
                self._remember_suspects()
            self._close_state()
            if self._waker is not None:
                self._waker.close()
                self._waker = None
        if self._ring is not None:
            self._ring.close()
            self._ring = None

    def _close_state(self) -> None:
        if self._state is not None:
            self._oldest = self._state.oldest
            self._state.close()
            self._state = None

    def _check_owner(self, doing: str) -> None:
        if self._process not in (0, getpid()):
            raise PermanentError(
                f"{self._settings.directory}: its writer is process {self._process}, of which this "
                f"is a fork; only the one that started it may {doing}"
            )

    def _check(self, kind: int) -> None:
        directory = self._settings.directory
        self._check_owner("append")
        if self._ring is None and not self._broken:
            raise PermanentError(f"{directory}: append before start or after stop")
        if not 0 < kind <= KIND_MAX:
            raise PermanentError(f"{directory}: a kind is between 1 and {KIND_MAX}, not {kind}")

    def _too_large(self, length: int) -> RecordTooLarge:
        return RecordTooLarge(
            f"{self._settings.directory}: a record of {length} bytes is above record_bytes_max, "
            f"{self._record_bytes_max}"
        )

    def _close_segment(self) -> None:
        segment, self._segment = self._segment, None
        if segment is not None:
            segment.close()
