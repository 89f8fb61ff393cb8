"""How this node is configured, over HTTP.

    GET /status/config/ttl      {"metrics": {"minute": 7, …}, "records": {…}}, in days
    GET /debugging/config/dump  {"core.default.restPort": "12800", …}, secrets masked

Lines of `key=value` for whoever does not ask for JSON, as the original.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterable, Mapping

from starlette.requests import Request
from starlette.responses import Response

from skyfarer.oap.query.retention import DaysKept

JSON = "application/json"
COLD = "cold"

Handler = Callable[[Request], Awaitable[Response]]


class Status:
    """Event loop only; nothing blocks. `configuration` is shown as it is: whoever makes it has
    masked what is secret."""

    def __init__(self, retention: DaysKept, configuration: Mapping[str, str]) -> None:
        self._retention = retention
        self._configuration = configuration

    def table(self) -> dict[str, Handler]:
        return {"/status/config/ttl": self.ttl, "/debugging/config/dump": self.dump}

    async def ttl(self, http: Request) -> Response:
        kinds = {"metrics": self._retention.metrics(), "records": self._retention.records()}
        lines = (
            (f"{kind}.{_dotted(name)}", str(days))
            for kind, all_days in kinds.items()
            for name, days in all_days.items()
        )
        return _shown(http, kinds, lines)

    async def dump(self, http: Request) -> Response:
        return _shown(http, self._configuration, self._configuration.items())


def _dotted(name: str) -> str:
    """`coldMinute` is `minute.cold` in a line."""
    if not name.startswith(COLD):
        return name
    rest = name.removeprefix(COLD)
    return f"{rest[0].lower()}{rest[1:]}.{COLD}"


def _shown(http: Request, whole: object, lines: Iterable[tuple[str, str]]) -> Response:
    if JSON in http.headers.get("accept", ""):
        return Response(json.dumps(whole), media_type=JSON)
    return Response("".join(f"{key}={value}\n" for key, value in lines), media_type="text/plain")
