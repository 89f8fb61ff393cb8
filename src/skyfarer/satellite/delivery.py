"""Getting batches to the upstream, or learning of which records it will never take.

    failed for now     again after a jittered, growing pause; for ever, or until the time for it is
                       over, when the batch is given up as "exhausted"
    access denied      again, slowly and for ever: the data is good, the token is not
    refused for good   halved until the refused record stands alone, which is "rejected"
    unexplained        after some tries halved likewise; the record that stands alone is "rejected"
                       only if it fails again after the upstream took one of those behind it, for
                       while it fails with everything the fault is its own

So a record that cannot be taken stands in the way of the others for seconds, not for ever, and an
upstream in trouble costs room in the queue and nothing else. Sequences reach the upstream in
ascending order, but for a resend, and for those that were doubted for nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from skyfarer.base.errors import PermanentError, RetryableError
from skyfarer.satellite.attempts import Attempts, Exhausted, Suspected
from skyfarer.satellite.contracts import Batch, Loss, Unexplained
from skyfarer.wire.split import split_repeated

REJECTED: Final = "rejected"
EXHAUSTED: Final = "exhausted"
TRIES_MAX: Final = 4  # unexplained failures before a batch, or the record that is left, is doubted
REACH_MIN: Final = 4  # records tried behind a suspect, at first

Settle = Callable[[Batch, Loss | None], None]
"""Called for each part of a batch, in order: it is delivered, or lost as a whole."""


class Delivery:
    """One call of `deliver` at a time; cancelled, it has settled some first parts."""

    def __init__(self, attempts: Attempts, park_exhausted: bool) -> None:
        self._attempts = attempts
        self._forwarder = attempts.forwarder
        self._park_exhausted = park_exhausted
        self._reach = REACH_MIN

    async def deliver(self, batches: Sequence[Batch], settle: Settle) -> bool:
        """Until every part is settled. False: it is stuck at a record that it knows no reason to
        give up; the caller should ask again, with more behind that record if there is more."""
        waiting = [part for batch in batches for part in self._parts(batch)][::-1]
        searching = False
        while waiting:
            part = waiting.pop()
            tries = 1 if searching and len(part.payloads) > 1 else TRIES_MAX
            try:
                await self._attempts.send(part, tries)
            except PermanentError as refusal:
                if not _split(part, waiting):
                    settle(part, _loss(part, REJECTED, refusal))
            except Suspected as doubt:
                searching = True
                if not _split(part, waiting) and not await self._judge(
                    part, doubt, waiting, settle
                ):
                    return False
            except Exhausted as decision:
                settle(part, _loss(part, EXHAUSTED, decision, self._park_exhausted))
            else:
                settle(part, None)
        return True

    def _parts(self, batch: Batch) -> list[Batch]:
        return batch.parts(self._forwarder.batch_max(batch.kind))

    async def _judge(
        self, suspect: Batch, doubt: Suspected, waiting: list[Batch], settle: Settle
    ) -> bool:
        """Whether there is a verdict on the suspect, and on all that failed between it and the
        first record that was taken. They are tried again behind that one: the upstream may have
        been at fault until then, and only who fails beside one that is taken is given up."""
        if split_repeated(bytes(suspect.payloads[0]), 1) is None:
            settle(suspect, _loss(suspect, REJECTED, doubt))
            return True
        failed, behind = [suspect], waiting.copy()
        while behind and len(failed) <= self._reach:
            one, *rest = behind.pop().split(1)
            behind += rest
            try:
                taken = await self._takes(one)
                guilty = [not await self._takes(record) for record in failed] if taken else []
            except RetryableError:
                return False
            if taken:
                for record, is_guilty in zip(failed, guilty, strict=True):
                    settle(record, _loss(record, REJECTED, doubt) if is_guilty else None)
                settle(one, None)
                waiting[:] = behind
                self._reach = REACH_MIN
                return True
            failed.append(one)
        self._reach *= 2
        return False

    async def _takes(self, one: Batch) -> bool:
        """As often as the suspect was tried, but at once: with pauses an upstream could recover in
        between, and the suspect would be given up for nothing. RetryableError: it is not there."""
        for _ in range(TRIES_MAX):
            try:
                await self._forwarder.send(one)
            except (Unexplained, PermanentError):
                continue
            return True
        return False


def _split(part: Batch, waiting: list[Batch]) -> bool:
    """Puts its halves in its place; False when it is a single record."""
    if len(part.payloads) == 1:
        return False
    waiting += reversed(part.split(len(part.payloads) // 2))
    return True


def _loss(part: Batch, reason: str, why: Exception, park: bool = True) -> Loss:
    payloads = part.payloads if park else ()
    return Loss(part.first, part.end, reason, part.kind, payloads, str(why))
