"""Which segments hold records, which are free, and what gives way when none is."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from pathlib import Path

from skyfarer.queue.disk import Disk
from skyfarer.queue.errors import QueueFull, RecordTooLarge, disk_error
from skyfarer.queue.layout import Extent
from skyfarer.queue.meta import Meta
from skyfarer.queue.segment import Segment, free_segment
from skyfarer.queue.state import State


class Ring:
    """`live` is in order, oldest first. `_spare` are wiped segments numbered to come next."""

    def __init__(
        self,
        directory: Path,
        meta: Meta,
        disk: Disk,
        state: State,
        committed: Callable[[], int],
        drop_oldest: bool,
    ) -> None:
        self._directory = directory
        self._meta = meta
        self._geometry = meta.geometry
        self._disk = disk
        self._state = state
        self._committed = committed
        self._drop_oldest = drop_oldest
        self._next_number = 0
        self.live: deque[Extent] = deque()
        self._spare: deque[Segment] = deque()

    def resume(self, live: list[Extent], next_number: int) -> None:
        self.live = deque(live)
        self._next_number = next_number

    def reserve(self, wanted: int) -> list[Segment]:
        """The next `wanted` segments, free and numbered; those not used stay reserved.

        Under "reject" a segment gives way when every consumer has committed it, and its file is
        wiped and reused. Under "drop_oldest" it gives way regardless; then its file is unlinked
        and a new one made, so that a consumer still reading the old one through its map keeps
        whole records. QueueFull and RecordTooLarge come before anything is given up.
        """
        if wanted >= self._geometry.segments:
            raise RecordTooLarge(
                f"the batch needs {wanted} more segments, the queue in {self._directory} "
                f"has {self._geometry.segments} in all; send smaller batches"
            )
        missing = range(self._next_number, self._next_number + wanted - len(self._spare))
        giving_way = self._in_the_way(missing)
        committed = self._committed() if giving_way else 0
        if giving_way and not self._drop_oldest and self.live[giving_way].first > committed:
            raise QueueFull(
                f"the queue in {self._directory} is full: its slowest consumer is at {committed}, "
                f"the oldest of {self._geometry.segments} segments starts at {self.live[0].first}"
            )
        for _ in range(giving_way):
            self._retire(committed)
        for number in missing:
            self._spare.append(free_segment(self._disk, self._directory, self._meta, number))
            self._next_number = number + 1
        return list(self._spare)[:wanted]

    def activate(self, segment: Segment) -> None:
        """The first of those reserved now holds records."""
        self._spare.remove(segment)
        self.live.append(Extent(segment.number, segment.first))

    def close(self) -> None:
        for segment in self._spare:
            segment.close()
        self._spare.clear()

    def _in_the_way(self, numbers: range) -> int:
        """How many of the oldest must go so that none shares a file with `numbers`."""
        files = {number % self._geometry.segments for number in numbers}
        taken = [extent.number % self._geometry.segments in files for extent in self.live]
        return len(taken) - taken[::-1].index(True) if True in taken else 0

    def _retire(self, committed: int) -> None:
        oldest = self.live[0]
        end = self.live[1].first
        self._state.publish_oldest(end)
        if end > committed:
            path = self._geometry.path(self._directory, oldest.number)
            try:
                self._disk.unlink(path)
            except OSError as error:
                raise disk_error(error, path, "remove") from error
        self.live.popleft()
