"""Which segments hold records, which are free, and what gives way when none is."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from skyfarer.base.clock import Clock, SystemClock
from skyfarer.queue.checkpoint import make_durable
from skyfarer.queue.disk import Disk, sync_directory, sync_file
from skyfarer.queue.errors import QueueFull, RecordTooLarge, disk_error
from skyfarer.queue.layout import Extent
from skyfarer.queue.meta import Meta
from skyfarer.queue.opening import free_segment
from skyfarer.queue.recovery import cut_entries
from skyfarer.queue.segment import Segment
from skyfarer.queue.settings import QueueSettings
from skyfarer.queue.state import State

BLOCK_RETRY_S: Final = 0.002


@dataclass(frozen=True, slots=True)
class Patience:
    """How "block" waits. It sleeps between looks because commits are plain writes of other
    processes, and a producer behind a full queue is late already."""

    clock: Clock = field(default_factory=SystemClock)
    sleep: Callable[[float], None] = time.sleep


class Ring:
    """`live` is in order, oldest first. `_spare` are wiped segments numbered to come next.

    `_used_slots`, by number: how much of its index a segment had that gave way, and was this
    writer's own from the first record to the last: the rest of it is zero, and need not be wiped.

    `_settled` is how far all consumers were when last looked at, under "fsync" durably: commits do
    not go back, so several segments may give way to one look.
    """

    def __init__(
        self,
        settings: QueueSettings,
        meta: Meta,
        disk: Disk,
        state: State,
        committed: Callable[[], int],
        patience: Patience,
    ) -> None:
        self._directory = settings.directory
        self._consumers = settings.consumers
        self._durable = settings.durability == "fsync"
        self._meta = meta
        self._geometry = meta.geometry
        self._disk = disk
        self._state = state
        self._committed = committed
        self._patience = patience
        self._block_timeout_s = settings.block_timeout_s if settings.when_full == "block" else 0.0
        self._drop_oldest = settings.when_full == "drop_oldest"
        self._next_number = self._trusted_from = self._own_from = 0
        self._settled = 0
        self.live: deque[Extent] = deque()
        self._spare: deque[Segment] = deque()
        self._used_slots: dict[int, int] = {}
        self._paths: dict[int, Path] = {}

    def resume(self, live: list[Extent], next_number: int) -> None:
        self.live = deque(live)
        self._next_number = self._own_from = next_number

    def segments_above(self, committed: int) -> int:
        """How many hold a record that is not committed."""
        ends = [extent.first for extent in self.live][1:]
        return len(self.live) - sum(1 for end in ends if end <= committed)

    def reserve(self, wanted: int) -> list[Segment]:
        """The next `wanted` segments, free and numbered; those not used stay reserved.

        A segment gives way when every consumer has committed it, and its file is wiped and reused.
        Under "drop_oldest" it gives way regardless; then its file is unlinked and a new one made,
        so that a consumer still reading the old one through its map keeps whole records. QueueFull
        and RecordTooLarge come before anything is given up.
        """
        if wanted >= self._geometry.segments:
            raise RecordTooLarge(
                f"the batch needs {wanted} more segments, the queue in {self._directory} "
                f"has {self._geometry.segments} in all; send smaller batches"
            )
        missing = range(self._next_number, self._next_number + wanted - len(self._spare))
        giving_way = self._in_the_way(missing)
        committed = self._wait_for_room(giving_way) if giving_way else 0
        self._give_way(giving_way, committed)
        for number in missing:
            if self._durable and self._spare:  # else a cut could leave the lower one unwiped
                self._spare[-1].sync()
            used = self._used_slots.pop(number - self._geometry.segments, None)
            slots = self._geometry.slots if used is None else used
            self._spare.append(
                free_segment(
                    self._disk, self._path(number), self._meta, number, slots, self._durable
                )
            )
            self._next_number = number + 1
            if self._durable and used is None:
                self._spare[-1].sync()  # `number` itself may have been begun before a cut
        return list(self._spare)[:wanted]

    def numbers(self) -> list[int]:
        """Of all segments with records or reserved for some, in any thread. Those reserved are
        looked at first: one that is activated meanwhile is in `live` before it leaves them."""
        spare = [segment.number for segment in list(self._spare)]
        return [*(extent.number for extent in list(self.live)), *spare]

    def newest(self) -> int:
        """The last with records, in any thread; -1 when there is none."""
        return max((extent.number for extent in list(self.live)[-1:]), default=-1)

    def activate(self, segment: Segment) -> None:
        """The first of those reserved now holds records."""
        self.live.append(Extent(segment.number, segment.first))
        self._spare.remove(segment)

    def distrust(self) -> None:
        """A sync has failed: no file in use by now serves another lap, new ones are made."""
        self._trusted_from = self._next_number

    def take_back(self, sequence: int) -> None:
        """Undoes what a batch refused after a failed sync had entered from `sequence` on.

        Segments that hold nothing else are removed, and the numbers given to them are free again.
        So are those reserved: it may be one of them that failed.
        The one before keeps its records and is not written to again.
        """
        self.distrust()
        while self._spare:
            spare = self._spare.pop()
            spare.close()
            self._next_number = spare.number
            self._unlink(spare.number)
        while self.live and self.live[-1].first >= sequence:
            self._next_number = self.live.pop().number
            self._unlink(self._next_number)
        if self.live:
            newest = self.live[-1]
            path = self._path(newest.number)
            try:
                cut_entries(self._disk, path, sequence - newest.first, self._geometry.slots)
            except OSError as error:
                raise disk_error(error, path, "cut") from error
        sync_directory(self._disk, self._directory)

    def close(self) -> None:
        for segment in self._spare:
            segment.close()
        self._spare.clear()

    def _in_the_way(self, numbers: range) -> int:
        """How many of the oldest must go so that none shares a file with `numbers`."""
        files = {number % self._geometry.segments for number in numbers}
        taken = [extent.number % self._geometry.segments in files for extent in self.live]
        return len(taken) - taken[::-1].index(True) if True in taken else 0

    def _wait_for_room(self, giving_way: int) -> int:
        """How far the slowest consumer is, once that is far enough."""
        clock, needed = self._patience.clock, self.live[giving_way].first
        if needed <= self._settled:
            return self._settled
        ends_s = clock.monotonic_s() + self._block_timeout_s
        while (committed := self._committed()) < needed and not self._drop_oldest:
            left_s = ends_s - clock.monotonic_s()
            if left_s <= 0:
                raise QueueFull(
                    f"the queue in {self._directory} is full: its slowest consumer is at "
                    f"{committed}, the oldest of {self._geometry.segments} segments starts at "
                    f"{self.live[0].first}"
                )
            self._patience.sleep(min(BLOCK_RETRY_S, left_s))
        return committed

    def _give_way(self, segments: int, committed: int) -> None:
        """The commits that allow it are made durable first: else a power cut could take a consumer
        back to records that are gone, and it would count as dropped what it had delivered.

        After a cut recovery knows from the commits that what is gone had been given up. Where that
        is done without them `oldest` has to say so."""
        if not segments:
            return
        needed = self.live[segments].first
        if self._durable and needed > self._settled:
            for name in self._consumers:
                make_durable(self._disk, self._directory, name)
        self._settled = committed
        self._state.publish_oldest(needed)
        if self._durable and needed > committed:
            sync_file(self._disk, self._directory / "state")
        for _ in range(segments):
            end = self.live[1].first
            oldest, first = self.live[0]
            if end > committed or oldest < self._trusted_from:
                self._unlink(oldest)
            elif oldest >= self._own_from:
                self._used_slots[oldest] = end - first
            self.live.popleft()

    def _path(self, number: int) -> Path:
        """Kept for the laps to come: nothing of a turn to the next segment is in a cache, and
        making a path again was measured to be a tenth of it."""
        position = number % self._geometry.segments
        if position not in self._paths:
            self._paths[position] = self._geometry.path(self._directory, position)
        return self._paths[position]

    def _unlink(self, number: int) -> None:
        path = self._path(number)
        try:
            self._disk.unlink(path)
        except OSError as error:
            raise disk_error(error, path, "remove") from error
