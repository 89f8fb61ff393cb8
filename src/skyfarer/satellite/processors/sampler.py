"""Keeps some traces and drops the others, each of them whole.

Whether a trace is kept is decided by its id alone, so that every satellite which sees a segment of
it decides the same, whichever service it stands beside; all of them must have the same `rate`.

A segment with an error, or a slow one, is kept whatever its id says. That is known of the segment
in hand and of no other: the rest of its trace may pass through other satellites, or has already, so
of a trace kept for that reason only such segments are there. `traces_per_second` is each
satellite's own too: a trace beyond it is dropped here, and perhaps not elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final
from zlib import crc32

from skyfarer.satellite.contracts import OnFailure, Unfit, Verdict
from skyfarer.satellite.notation import seconds
from skyfarer.satellite.processors.decoding import require_decoding
from skyfarer.satellite.processors.event import Context, Event
from skyfarer.satellite.processors.places import SPANS, duration_ms
from skyfarer.wire.rpc import Kind

REMEMBERED_MAX: Final = 8192  # traces that the budget has decided about
_TRACE_ID_TAG: Final = 0x0A  # field 1, length-delimited: what a segment begins with
_HASHES: Final = 2**32
_SPREAD: Final = 0x9E3779B1  # odd, so no two hashes become one; breaks up CRC's regularity


@dataclass(frozen=True)
class SamplerConfig:
    rate: float = 1.0  # the part of all traces that is kept, from 0 to 1
    keep_errors: bool = True  # segments with an error, whatever their trace
    keep_slow: str = "3s"  # segments that took at least this long, whatever their trace; 0 is none
    traces_per_second: int = 0  # at most so many new traces, errors and slow ones apart; 0 is any
    on_failure: OnFailure = "pass"  # what becomes of a segment that cannot be read

    def __post_init__(self) -> None:
        if not 0 <= self.rate <= 1:
            raise ValueError("rate must be from 0 to 1")
        if self.traces_per_second < 0:
            raise ValueError("traces_per_second must not be below 0")
        seconds(self.keep_slow)


class Sampler:
    """A `Filter` of segments and of the events attached to their spans."""

    config_type: ClassVar = SamplerConfig

    def __init__(self, config: SamplerConfig) -> None:
        require_decoding("sampler")
        self.on_failure = config.on_failure
        self._hash_end = round(config.rate * _HASHES)
        self._keep_errors = config.keep_errors
        self._slow_ms = seconds(config.keep_slow) * 1000
        limit = config.traces_per_second
        self._budget = Budget(limit) if limit else None

    def verdict(self, kind: int) -> Verdict:
        everything = self._hash_end == _HASHES and self._budget is None
        return Verdict.LOOK if kind in SPANS and not everything else Verdict.PASS

    def apply(self, event: Event, context: Context) -> bool:
        hashed = trace_hash(_trace_id(event))
        if hashed < self._hash_end and (
            self._budget is None or self._budget.admits(hashed, context.now_s)
        ):
            return True
        return event.kind == Kind.SEGMENT and self._remarkable(event)

    def _remarkable(self, event: Event) -> bool:
        if not self._keep_errors and not self._slow_ms:
            return False
        spans = list(event.message.spans)
        if self._keep_errors and any(span.isError for span in spans):
            return True
        return bool(self._slow_ms and spans) and duration_ms(spans) >= self._slow_ms


class Budget:
    """So many new traces a second, on the monotonic clock; a trace once decided stays decided."""

    def __init__(self, per_second: int) -> None:
        self._per_second = per_second
        self._left = float(per_second)
        self._filled_s: float | None = None
        self._decided: dict[int, bool] = {}

    def admits(self, trace: int, now_s: float) -> bool:
        known = self._decided.get(trace)
        if known is not None:
            return known
        if self._filled_s is not None:
            more = (now_s - self._filled_s) * self._per_second
            self._left = min(float(self._per_second), self._left + more)
        self._filled_s = now_s
        admitted = self._left >= 1
        self._left -= admitted
        if len(self._decided) >= REMEMBERED_MAX:
            del self._decided[next(iter(self._decided))]
        self._decided[trace] = admitted
        return admitted


def trace_hash(trace_id: bytes) -> int:
    """From 0 to 2**32, evenly, the same everywhere and for ever."""
    return crc32(trace_id) * _SPREAD % _HASHES


def _trace_id(event: Event) -> bytes:
    """Of a segment without decoding it, since its id stands first wherever an agent wrote it."""
    payload = event.payload
    if event.kind == Kind.SEGMENT and len(payload) > 2:
        length = payload[1]
        if payload[0] == _TRACE_ID_TAG and 0 < length < min(0x80, len(payload) - 1):
            return bytes(payload[2 : 2 + length])
    message = event.message
    holder = message if event.kind == Kind.SEGMENT else message.traceContext
    if not holder.traceId:
        raise Unfit("no_trace_id", "the record names no trace")
    return str(holder.traceId).encode()
