"""`parked.list`, `parked.show` and `parked.retry`: what the door answers of parked records.

A question may name a `queue` by its id; `show` and `retry` take the one in use if it does not. A
retry goes in small groups, each intended, handed to the receiver and settled before the next, so
that whatever ends it leaves at most one group in doubt (`oap.core.parked`). Then it waits until
analysis has come past them and says which were parked again.
"""

from __future__ import annotations

import threading
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol

from skyfarer.base.clock import Clock
from skyfarer.base.errors import PermanentError, RetryableError
from skyfarer.oap.admin.door import Answers, Verb
from skyfarer.oap.core.parked import ParkedEntry, ParkedQuery, ParkedRecords, Retry, RetryState
from skyfarer.oap.receivers.readmission import BYTES_MAX, RECORDS_MAX, Readmitted
from skyfarer.telemetry import table
from skyfarer.telemetry.metrics import Registry

LISTED_MAX: Final = 100_000
NAMED_MAX: Final = 1000
RETRIED_MAX: Final = 100_000
"""Of one question; whoever has more asks again."""
WAIT_S_MAX: Final = 600.0
_SEQUENCE_MAX: Final = 1 << 62
_LOOK_INTERVAL_S: Final = 0.25
_TELL_INTERVAL_S: Final = 5.0


class Readmit(Protocol):
    def __call__(self, producer: str, records: Sequence[Retry]) -> Readmitted:
        """Blocks; RetryableError when it is not known what became of them."""


@dataclass(frozen=True)
class Analysis:
    """The queue in use, and the next of its records that is not analysed yet."""

    queue_id: str
    applied: Callable[[], int]


