"""The HTTP door of the query room.

    POST /graphql               {"query", "variables", "operationName"} → 200 with data and errors
    GET  /healthcheck           200 when healthy, 503 when not
    GET  /status/ledger         accepted, delivered, queued, dropped by reason, balanced
    GET  /status/pipeline       this node's way from agents to storage (`pipeline`)
    GET  /status/registry       what v2 agents were given ids for (`registry`)
    GET  /status/cluster/nodes  {"nodes": [{"host", "port", "self"}]}, in the order of all
    GET  /status/config/ttl, /debugging/config/dump  how this node is configured (`status`)
    GET, POST /prometheus/api/v1/…  PromQL (`promql.door`)
    POST /v3/… and more         what agents report (`Posts.paths`), passed on to the receiver as it
                                comes, and its answer back

A body that is no request at all is 400, one too large 413, a server with too much to do 503; each
carries the same `{"errors": [{"message"}]}`, so that a client has one place to look.

The door is there long before the program behind it is. Until then everything is 503 at once, with
`Retry-After`: a load balancer or a probe sees that nothing may be sent here yet, `curl --retry` and
a page come back, and nobody hangs on a connection for as long as Spark takes to start.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from concurrent.futures import Executor
from typing import Any, Protocol, TypeVar

import orjson
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect
from starlette.requests import Request as HttpRequest
from starlette.responses import Response
from starlette.routing import Route

from skyfarer.oap.core.cluster import Node, in_order
from skyfarer.oap.query import limits
from skyfarer.oap.query.engine import Engine, Request
from skyfarer.oap.query.errors import QueryError
from skyfarer.oap.query.promql import Prometheus
from skyfarer.oap.query.promql import door as promql
from skyfarer.oap.query.status import JSON, Handler, Status
from skyfarer.telemetry.health import NOT_STARTED, Health

log = logging.getLogger(__name__)

T = TypeVar("T")
Look = Callable[[Mapping[str, str]], dict[str, Any]]
"""From the parameters of a request; called by a worker. A QueryError is the request's fault."""

RETRY_AFTER_S = "1"
STARTING = "the OAP is starting; try again in a moment"


class Posts(Protocol):
    """Where what agents post goes. Event loop only."""

    @property
    def paths(self) -> tuple[str, ...]: ...

    async def pass_on(
        self, path: str, headers: Iterable[tuple[bytes, bytes]], body: AsyncIterator[bytes]
    ) -> tuple[int, Mapping[str, str], bytes]:
        """Status, headers and body of the answer to a POST. Raises what `body` raises."""


