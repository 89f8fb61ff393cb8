"""The books of one run of records: what its commits say, part by part.

A commit moves the queue's place and counts what was not delivered up to there, in one write. So a
loss is counted by the commit that passes it, and a run that is taken again after a crash begins at
that place: nothing is counted twice, whatever the filters decide the second time.
"""

from __future__ import annotations

import logging
from collections import Counter, deque
from collections.abc import Iterable
from itertools import repeat

from skyfarer.queue.run import CORRUPT
from skyfarer.satellite.backlog import Backlog
from skyfarer.satellite.contracts import Batch, Loss
from skyfarer.satellite.dead_letters import DeadLetters
from skyfarer.telemetry import table
from skyfarer.telemetry.metrics import Registry

log = logging.getLogger(__name__)

FILTERED = "filter:"


class Books:
    """For one run at a time: `open`, then `settle` for each part in order, then `close`."""

    def __init__(
        self, pipe: str, backlog: Backlog, dead_letters: DeadLetters, registry: Registry
    ) -> None:
        self._pipe = pipe
        self._backlog = backlog
        self._dead_letters = dead_letters
        self._registry = registry
        self._losses: deque[Loss] = deque()
        self._parked: Counter[str] = Counter()
        self._last_detail = ""

    def open(self, losses: Iterable[Loss]) -> None:
        """`losses` are decided already, ascending; they are counted as commits pass them."""
        self._losses = deque(losses)

    def settle(self, part: Batch, loss: Loss | None) -> None:
        """The part was delivered, or is lost as a whole."""
        count = len(part.payloads)
        if part.emitted:
            self._settle_emitted(part, loss)
            return
        dropped = self._passed(part.end)
        if loss is None:
            self._registry.inc(table.SENDER_RECORDS, count, pipe=self._pipe)
        else:
            self._park(loss, part.numbers)
            dropped[loss.reason] += count
        self._commit(part.end, dropped)

    def close(self, end: int) -> None:
        """Everything before `end` is settled."""
        dropped = self._passed(end)
        if dropped or self._backlog.committed < end:
            self._commit(end, dropped)
        for reason, count in self._parked.items():
            log.error(
                "pipe %s: upstream refused %d records (%s), parked in %s: %s",
                *(self._pipe, count, reason, self._dead_letters.path, self._last_detail),
            )
        self._parked.clear()

    def _passed(self, end: int) -> Counter[str]:
        dropped: Counter[str] = Counter()
        while self._losses and self._losses[0].end <= end:
            loss = self._losses.popleft()
            self._park(loss, range(loss.first, loss.end))
            dropped[loss.reason] += loss.end - loss.first
        return dropped

    def _settle_emitted(self, part: Batch, loss: Loss | None) -> None:
        if loss is None:
            self._registry.inc(table.PROCESSOR_EMITTED, len(part.payloads), pipe=self._pipe)
        else:
            self._park(loss, repeat(part.first))

    def _park(self, loss: Loss, numbers: Iterable[int]) -> None:
        """Before the commit: a record may be parked twice, but never neither sent nor parked."""
        for number, payload in zip(numbers, loss.payloads, strict=False):
            try:
                self._dead_letters.park(number, loss.kind, loss.detail, payload)
            except OSError as failure:
                log.error("pipe %s: record %d not parked: %s", self._pipe, number, failure)
            else:
                self._registry.inc(table.SENDER_PARKED, pipe=self._pipe, reason=loss.reason)
                if not loss.reason.startswith(FILTERED):
                    self._parked[loss.reason] += 1
                    self._last_detail = loss.detail

    def _commit(self, end: int, dropped: Counter[str]) -> None:
        self._backlog.settle(end, dropped)
        for reason, count in dropped.items():
            if reason.startswith(FILTERED):
                self._registry.inc(table.PROCESSOR_DROPPED, count, pipe=self._pipe, reason=reason)
                continue
            self._registry.inc(table.SENDER_ABANDONED_COUNT, count, pipe=self._pipe, reason=reason)
            if reason == CORRUPT:
                self._registry.inc(table.QUEUE_DAMAGED, count)