class ParkedDesk:
    """Any thread. One retry at a time: a second one is refused while it runs."""

    def __init__(
        self,
        records: ParkedRecords,
        readmit: Readmit,
        analysis: Analysis,
        registry: Registry,
        clock: Clock,
    ) -> None:
        self._records = records
        self._readmit = readmit
        self._analysis = analysis
        self._registry = registry
        self._clock = clock
        self._retrying = threading.Lock()
        self._pause = threading.Event()

    @property
    def verbs(self) -> Mapping[str, Verb]:
        return {
            "parked.list": self.listing,
            "parked.show": self.showing,
            "parked.retry": self.retrying,
        }

    def close(self) -> None:
        """Nobody waits for analysis any more."""
        self._pause.set()

    def listing(self, question: Mapping[str, Any]) -> Answers:
        query = ParkedQuery(
            partition=_text(question, "queue"),
            reason=_text(question, "reason"),
            limit=_number(question, "limit", LISTED_MAX),
        )
        for entry in self._records.parked_entries(query):
            yield {"entry": _told(entry)}

    def showing(self, question: Mapping[str, Any]) -> Answers:
        queue = _text(question, "queue") or self._analysis.queue_id
        sequence = _number(question, "sequence", _SEQUENCE_MAX)
        found = self._records.parked_entries(ParkedQuery(queue, [sequence]))
        payload = self._records.parked_payload(queue, sequence)
        if not found or payload is None:
            raise PermanentError(f"queue {queue} has no parked record {sequence}")
        yield {"entry": _told(found[0]), "payload": b64encode(payload).decode("ascii")}

    def retrying(self, question: Mapping[str, Any]) -> Answers:
        """Answers each group with how many were `sent`, and the end with what became of them."""
        query = ParkedQuery(
            partition=_text(question, "queue") or self._analysis.queue_id,
            sequences=_sequences(question),
            reason=_text(question, "reason"),
        )
        wait_s = _number(question, "wait_s", int(WAIT_S_MAX))
        if not self._retrying.acquire(blocking=False):
            raise RetryableError("another retry is under way; try again when it has ended")
        try:
            yield from self._passed_over(query)
            anew: list[int] = []
            yield from self._groups(query, anew)
            yield from self._awaited(anew, wait_s)
            yield self._outcome(anew)
        finally:
            self._retrying.release()

    def _passed_over(self, query: ParkedQuery) -> Answers:
        """Why some of the records that were named are not sent."""
        if query.sequences is None:
            return
        known = {one.sequence: one for one in self._records.parked_entries(query)}
        for sequence in query.sequences:
            entry = known.get(sequence)
            if entry is None:
                yield {"skipped": sequence, "why": "it is not parked"}
            elif entry.state is RetryState.RETRIED:
                at = "" if entry.retried_as is None else f", as record {entry.retried_as}"
                yield {"skipped": sequence, "why": f"it was sent again already{at}"}
            elif entry.damaged:
                yield {"skipped": sequence, "why": "its bytes were damaged in the queue"}

    def _groups(self, query: ParkedQuery, anew: list[int]) -> Answers:
        producer = self._records.retry_producer()
        within = range(self._end(query))
        while len(anew) < RETRIED_MAX:
            group = self._records.intend_retry(query, within, RECORDS_MAX, BYTES_MAX)
            if not group:
                return
            within = range(group[-1].sequence + 1, within.stop)
            outcome = self._readmit(producer, group)
            self._records.settle_retry(outcome.kept)
            sequences = {one.number: one.sequence for one in group}
            appended = [at for at in outcome.kept.values() if at is not None]
            anew += appended
            self._registry.inc(table.PIPELINE_RETRIED, len(appended))
            yield {"sent": len(appended), "known": len(outcome.kept) - len(appended)}
            for number, why in outcome.refused.items():
                yield {"skipped": sequences[number], "why": why}
            if outcome.stopped:
                raise RetryableError(f"{outcome.stopped}; what is not sent stays as it is")
        yield {"more": True}

    def _end(self, query: ParkedQuery) -> int:
        """Of what was analysed when it began: or records that are parked again would be sent again,
        round and round."""
        in_use = query.partition == self._analysis.queue_id
        return self._analysis.applied() if in_use else _SEQUENCE_MAX

    def _awaited(self, anew: Sequence[int], wait_s: float) -> Answers:
        """Says now and then where analysis is, so that who asks neither gives up nor is missed."""
        now_s = told_s = self._clock.monotonic_s()
        until_s = now_s + wait_s
        while anew and now_s < until_s and (applied := self._analysis.applied()) <= anew[-1]:
            if self._pause.wait(_LOOK_INTERVAL_S):
                return
            now_s = self._clock.monotonic_s()
            if now_s - told_s >= _TELL_INTERVAL_S:
                told_s = now_s
                yield {"applied": applied}

    def _outcome(self, anew: Sequence[int]) -> Mapping[str, Any]:
        """Of the new records, which are in the order of the queue."""
        applied = self._analysis.applied()
        done = [at for at in anew if at < applied]
        parked = [
            {"sequence": one.sequence, "reason": one.reason} for one in self._parked_among(done)
        ]
        return {"analysed": len(done), "waiting": len(anew) - len(done), "parked": parked}

    def _parked_among(self, sequences: Sequence[int]) -> Iterator[ParkedEntry]:
        query = ParkedQuery(self._analysis.queue_id, limit=NAMED_MAX)
        for at in range(0, len(sequences), NAMED_MAX):
            some = list(sequences[at : at + NAMED_MAX])
            yield from self._records.parked_entries(replace(query, sequences=some))


def _told(entry: ParkedEntry) -> dict[str, Any]:
    return {
        "queue": entry.partition,
        "sequence": entry.sequence,
        "kind": entry.kind,
        "reason": entry.reason,
        "size_bytes": entry.size_bytes,
        "retried": entry.state.value,
        "retried_as": entry.retried_as,
    }


def _text(question: Mapping[str, Any], key: str) -> str | None:
    value = question.get(key)
    if value is not None and not isinstance(value, str):
        raise PermanentError(f'"{key}" must be text')
    return value


def _number(question: Mapping[str, Any], key: str, most: int) -> int:
    value = question.get(key)
    if not isinstance(value, int) or not 0 <= value <= most:
        raise PermanentError(f'"{key}" must be a number from 0 to {most}')
    return value


def _sequences(question: Mapping[str, Any]) -> list[int] | None:
    value = question.get("sequences")
    if value is None:
        return None
    if not isinstance(value, list) or not all(isinstance(one, int) for one in value):
        raise PermanentError('"sequences" must be a list of numbers')
    if len(value) > NAMED_MAX:
        raise PermanentError(f"at most {NAMED_MAX} records can be named at once")
    return value
