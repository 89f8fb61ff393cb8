"""From a whole HTTP request to records in a queue, or to the reason why not."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Final

from skyfarer.base.clock import Clock, SystemClock
from skyfarer.base.units import KIB
from skyfarer.telemetry.metrics import Registry
from skyfarer.telemetry.table import RECEIVER_MESSAGES, RECEIVER_REFUSED
from skyfarer.wire.http.answers import JSON, PROTOBUF, Answer, Refused, delivered, taken
from skyfarer.wire.http.body import RETRY_AFTER
from skyfarer.wire.http.endpoints import ENDPOINTS, Dialect, Endpoint
from skyfarer.wire.http.proto_json import records
from skyfarer.wire.intake import MALFORMED
from skyfarer.wire.metadata import Metadata
from skyfarer.wire.relay import Relay
from skyfarer.wire.routes import Append, Keeper
from skyfarer.wire.rpc import Kind
from skyfarer.wire.split import sound_at_top
from skyfarer.wire.status import Status, StatusError

# Converting JSON takes the event loop's time: after so many bytes it lets others have a turn.
GIVE_WAY_BYTES: Final = 4 * KIB
_ALLOWED: Final = (("allow", "POST"),)
# Kept as they came.
FOREIGN: Final = (Dialect.TELEGRAF, Dialect.ZIPKIN, Dialect.FIREHOSE)
_HTTP_STATUS: Final = {
    Status.INVALID_ARGUMENT: 400,
    Status.RESOURCE_EXHAUSTED: 503,
    Status.UNAVAILABLE: 503,
    Status.DEADLINE_EXCEEDED: 503,
}


class Door:
    """An endpoint that is served, and who keeps what comes in by it."""

    __slots__ = ("endpoint", "keeper")

    def __init__(self, endpoint: Endpoint, keeper: Keeper) -> None:
        self.endpoint = endpoint
        self.keeper = keeper


class Desk:
    """One per server; event loop only. `otlp_json`: OpenTelemetry's exporters may speak JSON.
    `relay` answers what is asked."""

    def __init__(
        self,
        registry: Registry,
        otlp_json: bool = False,
        relay: Relay | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._registry = registry
        self._relay = relay
        self._clock = clock or SystemClock()
        self._otlp_types = (PROTOBUF, JSON) if otlp_json else (PROTOBUF,)
        self._doors: Mapping[str, Door] = {}
        # One body at a time: its text and its records are several times what arrived.
        self._converting = asyncio.Lock()

    def replace(self, doors: Mapping[str, Append]) -> None:
        """For requests that begin after it; ValueError, and nothing changed, for a path that is no
        endpoint."""
        for path in doors:
            if path not in ENDPOINTS:
                raise ValueError(f"a door was given for {path}, which is no path of the HTTP table")
        keepers = {append: Keeper(append) for append in doors.values()}
        self._doors = {
            path: Door(ENDPOINTS[path], keepers[append]) for path, append in doors.items()
        }

    def door(self, path: str) -> Door | None:
        return self._doors.get(path)

    def find(self, path: str) -> Door:
        """Refused when it is not served."""
        door = self._doors.get(path)
        if door is None:
            served = ", ".join(self._doors) or "nothing"
            raise Refused(404, f"{path[:64]} is not served here; what is: {served}")
        return door

    def check(self, door: Door, method: bytes, content_type: str) -> None:
        """Refused for what need not be read to be refused."""
        path = door.endpoint.path
        if method != b"POST":
            raise Refused(405, f"{path} takes POST only", _ALLOWED)
        if door.endpoint.dialect is Dialect.OTLP and content_type not in self._otlp_types:
            types = " or ".join(self._otlp_types)
            raise Refused(
                415,
                f"{path} takes {types} only, not {content_type[:64] or 'an unnamed type'}; set"
                " OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf",
            )

    async def take(self, door: Door, body: bytes, content_type: str = "") -> Answer:
        """Returns when all of the body is durable; Refused when none of it is kept, or when nobody
        can tell how much."""
        endpoint = door.endpoint
        if endpoint.dialect is Dialect.OTLP and content_type == JSON:
            from skyfarer.wire.http.otlp_json import export_request  # a satellite has no use for it

            async with self._converting:
                request = await asyncio.to_thread(export_request, int(endpoint.kind), body)
            self._keep(door, [request] if request else [])
            return taken(endpoint.dialect, content_type)
        if endpoint.dialect is Dialect.V2:
            return await self._take_v2(door, body)
        if endpoint.dialect in FOREIGN:
            return await self._take_foreign(door, body, content_type)
        if endpoint.dialect in (Dialect.OBJECT, Dialect.ARRAY):
            async with self._converting:
                self._keep(door, await _converted(endpoint, body))
        elif not sound_at_top(body):
            self._registry.inc(RECEIVER_REFUSED, rpc=endpoint.path, reason=MALFORMED)
            hint = "; JSON is taken at /v3/logs" if endpoint.dialect is Dialect.LOGGING else ""
            raise Refused(400, f"the body is no protobuf message{hint}")
        else:
            self._keep(door, [body])
        return taken(endpoint.dialect)

    async def _take_v2(self, door: Door, body: bytes) -> Answer:
        from skyfarer.wire.http import v2_json  # a satellite has no use for it

        if door.endpoint.kind is not Kind.NONE:
            async with self._converting:
                self._keep(door, await asyncio.to_thread(v2_json.segments, body))
            return taken(door.endpoint.dialect)
        if self._relay is None:
            raise Refused(503, f"nobody answers {door.endpoint.path} here")
        async with self._converting:
            question = await asyncio.to_thread(v2_json.question, door.endpoint.path, body)
        try:
            answer = await self._relay.ask(question.rpc, question.message, Metadata())
        except StatusError as error:
            raise _refused(error) from error
        return Answer(200, JSON, question.answered(answer))

    async def _take_foreign(self, door: Door, body: bytes, content_type: str) -> Answer:
        from skyfarer.wire.http.foreign import request_id  # a satellite has no use for it

        kind = door.endpoint.kind_of(content_type)
        async with self._converting:
            number = await asyncio.to_thread(request_id, int(kind), body)
        self._keep(door, [body], kind)
        if door.endpoint.dialect is Dialect.FIREHOSE:
            return delivered(number, self._clock.now_ms())
        return taken(door.endpoint.dialect)

    def _keep(self, door: Door, payloads: list[bytes], kind: Kind | None = None) -> None:
        if not payloads:
            return
        error = door.keeper.append(int(kind or door.endpoint.kind), payloads)
        if error is None:
            self._registry.inc(RECEIVER_MESSAGES, len(payloads), rpc=door.endpoint.path)
            return
        raise _refused(error)


async def _converted(endpoint: Endpoint, body: bytes) -> list[bytes]:
    payloads: list[bytes] = []
    since_bytes = 0
    for payload in records(endpoint.kind, body, endpoint.dialect is Dialect.ARRAY):
        payloads.append(payload)
        since_bytes += len(payload)
        if since_bytes >= GIVE_WAY_BYTES:
            since_bytes = 0
            await asyncio.sleep(0)
    return payloads


def _refused(error: StatusError) -> Refused:
    status = _HTTP_STATUS.get(error.status, 500)
    return Refused(status, error.message, RETRY_AFTER if status == 503 else ())


def media_type(content_type: str) -> str:
    """Without parameters: `application/json; charset=utf-8` is JSON all the same."""
    return content_type.partition(";")[0].strip().lower()
