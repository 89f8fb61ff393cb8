"""`skyfarer queue replay`: the records of a queue sent once more, by the call of each kind.

They go without the numbers a satellite sends along: an upstream that had them already would drop
what it is meant to get again. What fails for now is tried a few times and then ends the work with
the number to go on from; what is refused for good is counted and passed over.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import groupby
from random import Random
from typing import Final

from skyfarer.base.backoff import Backoff, BackoffSettings
from skyfarer.base.errors import PermanentError, RetryableError
from skyfarer.queue.onlooker import Gap, Record
from skyfarer.satellite.contracts import Batch
from skyfarer.satellite.senders.answers import OVERSIZE
from skyfarer.wire.client import ClientSettings, GrpcClient
from skyfarer.wire.rpc import FORWARD, Rpc, Streaming
from skyfarer.wire.status import Status, StatusError

BATCH_RECORDS_MAX: Final = 500
ATTEMPTS_MAX: Final = 6
STOP_TIMEOUT_S: Final = 5.0


@dataclass(slots=True)
class Replayed:
    """`sent` and `refused` count records by kind, `missing` numbers that could not be read."""

    calls: int = 0
    sent: Counter[int] = field(default_factory=Counter)
    refused: Counter[int] = field(default_factory=Counter)
    missing: Counter[str] = field(default_factory=Counter)
    first_refusal: str = ""

    @property
    def whole(self) -> bool:
        return not self.refused and not self.missing


def replay(
    pieces: Iterable[list[Record] | Gap],
    upstream: tuple[str, int],
    progress: Callable[[int], None],
    backoff: BackoffSettings | None = None,
) -> Replayed:
    """Blocks until all is sent. `progress` hears the next number. RetryableError, naming where to
    go on, when the upstream took nothing in six attempts."""
    return asyncio.run(_replay(pieces, upstream, progress, backoff or BackoffSettings()))


async def _replay(
    pieces: Iterable[list[Record] | Gap],
    upstream: tuple[str, int],
    progress: Callable[[int], None],
    backoff: BackoffSettings,
) -> Replayed:
    host, port = upstream
    client = GrpcClient(ClientSettings(host=host, port=port))
    replayer = _Replayer(client, Backoff(backoff, Random()))
    await client.start()
    try:
        for piece in pieces:
            if isinstance(piece, Gap):
                replayer.done.missing[piece.what] += piece.records
                progress(piece.end)
                continue
            for batch in _batches(piece):
                await replayer.settle(batch)
                progress(batch.end)
    finally:
        await client.stop(STOP_TIMEOUT_S)
    return replayer.done


def _batches(records: list[Record]) -> Iterator[Batch]:
    for kind, group in groupby(records, key=lambda record: record.kind):
        same = list(group)
        rpc = FORWARD.get(kind)
        size = 1 if rpc is not None and rpc.streaming is Streaming.UNARY else BATCH_RECORDS_MAX
        for at in range(0, len(same), size):
            some = same[at : at + size]
            yield Batch(some[0].sequence, kind, tuple(record.payload for record in some))


class _Replayer:
    def __init__(self, client: GrpcClient, backoff: Backoff) -> None:
        self.done = Replayed()
        self._client = client
        self._backoff = backoff

    async def settle(self, batch: Batch) -> None:
        """Sends it, halved as long as a part is refused, until the refused record stands alone."""
        rpc = FORWARD.get(batch.kind)
        if rpc is None:
            self._refuse(batch, f"no call carries records of kind {batch.kind}")
            return
        waiting = [batch]
        while waiting:
            part = waiting.pop()
            try:
                await self._send(rpc, part)
            except PermanentError as refusal:
                if len(part.payloads) == 1 or _never(refusal):
                    self._refuse(part, str(refusal))
                else:
                    waiting.extend(reversed(part.split((len(part.payloads) + 1) // 2)))

    async def _send(self, rpc: Rpc, batch: Batch) -> None:
        self._backoff.reset()
        for attempt in range(1, ATTEMPTS_MAX + 1):
            try:
                await self._client.send(rpc, batch.payloads)
            except RetryableError as failure:
                if any(words in str(failure) for words in OVERSIZE):
                    raise PermanentError(str(failure)) from failure
                if attempt == ATTEMPTS_MAX:
                    raise self._given_up(batch, failure) from failure
                await asyncio.sleep(max(self._backoff.next_s(), failure.after_s or 0.0))
            else:
                self.done.calls += 1
                self.done.sent[batch.kind] += len(batch.payloads)
                return

    def _given_up(self, batch: Batch, failure: RetryableError) -> RetryableError:
        return RetryableError(
            f"{failure}; {self.done.sent.total()} records were sent, go on with "
            f"--from {batch.first}"
        )

    def _refuse(self, batch: Batch, reason: str) -> None:
        self.done.refused[batch.kind] += len(batch.payloads)
        self.done.first_refusal = self.done.first_refusal or reason


def _never(refusal: PermanentError) -> bool:
    """The upstream does not know the call at all: smaller parts would fare no better."""
    cause = refusal.__cause__
    return isinstance(cause, StatusError) and cause.status is Status.UNIMPLEMENTED