class Door:
    """Runs on the event loop; whatever may block is handed to `workers`. `looks` are what can be
    asked for under /status, by name."""

    def __init__(
        self,
        engine: Engine,
        looks: Mapping[str, Look],
        health: Health,
        workers: Executor,
        posts: Posts | None = None,
        status: Status | None = None,
        nodes: Callable[[], Iterable[Node]] = tuple,
        prometheus: Prometheus | None = None,
    ) -> None:
        self._engine = engine
        self._looks = looks
        self._health = health
        self._workers = workers
        self._posts = posts
        self._status = status
        self._nodes = nodes
        self._prometheus = prometheus
        self._waiting = 0

    def app(self) -> Starlette:
        return Starlette(
            routes=[
                Route("/graphql", self.graphql, methods=["POST"]),
                Route("/healthcheck", self.healthcheck, methods=["GET"]),
                *(
                    Route(f"/status/{what}", self._looked(what, look), methods=["GET"])
                    for what, look in self._looks.items()
                ),
                *(
                    Route(path, self._once_started(answer), methods=["GET"])
                    for path, answer in (self._status.table() if self._status else {}).items()
                ),
                Route("/status/cluster/nodes", self.nodes, methods=["GET"]),
                *(Route(path, self.post, methods=["POST"]) for path in self._posted()),
                *self._promql(),
            ]
        )

    def _looked(self, what: str, look: Look) -> Handler:
        async def answered(http: HttpRequest) -> Response:
            try:
                return _json(200, await self._in_worker(lambda: look(http.query_params)))
            except _NotNowError as refusal:
                return _refusal(503, refusal)
            except QueryError as refusal:
                return _refusal(400, refusal)
            except Exception:
                log.exception("the %s could not be read", what)
                return _refusal(503, QueryError(f"the {what} cannot be read now"))

        return answered

    def _promql(self) -> list[Route]:
        if self._prometheus is None:
            return []
        counting = self._engine.counting
        return promql.routes(self._prometheus, counting, self._in_worker, _body)

    def _posted(self) -> tuple[str, ...]:
        return self._posts.paths if self._posts is not None else ()

    def _once_started(self, answer: Handler) -> Handler:
        async def answered(http: HttpRequest) -> Response:
            if self._health.score() == NOT_STARTED:
                return _refusal(503, _NotNowError(STARTING))
            return await answer(http)

        return answered

    async def post(self, http: HttpRequest) -> Response:
        assert self._posts is not None
        try:
            status, headers, body = await self._posts.pass_on(
                http.scope["path"], http.headers.raw, http.stream()
            )
        except ClientDisconnect:
            return Response(status_code=400)
        return Response(body, status, headers)

    async def graphql(self, http: HttpRequest) -> Response:
        try:
            request = parse_request(await _body(http), _is_json(http))
        except _TooLargeError as refusal:
            return _refusal(413, refusal)
        except QueryError as refusal:
            return _refusal(400, refusal)
        except ClientDisconnect:
            return Response(status_code=400)
        try:
            return _json(200, await self._in_worker(lambda: self._engine.answer(request)))
        except _NotNowError as refusal:
            return _refusal(503, refusal)

    async def healthcheck(self, http: HttpRequest) -> Response:
        score = self._health.score()
        return _json(
            200 if score == 0 else 503, {"score": score, "details": self._health.details()}
        )

    async def nodes(self, http: HttpRequest) -> Response:
        if self._health.score() == NOT_STARTED:
            return _refusal(503, QueryError(STARTING))
        listed = [
            {"host": node.host, "port": node.port, "self": node.is_self}
            for node in in_order(self._nodes())
        ]
        return _json(200, {"nodes": listed})

    async def _in_worker(self, call: Callable[[], T]) -> T:
        if self._health.score() == NOT_STARTED:
            raise _NotNowError(STARTING)
        if self._waiting >= limits.REQUESTS_WAITING_MAX:
            raise _NotNowError("too many requests are waiting; try again in a moment")
        self._waiting += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._workers, call)
        finally:
            self._waiting -= 1


class _TooLargeError(QueryError):
    status = 413


class _NotNowError(QueryError):
    status = 503


async def _body(http: HttpRequest) -> bytes:
    body = bytearray()
    try:
        async with asyncio.timeout(limits.BODY_TIMEOUT_S):
            async for chunk in http.stream():
                body += chunk
                if len(body) > limits.BODY_BYTES_MAX:
                    raise _TooLargeError(f"the body is larger than {limits.BODY_BYTES_MAX} bytes")
    except TimeoutError:
        raise QueryError(f"the body took longer than {limits.BODY_TIMEOUT_S:g} s") from None
    return bytes(body)


def _is_json(http: HttpRequest) -> bool:
    """A browser asks us first before it sends such a body for a page of somebody else's."""
    return http.headers.get("content-type", "").partition(";")[0].strip().lower() == JSON


def parse_request(body: bytes, may_change: bool = True) -> Request:
    """QueryError when the bytes are no GraphQL request in JSON."""
    try:
        document = json.loads(body, parse_constant=_no_constant)
        if b"\\u" in body:  # an escaped half of a surrogate pair is no text anyone can store
            json.dumps(document, ensure_ascii=False).encode("utf-8")
    except (ValueError, RecursionError):
        raise QueryError("the body is not JSON") from None
    if not isinstance(document, dict) or not isinstance(document.get("query"), str):
        raise QueryError('the body must be a JSON object with a "query" text')
    variables, operation = document.get("variables"), document.get("operationName")
    if variables is not None and not isinstance(variables, dict):
        raise QueryError('"variables" must be an object')
    if operation is not None and not isinstance(operation, str):
        raise QueryError('"operationName" must be text')
    return Request(document["query"], variables or {}, operation or None, may_change)


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _refusal(status: int, refusal: QueryError) -> Response:
    return _json(status, {"errors": [{"message": str(refusal)}]})


def _json(status: int, content: dict[str, Any]) -> Response:
    try:
        text = orjson.dumps(content)
    except TypeError:  # storage may hold a lone surrogate, and that must not cost the answer
        text = json.dumps(content, separators=(",", ":")).encode()
    headers = {"Retry-After": RETRY_AFTER_S} if status == 503 else None
    return Response(text, status, headers, media_type=JSON)
