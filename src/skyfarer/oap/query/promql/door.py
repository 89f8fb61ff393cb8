"""The HTTP door of PromQL, under /prometheus/api/v1: GET with a query, POST with a form.

    query  query_range  series  labels  label/<name>/values  metadata  status/buildinfo
    rules  query_exemplars  (there are none)

Answers are Prometheus': `{"status": "success", "data"}`, or 400 with `{"status": "error",
"errorType": "bad_data", "error"}`; 503 where storage cannot answer now.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeAlias
from urllib.parse import parse_qs

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from skyfarer.base.errors import SkyfarerError
from skyfarer.oap.core import deadline
from skyfarer.oap.query import limits
from skyfarer.oap.query.counting import Counting
from skyfarer.oap.query.errors import QueryError
from skyfarer.oap.query.promql import Parameters, Prometheus

log = logging.getLogger(__name__)

BASE: Final = "/prometheus/api/v1"
FIELDS_MAX: Final = 100
Worker: TypeAlias = Callable[[Callable[[], Any]], Awaitable[Any]]
Body: TypeAlias = Callable[[Request], Awaitable[bytes]]


def routes(
    prometheus: Prometheus, counting: Counting, in_worker: Worker, body: Body
) -> list[Route]:
    """`in_worker` runs what blocks, `body` reads one within its bounds; both raise QueryError."""
    answer = _Answering(counting, in_worker, body)
    found = [
        Route(f"{BASE}/{path}", answer.to(f"promql {path}", call), methods=["GET", "POST"])
        for path, call in prometheus.routes().items()
    ]
    values = answer.to_named("promql label", prometheus.label_values)
    return [*found, Route(f"{BASE}/label/{{name}}/values", values, methods=["GET"])]


class _Answering:
    def __init__(self, counting: Counting, in_worker: Worker, body: Body) -> None:
        self._counting = counting
        self._in_worker = in_worker
        self._body = body

    def to(
        self, operation: str, call: Callable[[Parameters], Any]
    ) -> Callable[[Request], Awaitable[Response]]:
        return self.to_named(operation, lambda _, asked: call(asked))

    def to_named(
        self, operation: str, call: Callable[[str, Parameters], Any]
    ) -> Callable[[Request], Awaitable[Response]]:
        def counted(name: str, asked: Parameters) -> Any:
            time = deadline.within(limits.ANSWER_S_MAX, self._counting.clock)
            with self._counting.of(operation), time:
                return call(name, asked)

        async def endpoint(http: Request) -> Response:
            name = http.path_params.get("name", "")
            try:
                asked = await self._parameters(http)
                data = await self._in_worker(lambda: counted(name, asked))
            except SkyfarerError as refusal:
                return _refused(refusal)
            except Exception:
                log.exception("%s failed", http.url.path)
                return _json(500, _error("internal", "the server's log has the reason"))
            return _json(200, {"status": "success", "data": data})

        return endpoint

    async def _parameters(self, http: Request) -> Parameters:
        """Of the address, and of the form that stands in the body."""
        text = http.url.query
        if http.method == "POST":
            text = f"{text}&{(await self._body(http)).decode('utf-8', 'replace')}"
        try:
            return parse_qs(text, max_num_fields=FIELDS_MAX)
        except ValueError:
            raise QueryError(f"a form has at most {FIELDS_MAX} fields") from None


def _refused(refusal: SkyfarerError) -> Response:
    if isinstance(refusal, QueryError):
        status, kind = getattr(refusal, "status", 400), "bad_data"
    else:
        status, kind = 503, "unavailable"
    return _json(status, _error(kind, str(refusal)))


def _error(kind: str, sentence: str) -> dict[str, Any]:
    return {"status": "error", "errorType": kind, "error": sentence}


def _json(status: int, content: dict[str, Any]) -> Response:
    text = json.dumps(content, separators=(",", ":"))
    return Response(text, status, media_type="application/json")
