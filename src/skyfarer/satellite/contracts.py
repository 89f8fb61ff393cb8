"""What the parts of a pipe promise each other.

All of them live on one event loop, in one thread. Constructing does no I/O; `stop` may be called
twice, and on a part that was never started; nothing may be called after it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

Append = Callable[[int, Sequence[bytes]], object]
"""Takes payloads of one kind, durable on return; else RetryableError or PermanentError."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Consecutive records of one kind; payload i is record first + i.

    The payloads are views of the queue's files, good until the batch is settled.
    """

    first: int
    kind: int
    payloads: tuple[bytes | memoryview, ...]

    @property
    def end(self) -> int:
        return self.first + len(self.payloads)

    def halves(self) -> tuple[Batch, Batch]:
        middle = len(self.payloads) // 2
        return (
            Batch(self.first, self.kind, self.payloads[:middle]),
            Batch(self.first + middle, self.kind, self.payloads[middle:]),
        )


@dataclass(frozen=True, slots=True)
class Gap:
    """Records that can no longer be read, and why."""

    first: int
    end: int
    reason: str


class Gatherer(Protocol):
    """Feeds an `Append` from start to stop; answers its clients only after it returned."""

    @property
    def address(self) -> tuple[str, int]:
        """Where it listens; once started, the port in use."""

    async def start(self) -> None: ...

    async def stop(self, timeout_s: float) -> None:
        """Takes nothing new and lets the calls in flight end, for `timeout_s` at most."""


class Forwarder(Protocol):
    """Hands batches to one upstream, which need not be there when this starts."""

    address: tuple[str, int]

    async def start(self) -> None: ...

    def batch_max(self, kind: int) -> int:
        """How many records of that kind one `send` may carry."""

    async def send(self, batch: Batch) -> None:
        """Returns when the upstream has the whole batch.

        RetryableError: it may have some of it or none, send the same again. PermanentError: it
        will never take this batch, though it may take a part of it.
        """

    async def stop(self, timeout_s: float) -> None: ...
