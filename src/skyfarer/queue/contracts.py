"""What a queue is to those who use it, whether it lies in files or in memory.

Three parts, so that each program takes the one it needs. The file queue (`writer.Writer`,
`reader.Reader`, `consumer.Consumer`) and its twin (`memory.MemoryQueue`) satisfy the same three,
and one suite holds both to every sentence below. They differ in one answer only, what is durable:
files outlive the process, memory ends with it.

For all three: the constructor touches nothing; `start` twice is once; `stop` is safe twice and
unstarted, waits for nothing, and leaves the part ready to be started again. No call blocks but
`AnyReader.wait` and, where "block" is the policy of a full queue, `AnyWriter.append`; the others do
short work in memory or in files.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

from skyfarer.base.lifecycle import Component
from skyfarer.queue.run import Run


class AnyWriter(Component, Protocol):
    """The only one that adds. One per queue, used by one thread at a time; other parts may work
    in other threads meanwhile and, for files, in other processes."""

    @property
    def writing(self) -> int:
        """The next number, and so how many records were ever accepted. Kept after `stop`."""

    @property
    def oldest(self) -> int:
        """The first number still held; `writing` when none is. Kept after `stop`."""

    @property
    def dropped(self) -> int:
        """Records given up before the consumer that lost most had them; 0 before `start`."""

    def start(self) -> None:
        """Takes the queue as it was left. A queue with another writer refuses: QueueLocked."""

    def stop(self, timeout_s: float) -> None:
        """Everything acknowledged is kept already, so nothing is drained and nothing is lost."""

    def append(self, kind: int, payloads: Sequence[bytes | memoryview]) -> int:
        """Keeps all payloads or none, and returns the number of the first.

        On return they are as durable as the queue is. The caller's buffers are its own again. No
        payloads: the next number, and nothing changes. The same payloads twice are two records.
        QueueFull may be tried again after a commit, and comes only after `block_timeout_s` where
        that is the policy, which keeps no other part from working; RecordTooLarge and a kind
        outside 1 to `KIND_MAX` may not. Before `start` and after `stop`: PermanentError.
        """


class AnyReader(Component, Protocol):
    """Looks, and changes nothing. Any number of them, each used by one thread at a time."""

    def start(self) -> None:
        """QueueMissing, which is retryable, until the writer has started once."""

    def stop(self, timeout_s: float = 0.0) -> None:
        """Runs already handed out stay readable."""

    def writing(self) -> int:
        """The next number to be written. Unstarted and stopped: PermanentError, as to every
        question here."""

    def oldest(self) -> int:
        """The first number still held. It only grows, but for a start after a power cut, which may
        find records again that were given up since the last sync."""

    def wait(self, beyond: int, timeout_s: float) -> bool:
        """The one call that blocks: until `writing()` is above `beyond`, or False after
        `timeout_s`; 0 only looks. Costs nothing meanwhile, and keeps nobody else from working."""

    def runs(self, start: int, end: int, bytes_max: int = ...) -> Iterator[Run]:
        """Runs that cover `start` to `end`, at most to `writing()`, with no gap and no overlap.

        Never waits for records to come. A run has at least one number and, unless it is a single
        record, at most `bytes_max` of payload. Numbers below `oldest()` come as lost, "overflow".
        The bytes of a run are read-only and stay as they are until the consumer that asked for
        them commits past them. Asked twice, it answers the same for what is still held.
        """


class AnyConsumer(Component, Protocol):
    """A named place in the queue. One user per name, one thread at a time; the name must be among
    the `consumers` of the queue's settings."""

    def start(self) -> None:
        """Goes on where the name last committed; a new one begins at the oldest record held.

        QueueMissing until the writer has started once, and for a name not declared; QueueLocked
        while the name is in use.
        """

    def stop(self, timeout_s: float = 0.0) -> None:
        """Frees the name. `committed` and `dropped` keep their value."""

    def committed(self) -> int:
        """The next number wanted; 0 before `start`. It may be below `oldest()` of the queue."""

    def dropped(self) -> dict[str, int]:
        """Records below `committed` that were never delivered, by reason; the caller's own copy."""

    def commit(self, sequence: int, dropped: Mapping[str, int] = ...) -> None:
        """Hands everything below `sequence` back to the writer, and counts what was not delivered.

        Place and counts move together, and on return outlive what the queue outlives, the end of
        the process; a power cut only where the consumer was asked to wait for that. The same
        place twice changes nothing. Backwards, past `writing`, with more dropped than was passed,
        before `start` or after `stop`: PermanentError, and nothing has moved.
        """
