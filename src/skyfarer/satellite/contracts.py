"""What the parts of a pipe promise each other.

All of them live on one event loop, in one thread. Constructing does no I/O; `stop` may be called
twice, and on a part that was never started; nothing may be called after it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Literal, Protocol

from skyfarer.base.errors import PermanentError, RetryableError

if TYPE_CHECKING:
    from skyfarer.satellite.processors.event import Context, Event
    from skyfarer.wire.relay import Relay

OnFailure = Literal["pass", "drop", "park"]
Append = Callable[[int, Sequence[bytes]], object]
"""Takes payloads of one kind, durable on return; else RetryableError or PermanentError."""


class Unfit(PermanentError):  # noqa: N818 - a state, and a word of the contract
    """A filter cannot do its work on an event; `reason` is one word, for a metric."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class AccessDenied(RetryableError):  # noqa: N818 - a state, and a word of the contract
    """The upstream refuses our token or certificate: nothing is lost, an operator must act."""


class Unexplained(RetryableError):  # noqa: N818 - a state, and a word of the contract
    """The upstream answered with a failure that may be its own or one record's: who waits for it
    for ever may wait behind a record that it will never take."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Records of one kind in the order of the queue; delivering it answers for `first` to `end`.

    As taken from the queue, payload i is record `first + i`. Behind filters `kept` holds the number
    of each payload, since some records in between were dropped; those are answered for as well.
    Records that a filter `emitted` beside the queue's own have no number: `first` is the record
    they were made from, and an upstream must not take them for it.

    The payloads are views of the queue's files, good until the batch is settled.
    """

    first: int
    kind: int
    payloads: tuple[bytes | memoryview, ...]
    kept: tuple[int, ...] = ()
    beyond: int = 0
    emitted: bool = False

    @property
    def end(self) -> int:
        return self.beyond or self.first + len(self.payloads)

    @property
    def numbers(self) -> Sequence[int]:
        """The record each payload is; without meaning for what was emitted."""
        return self.kept or range(self.first, self.first + len(self.payloads))

    def parts(self, records_max: int) -> list[Batch]:
        """Batches of at most `records_max` payloads that answer for the same records, in order."""
        size = len(self.payloads)
        if size <= records_max:
            return [self]
        starts = range(0, size, records_max)
        return [self._part(start, min(start + records_max, size)) for start in starts]

    def split(self, count: int) -> list[Batch]:
        """The first `count` payloads and the rest, if there is any; both answer for the whole."""
        size = len(self.payloads)
        return [self] if size <= count else [self._part(0, count), self._part(count, size)]

    def _part(self, start: int, stop: int) -> Batch:
        kind, payloads = self.kind, self.payloads[start:stop]
        if self.emitted:
            return Batch(self.first, kind, payloads, emitted=True)
        numbers = self.numbers
        return Batch(
            numbers[start] if start else self.first,
            kind,
            payloads,
            self.kept[start:stop],
            numbers[stop] if stop < len(numbers) else self.end,
        )


@dataclass(frozen=True, slots=True)
class Gap:
    """Records that can no longer be read, and why."""

    first: int
    end: int
    reason: str


@dataclass(frozen=True, slots=True)
class Loss:
    """Records that will not be delivered: a filter's decision, or the end of the sender's tries.

    `payloads` are to be parked, with `detail` beside them; it is empty for what is dropped.
    """

    first: int
    end: int
    reason: str
    kind: int = 0
    payloads: tuple[bytes | memoryview, ...] = ()
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Processed:
    """What became of one batch: `outgoing` and `losses`, each ascending, answer for all of it."""

    outgoing: tuple[Batch, ...]
    losses: tuple[Loss, ...] = ()
    emitted: tuple[Batch, ...] = ()


class Processor(Protocol):
    """The filters of a pipe, in order."""

    async def process(self, batch: Batch) -> Processed:
        """Never raises for what is in a payload. Gives way to others now and then, and may be asked
        about the same records again, after a crash or a defect: what it counts for the ledger is in
        the answer and nowhere else."""


class Verdict(Enum):
    """What a filter wants of a whole kind of records, asked once."""

    PASS = "pass"  # nothing: records of this kind are not even looked at
    LOOK = "look"  # `apply` must see each of them
    DROP = "drop"  # none of them goes on


class Filter(Protocol):
    """One step of a processor. Constructed as `(config)` with a `config_type`; does no I/O.

    `on_failure` is what becomes of an event that `apply` raises for: it passes as it was, is
    dropped, or is parked. So an event may only be changed once nothing can fail any more.
    """

    on_failure: OnFailure

    def verdict(self, kind: int) -> Verdict:
        """The same answer for the same kind, always: it is kept."""

    def apply(self, event: Event, context: Context) -> bool:
        """False drops the event. It may be changed in place, and others emitted by the context;
        those are seen by the filters behind this one. Any exception is a failure of the event,
        `Unfit` says which. Never blocks, never awaits."""


class Server(Protocol):
    """A port that several pipes share, each by paths of its own.

    Constructed as `(config, registry, health)`. A call is answered only after the `Append` of its
    path returned, or with what the relay answered.
    """

    @property
    def address(self) -> tuple[str, int]:
        """Where it listens; once started, the port in use."""

    def serve(self, doors: Mapping[str, Append], relay: Relay | None) -> None:
        """From now on these paths and no others; before `start`, and at any time while it runs:
        connections stay, and calls that have begun end as they began."""

    async def start(self) -> None:
        """OSError when the address cannot be had."""

    async def stop(self, timeout_s: float) -> None:
        """Takes nothing new and lets the calls in flight end, for `timeout_s` at most."""


class Inlet(Protocol):
    """The queue of a pipe as its fetcher sees it, who must be the only one to append to it.

    `writing` moves by `append` alone, and by as many as it kept: whoever wrote down, before an
    append, what he would do at which number, knows after a crash what became of it.
    """

    @property
    def queue_id(self) -> str:
        """Another queue has another one; empty before the queue is started."""

    @property
    def writing(self) -> int:
        """The number the next record will get, which is how many were ever kept."""

    def append(self, kind: int, payloads: Sequence[bytes]) -> object:
        """An `Append`. A crash inside it leaves some first payloads as records, or none."""


class Fetcher(Protocol):
    """Goes and gets what nobody sends: `(config, inlet, directory, clock, registry, health)`.

    What it remembers lies in `directory`, which is its own, and never passes what was appended. A
    RetryableError of `Inlet.append` makes it wait and try the same again. It is started after the
    queue and stopped before it.
    """

    async def start(self) -> None: ...

    async def stop(self, timeout_s: float) -> None: ...


class Forwarder(Protocol):
    """Hands batches to one upstream, which need not be there when this starts."""

    address: tuple[str, int]

    async def start(self) -> None: ...

    def batch_max(self, kind: int) -> int:
        """How many records of that kind one `send` may carry."""

    async def send(self, batch: Batch) -> None:
        """Returns when the upstream has the whole batch.

        RetryableError: it may have some of it or none, send the same again. PermanentError: it
        will never take this batch, though it may take a part of it. `AccessDenied` and
        `Unexplained` are the two kinds of RetryableError that deserve more than a pause.
        """

    async def stop(self, timeout_s: float) -> None: ...
