"""Runs a batch through the filters of a pipe.

Which filters look at a kind is asked once per kind, so a batch that concerns none of them passes
untouched, and one that the first of them drops as a whole is dropped without a look at its records.
Otherwise each record goes through all its filters before the next begins: of a large batch only one
message is decoded at a time.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from skyfarer.base.clock import Clock
from skyfarer.base.errors import ConfigError
from skyfarer.satellite.contracts import Batch, Filter, Loss, Processed, Unfit, Verdict
from skyfarer.satellite.processors.event import Context, Event
from skyfarer.satellite.processors.passage import Passage
from skyfarer.telemetry import table
from skyfarer.telemetry.metrics import Registry

log = logging.getLogger(__name__)

FILTERS_MAX: Final = 32
NAME_BYTES_MAX: Final = 25  # a ledger keeps 32 of a reason, "filter:" included
GIVE_WAY_RECORDS: Final = 100  # some milliseconds of decoding, then others have a turn
TOLD_MAX: Final = 100  # failures of different kinds that are each logged once
DEFECT: Final = "defect"


@dataclass(frozen=True, slots=True)
class Stage:
    """A filter at its place in the chain; `drops` is its verdict on the kind it was planned for."""

    position: int
    name: str
    filter: Filter
    drops: bool = False

    @property
    def reason(self) -> str:
        return f"filter:{self.name}"


class Chain:
    """A `Processor`. `filters` are names, by which drops and failures are counted, with filters;
    two of one name are counted as one."""

    def __init__(
        self,
        pipe: str,
        filters: Sequence[tuple[str, Filter]],
        clock: Clock,
        registry: Registry,
    ) -> None:
        if len(filters) > FILTERS_MAX:
            raise ConfigError(f"pipe {pipe} has {len(filters)} filters; {FILTERS_MAX} is the most")
        self._pipe = pipe
        self._filters = [(_bounded(name), one) for name, one in filters]
        self._clock = clock
        self._registry = registry
        self._plans: dict[tuple[int, int], tuple[Stage, ...]] = {}
        self._told: set[tuple[str, str]] = set()

    async def process(self, batch: Batch) -> Processed:
        plan = self._plan(batch.kind)
        if not plan:
            return Processed((batch,))
        if plan[0].drops:
            return Processed((), (Loss(batch.first, batch.end, plan[0].reason),))
        passage, context = Passage(batch), Context(self._clock.monotonic_s())
        for number, payload in zip(batch.numbers, batch.payloads, strict=True):
            event = Event(number, batch.kind, payload)
            loss = self._walk(event, plan, context, passage)
            if loss is None:
                passage.keep(event)
            else:
                passage.lose(loss)
            if not number % GIVE_WAY_RECORDS:
                await asyncio.sleep(0)
        return passage.processed()

    def _plan(self, kind: int, behind: int = -1) -> tuple[Stage, ...]:
        """The filters behind that position which concern records of that kind."""
        plan = self._plans.get((kind, behind))
        if plan is None:
            plan = self._plans[kind, behind] = tuple(
                Stage(position, name, one, verdict is Verdict.DROP)
                for position, (name, one) in enumerate(self._filters)
                for verdict in [one.verdict(kind)]
                if verdict is not Verdict.PASS and position > behind
            )
        return plan

    def _walk(
        self, event: Event, plan: Sequence[Stage], context: Context, passage: Passage
    ) -> Loss | None:
        """None if the event came through. What it emits is walked on before the event itself."""
        kind = event.kind
        for stage in plan:
            try:
                keep = not stage.drops and stage.filter.apply(event, context)
            except Exception as failure:  # noqa: BLE001 - a filter may be anybody's
                context.take_emitted()
                loss = self._failed(stage, event, failure)
                if loss is None:
                    continue
                return loss
            for made_kind, message in context.take_emitted():
                self._walk_emitted(event.made(made_kind, message), stage, context, passage)
            if not keep:
                return Loss(event.sequence, event.sequence + 1, stage.reason)
            if event.kind != kind:
                rest = self._plan(event.kind, stage.position)
                return self._walk(event, rest, context, passage)
        return None

    def _walk_emitted(self, event: Event, stage: Stage, context: Context, passage: Passage) -> None:
        plan = self._plan(event.kind, stage.position)
        if self._walk(event, plan, context, passage) is None:
            passage.emit(event)

    def _failed(self, stage: Stage, event: Event, failure: Exception) -> Loss | None:
        reason = failure.reason if isinstance(failure, Unfit) else DEFECT
        self._registry.inc(
            table.PROCESSOR_FAILURES, pipe=self._pipe, filter=stage.name, reason=reason
        )
        policy = stage.filter.on_failure
        if (stage.name, reason) not in self._told and len(self._told) < TOLD_MAX:
            self._told.add((stage.name, reason))
            log.warning(
                "pipe %s: filter %s failed on record %d (%s), policy %s; counted from now on: %s",
                *(self._pipe, stage.name, event.sequence, reason, policy, failure),
                exc_info=failure if reason == DEFECT else None,
            )
        if policy == "pass":
            return None
        first, parked = event.sequence, (event.encoded(),) if policy == "park" else ()
        return Loss(first, first + 1, stage.reason, event.kind, parked, f"{stage.name}: {failure}")


def _bounded(name: str) -> str:
    return name.encode()[:NAME_BYTES_MAX].decode("utf-8", "ignore")
