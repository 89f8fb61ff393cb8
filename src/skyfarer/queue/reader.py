"""Reading a queue from any process, through maps, without a lock."""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Iterator
from pathlib import Path

from skyfarer.base.errors import PermanentError
from skyfarer.base.units import MIB
from skyfarer.queue.atlas import Atlas, MappedSegment
from skyfarer.queue.errors import disk_error
from skyfarer.queue.layout import SLOT_BYTES
from skyfarer.queue.meta import read_meta
from skyfarer.queue.records import ENTRY_WORDS, failures
from skyfarer.queue.run import CORRUPT, OVERFLOW, Run, lost
from skyfarer.queue.state import State, map_state
from skyfarer.queue.wake import LOOK_AGAIN_S, Sleeper


class Reader:
    """Any number of readers, each used by one thread at a time; they write no record and no place.

    `start` raises QueueMissing until the writer has started once. A reader outlives restarts of the
    writer. Runs stay readable after `stop`: their maps live as long as they do.
    """

    def __init__(
        self, directory: Path, segments_mapped_max: int = 2, look_again_s: float = LOOK_AGAIN_S
    ) -> None:
        self.queue_id = ""
        self._look_again_s = look_again_s
        self._directory = directory
        self._segments_mapped_max = segments_mapped_max
        self._starts = 0
        self._state: State | None = None
        self._atlas: Atlas | None = None
        self._sleeper: Sleeper | None = None

    def start(self) -> None:
        if self._state is not None:
            return
        meta = read_meta(self._directory)
        self._state = map_state(self._directory, meta.queue_id)
        self._atlas = Atlas(self._directory, meta, self._segments_mapped_max)
        self.queue_id = meta.queue_id.hex()

    def stop(self, timeout_s: float = 0.0) -> None:
        if self._state is not None:
            self._state.close()
        if self._sleeper is not None:
            self._sleeper.close()
        self._state = self._atlas = self._sleeper = None

    def writing(self) -> int:
        """The next sequence to be written; everything below it can be read."""
        return self._started()[0].writing

    def oldest(self) -> int:
        """The first sequence still held; `writing()` when none is."""
        return self._started()[0].oldest

    def wait(self, beyond: int, timeout_s: float) -> bool:
        """Blocks until `writing()` is above `beyond`; False when `timeout_s` passed before.

        Sleeps in the kernel: no CPU meanwhile, and awake within milliseconds of an append in any
        process. A timeout of 0 only looks.
        """
        deadline_s = time.monotonic() + timeout_s
        while self.writing() <= beyond:
            if time.monotonic() >= deadline_s:
                return False
            sleeper = self._sleeping()
            token = sleeper.token()
            if self.writing() <= beyond:
                sleeper.sleep(token, deadline_s)
        return True

    def runs(self, start: int, end: int, bytes_max: int = 64 * MIB) -> Iterator[Run]:
        """Runs that cover `start` to `end` (at most `writing()`) with no gap and no overlap.

        A run has at least one number, and ends with its segment or before `bytes_max` of payload.
        Every record is checked against its checksum. Numbers below `oldest()` come as one run of
        lost numbers with reason "overflow"; those of a segment that is gone, with "corrupt".
        Asking for the next run gives the resident memory of this one back, not its bytes.
        """
        state, _ = self._started()
        end = min(end, state.writing)
        while start < end:
            run, segment = self._next(start, end, bytes_max)
            try:
                yield run
            finally:
                if segment is not None:
                    segment.release_pages()
            start = run.end

    def unchecked(self, start: int, end: int) -> Iterator[tuple[int, memoryview, memoryview]]:
        """(first sequence, raw index entries, data as in `Run`) of what is held between the two, a
        segment at a time. Nothing is checked, and it ends where a segment is gone: this is for
        judging how much there is, not for reading it."""
        state, atlas = self._started()
        start, end = max(start, state.oldest), min(end, state.writing)
        while start < end:
            segment, beyond = self._find(atlas, start)
            if segment is None or start - segment.first >= segment.slots:
                return
            stop = min(end, beyond, segment.first + segment.slots)
            begin = start - segment.first
            index = segment.index[begin * SLOT_BYTES : (stop - segment.first) * SLOT_BYTES]
            yield start, index, segment.data
            start = stop

    def _next(self, start: int, end: int, bytes_max: int) -> tuple[Run, MappedSegment | None]:
        """Bad news is believed at the second look only, with a fresh picture of the directory. A
        segment being reused is no news at all: `oldest` moved before its bytes did."""
        state, atlas = self._started()
        if state.starts != self._starts:
            self._starts = state.starts
            atlas.forget()
        if start >= state.oldest:
            run, segment = self._look(atlas, start, end, bytes_max)
            if not run.damaged and segment is not None and segment.unchanged():
                return run, segment
            atlas.forget()
            run, segment = self._look(atlas, start, end, bytes_max)
        if start < state.oldest:
            return lost(start, min(end, state.oldest), OVERFLOW), None
        return run, segment

    def _look(
        self, atlas: Atlas, start: int, end: int, bytes_max: int
    ) -> tuple[Run, MappedSegment | None]:
        segment, beyond = self._find(atlas, start)
        end = min(end, beyond)
        if segment is None or start - segment.first >= segment.slots:
            return lost(start, end, CORRUPT), None
        return _checked(segment, start, end, bytes_max), segment

    def _find(self, atlas: Atlas, sequence: int) -> tuple[MappedSegment | None, int]:
        try:
            return atlas.find(sequence)
        except OSError as error:
            raise disk_error(error, self._directory, "read segments in") from error

    def _sleeping(self) -> Sleeper:
        if self._sleeper is None:
            self._sleeper = Sleeper(self._directory, self._look_again_s)
        return self._sleeper

    def _started(self) -> tuple[State, Atlas]:
        if self._state is None or self._atlas is None:
            raise PermanentError(f"{self._directory}: read before start or after stop")
        return self._state, self._atlas


def _checked(segment: MappedSegment, start: int, end: int, bytes_max: int) -> Run:
    begin = start - segment.first
    stop = min(end - segment.first, segment.slots)
    if len(segment.data) > bytes_max:
        words = segment.index.cast("I")
        limit = words[ENTRY_WORDS * begin] + bytes_max
        slots = range(begin + 1, stop)
        stop = begin + 1 + bisect_right(slots, limit, key=lambda slot: _end(words, slot))
    damaged = failures(segment.salt, begin, stop, segment.index, segment.data)
    index = segment.index[begin * SLOT_BYTES : stop * SLOT_BYTES]
    return Run(start, stop - begin, index, segment.data, tuple(map(segment.first.__add__, damaged)))


def _end(words: memoryview, slot: int) -> int:
    return int(words[ENTRY_WORDS * slot] + words[ENTRY_WORDS * slot + 1])
