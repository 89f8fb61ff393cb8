"""The places of all declared consumers, as the writer sees them."""

from __future__ import annotations

from pathlib import Path

from skyfarer.queue.checkpoint import (
    FILE_BYTES,
    Checkpoint,
    checkpoint_path,
    make_durable,
    peek_at,
)
from skyfarer.queue.disk import Disk, create_whole
from skyfarer.queue.run import OVERFLOW


class Places:
    """Reads the consumers' files afresh at each call: consumers live in other processes."""

    def __init__(
        self, disk: Disk, directory: Path, names: tuple[str, ...], queue_id: bytes
    ) -> None:
        self._disk = disk
        self._directory = directory
        self._names = names
        self._synced: list[Checkpoint] = []
        self._paths = [checkpoint_path(directory, name) for name in names]
        self._queue_id = queue_id

    def make_missing(self, oldest: int) -> None:
        """A consumer new to the queue begins with the oldest record there is."""
        for path in self._paths:
            if not path.exists():
                begin = Checkpoint(0, oldest).encode(self._queue_id)
                create_whole(self._disk, path, begin, FILE_BYTES, durable=False)

    def make_durable(self) -> None:
        for name in self._names:
            make_durable(self._disk, self._directory, name)

    def make_new_durable(self) -> None:
        """Unless nothing was committed since the last call."""
        if (now := self._all()) != self._synced:
            self.make_durable()
            self._synced = now

    def slowest(self) -> int:
        """Everything below is committed by all. A damaged file holds everything until its
        consumer starts and mends it."""
        return min(place.committed for place in self._all())

    def known(self) -> tuple[int, int]:
        """The slowest and the farthest; files not made yet say nothing."""
        committed = [self._peek(path).committed for path in self._paths if path.exists()]
        return min(committed, default=0), max(committed, default=0)

    def dropped(self, oldest: int) -> int:
        """Records the consumer that lost most never had: the gaps it has counted when passing
        them, and the one still before it."""
        return max(
            place.dropped.get(OVERFLOW, 0) + max(0, oldest - place.committed)
            for place in self._all()
        )

    def _all(self) -> list[Checkpoint]:
        return [self._peek(path) for path in self._paths]

    def _peek(self, path: Path) -> Checkpoint:
        return peek_at(path, self._queue_id) or Checkpoint(0, 0)
