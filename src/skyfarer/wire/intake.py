"""The messages of one read, on their way to the queue.

Appending costs per call of `append`, not per message, so all messages of one kind that one read of
a socket brought to one door are appended together, whichever of the connection's calls they came
in. A failure is told to the calls whose messages it concerns and to no other.

Messages are kept unread, unless the server is to refuse malformed ones. Then each is walked at its
top level, and the first that cannot be walked to its end ends its call, behind the messages before
it. Messages nested in it are not looked at.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import compress
from typing import Final

from skyfarer.base.units import MIB
from skyfarer.telemetry.metrics import Registry
from skyfarer.telemetry.table import RECEIVER_MESSAGES, RECEIVER_REFUSED
from skyfarer.wire.calls import Call
from skyfarer.wire.framing import Splitter
from skyfarer.wire.identity import Identity
from skyfarer.wire.numbered import NumberedGroups
from skyfarer.wire.numbering import Numbering
from skyfarer.wire.routes import Lane, Route
from skyfarer.wire.split import sound_at_top, split_repeated
from skyfarer.wire.status import Status, StatusError
from skyfarer.wire.twins import is_v2

# A read of compressed messages may inflate a thousandfold, and one of small messages that lack
# their identity may grow as much; beyond this it is appended in parts.
PENDING_BYTES_MAX: Final = 8 * MIB
MALFORMED: Final = "malformed"  # a value of a metric's label


class Unfinished:
    """Bytes of messages that have begun and not ended, and of what streams must remember, over all
    connections of a server.

    Each alone is bounded, but thousands of streams may each hold one.
    """

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self.bytes = 0

    def count(self, call: Call) -> None:
        """StatusError when this call needs more, and that is too much for the server."""
        held = call.held_bytes
        if call.identity is not None:
            held += call.identity.held_bytes
        more = held - call.counted_bytes
        self.bytes += more
        call.counted_bytes = held
        if more > 0 and self.bytes > self._bytes_max:
            raise StatusError(
                Status.RESOURCE_EXHAUSTED, "too many bytes of unfinished messages, try again"
            )

    def forget(self, call: Call) -> None:
        self.bytes -= call.counted_bytes
        call.counted_bytes = 0


class _Group:
    __slots__ = ("payloads", "sources")

    def __init__(self) -> None:
        self.payloads: list[bytes] = []
        self.sources: list[tuple[Call, int, int]] = []

    def add(self, call: Call, payload: bytes) -> None:
        at = len(self.payloads)
        self.payloads.append(payload)
        if self.sources and self.sources[-1][0] is call:
            self.sources[-1] = (call, self.sources[-1][1], at + 1)
        else:
            self.sources.append((call, at, at + 1))

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

    def __init__(
        self, unfinished: Unfinished, registry: Registry, refuse_malformed: bool = False
    ) -> None:
        self._unfinished = unfinished
        self._registry = registry
        self._refuse_malformed = refuse_malformed
        self._groups: dict[Lane, _Group] = {}
        self._numbered = NumberedGroups()
        self._failed: dict[Call, StatusError] = {}
        self._grown_bytes = 0

    @property
    def full(self) -> bool:
        return self._grown_bytes > PENDING_BYTES_MAX

    def take(self, call: Call, data: bytes) -> None:
        """Splits DATA of a call; its messages wait for `flush`. StatusError ends the call."""
        splitter, route = call.splitter, call.route
        if splitter is None or route is None:
            self._discard(call, data)
            return
        lane = route.lane
        if lane is None:
            raise StatusError(Status.UNAVAILABLE, "this method is no longer served here")
        if call.numbering is not None:
            self._take_numbered(call, call.numbering, splitter, route, lane, data)
            return
        group = self._groups.get(lane)
        if group is None:
            group = self._groups[lane] = _Group()
        payloads = group.payloads
        start = len(payloads)
        error = self._split(call, splitter, route, data, payloads)
        received = len(payloads) - start
        if route.rpc.repeated_field is not None:
            payloads[start:] = _elements(payloads[start:], route.rpc.repeated_field)
        elif route.v2_lane is not None:
            self._part(call, route.v2_lane, payloads, start)
        if received:
            group.sources.append((call, start, len(payloads)))
            if call.identity is not None:
                self._identify(call, call.identity, lane)
        self._count(call, received, error)

    def _take_numbered(
        self,
        call: Call,
        numbering: Numbering,
        splitter: Splitter,
        route: Route,
        lane: Lane,
        data: bytes,
    ) -> None:
        messages: list[bytes] = []
        error = self._split(call, splitter, route, data, messages)
        if call.identity is None:
            self._numbered.add_all(call, numbering, lane, route, messages)
        else:
            for message in messages:
                whole = call.identity.complete(message)
                self._numbered.add(call, numbering, lane, whole)
                self._grown_bytes += len(whole) - len(message)
                if self.full:
                    self._append_all()
        self._count(call, len(messages), error)

    def _split(
        self, call: Call, splitter: Splitter, route: Route, data: bytes, into: list[bytes]
    ) -> StatusError | None:
        """Adds the messages that `data` completes; what ends the call is behind all of them."""
        start, error = len(into), None
        try:
            splitter.feed(data, into)
        except StatusError as failure:
            error = failure
        if self._refuse_malformed:
            bad = _first_malformed(into, start, route.rpc.repeated_field)
            if bad < len(into):
                del into[bad:]
                self._registry.inc(RECEIVER_REFUSED, rpc=call.name, reason=MALFORMED)
                error = _malformed(call.messages + bad - start)
        if splitter.inflates:
            self._grown_bytes += sum(map(len, into[start:]))
        return error

    def _count(self, call: Call, received: int, error: StatusError | None) -> None:
        if error is not None:
            raise error
        call.count(received)
        self._unfinished.count(call)

    def _part(self, call: Call, v2_lane: Lane, payloads: list[bytes], start: int) -> None:
        """Moves what is of v2 of the messages just taken to its own lane."""
        told = [is_v2(v2_lane.kind, payload) for payload in payloads[start:]]
        if any(told):
            messages = payloads[start:]
            payloads[start:] = [one for one, moved in zip(messages, told, strict=True) if not moved]
            group = self._groups.setdefault(v2_lane, _Group())
            for message in compress(messages, told):
                group.add(call, message)

    def _identify(self, call: Call, identity: Identity, lane: Lane) -> None:
        """Makes the messages just taken whole, one by one."""
        _, start, end = self._groups[lane].sources.pop()
        messages = self._groups[lane].payloads[start:end]
        del self._groups[lane].payloads[start:end]
        for message in messages:
            whole = identity.complete(message)
            self._groups.setdefault(lane, _Group()).add(call, whole)
            self._grown_bytes += len(whole) - len(message)
            if self.full:
                self._append_all()

    def _discard(self, call: Call, data: bytes) -> None:
        if call.splitter is not None:
            messages: list[bytes] = []
            call.splitter.feed(data, messages)
            call.count(len(messages))
            self._unfinished.count(call)

    def flush(self) -> dict[Call, StatusError]:
        """Appends what was taken, once per lane; returns the calls that failed, and why."""
        self._append_all()
        failed, self._failed = self._failed, {}
        return failed

    def _append_all(self) -> None:
        for lane, group in self._groups.items():
            if group.payloads:
                self._failed.update(self._append(lane, group))
        self._groups.clear()
        for call, lane, numbered in self._numbered.take():
            error = lane.keeper.append(lane.kind, numbered)
            if error is not None:
                self._failed[call] = error
            else:
                self._registry.inc(RECEIVER_MESSAGES, len(numbered), rpc=call.name)
        self._grown_bytes = 0

    def _append(self, lane: Lane, group: _Group) -> dict[Call, StatusError]:
        error = lane.keeper.append(lane.kind, group.payloads)
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
            error = lane.keeper.append(lane.kind, payloads)
            if error is not None:
                failed[call] = error
            else:
                self._registry.inc(RECEIVER_MESSAGES, len(payloads), rpc=call.name)
        return failed


def _first_malformed(messages: list[bytes], start: int, field: int | None) -> int:
    """Returns the index of the first message that is not sound at its top level, or the length of
    the list. Of a collection each element is judged as well: it becomes a record."""
    for at in range(start, len(messages)):
        message = messages[at]
        if not sound_at_top(message):
            return at
        if field is not None and not all(map(sound_at_top, split_repeated(message, field) or ())):
            return at
    return len(messages)


def _malformed(before: int) -> StatusError:
    return StatusError(
        Status.INVALID_ARGUMENT,
        f"message {before + 1} of the call is no well-formed protobuf message; it is not kept,"
        " those before it are",
    )


def _elements(messages: list[bytes], field: int) -> list[bytes]:
    elements: list[bytes] = []
    for message in messages:
        parts = split_repeated(message, field)
        elements.extend((message,) if parts is None else parts)
    return elements
