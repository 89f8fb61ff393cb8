"""The messages of one read, on their way to the queue.

Appending costs per call of `append`, not per message, so all messages of one kind that one read of
a socket brought are appended together, whichever of the connection's calls they came in. A failure
is told to the calls whose messages it concerns and to no other.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from skyfarer.base.errors import PermanentError, RetryableError
from skyfarer.base.units import MIB
from skyfarer.telemetry.metrics import Registry
from skyfarer.telemetry.table import RECEIVER_MESSAGES
from skyfarer.wire.calls import Call
from skyfarer.wire.split import split_repeated
from skyfarer.wire.status import Status, StatusError, of_error

log = logging.getLogger(__name__)

Append = Callable[[int, Sequence[bytes]], object]

# A read of compressed messages may inflate a thousandfold; beyond this it is appended in parts.
INFLATED_PENDING_BYTES_MAX: Final = 8 * MIB


class Unfinished:
    """Bytes of messages that have begun and not ended, over all connections of a server.

    Each message alone is bounded, but thousands of streams may each hold one.
    """

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self.bytes = 0

    def count(self, call: Call) -> None:
        """StatusError when this call's bytes are too many for the server."""
        held = call.splitter.held_bytes if call.splitter is not None else 0
        self.bytes += held - call.counted_bytes
        call.counted_bytes = held
        if held and self.bytes > self._bytes_max:
            raise StatusError(
                Status.RESOURCE_EXHAUSTED, "too many bytes of unfinished messages, try again"
            )

    def forget(self, call: Call) -> None:
        self.bytes -= call.counted_bytes
        call.counted_bytes = 0


class Keeper:
    """The queue's append with what must be known once per server: whether it is broken."""

    def __init__(self, append: Append) -> None:
        self._append = append
        self._broken = False

    def append(self, kind: int, payloads: Sequence[bytes]) -> StatusError | None:
        """None when the payloads are durable."""
        try:
            self._append(kind, payloads)
        except (RetryableError, PermanentError) as error:
            return of_error(error)
        except Exception as error:
            # Said once until it works again: a broken disk must not fill what is left with logs.
            if not self._broken:
                log.exception("messages cannot be kept: append failed")
            self._broken = True
            return of_error(error)
        self._broken = False
        return None


class _Group:
    __slots__ = ("payloads", "sources")

    def __init__(self) -> None:
        self.payloads: list[bytes] = []
        self.sources: list[tuple[Call, int, int]] = []

    def counts(self) -> Iterator[tuple[str, int]]:
        counts: dict[str, int] = {}
        for call, start, end in self.sources:
            counts[call.name] = counts.get(call.name, 0) + end - start
        return iter(counts.items())

    def by_call(self) -> dict[Call, list[bytes]]:
        parts: dict[Call, list[bytes]] = {}
        for call, start, end in self.sources:
            parts.setdefault(call, []).extend(self.payloads[start:end])
        return parts


class Intake:
    """One per connection; used on the event loop only."""

    def __init__(self, keeper: Keeper, unfinished: Unfinished, registry: Registry) -> None:
        self._keeper = keeper
        self._unfinished = unfinished
        self._registry = registry
        self._groups: dict[int, _Group] = {}
        self._inflated_bytes = 0

    @property
    def full(self) -> bool:
        return self._inflated_bytes > INFLATED_PENDING_BYTES_MAX

    def take(self, call: Call, data: bytes) -> None:
        """Splits DATA of a call; its messages wait for `flush`. StatusError ends the call."""
        splitter, rpc = call.splitter, call.rpc
        if splitter is None or rpc is None:
            self._discard(call, data)
            return
        group = self._groups.get(rpc.kind)
        if group is None:
            group = self._groups[rpc.kind] = _Group()
        payloads = group.payloads
        start = len(payloads)
        try:
            splitter.feed(data, payloads)
        finally:
            if splitter.inflates:
                self._inflated_bytes += sum(map(len, payloads[start:]))
            received = len(payloads) - start
            if rpc.repeated_field is not None:
                payloads[start:] = _elements(payloads[start:], rpc.repeated_field)
            if received:
                group.sources.append((call, start, len(payloads)))
        call.count(received)
        self._unfinished.count(call)

    def _discard(self, call: Call, data: bytes) -> None:
        if call.splitter is not None:
            messages: list[bytes] = []
            call.splitter.feed(data, messages)
            call.count(len(messages))
            self._unfinished.count(call)

    def flush(self) -> dict[Call, StatusError]:
        """Appends what was taken, one append per kind; returns the calls that failed, and why."""
        failed: dict[Call, StatusError] = {}
        for kind, group in self._groups.items():
            if group.payloads:
                failed.update(self._append(kind, group))
        self._groups.clear()
        self._inflated_bytes = 0
        return failed

    def _append(self, kind: int, group: _Group) -> dict[Call, StatusError]:
        error = self._keeper.append(kind, group.payloads)
        if error is None:
            for name, count in group.counts():
                self._registry.inc(RECEIVER_MESSAGES, count, rpc=name)
            return {}
        parts = group.by_call()
        if error.status is not Status.INVALID_ARGUMENT or len(parts) == 1:
            return dict.fromkeys(parts, error)
        # One call's bad message must not cost the others theirs.
        failed: dict[Call, StatusError] = {}
        for call, payloads in parts.items():
            error = self._keeper.append(kind, payloads)
            if error is not None:
                failed[call] = error
            else:
                self._registry.inc(RECEIVER_MESSAGES, len(payloads), rpc=call.name)
        return failed


def _elements(messages: list[bytes], field: int) -> list[bytes]:
    elements: list[bytes] = []
    for message in messages:
        parts = split_repeated(message, field)
        elements.extend((message,) if parts is None else parts)
    return elements
