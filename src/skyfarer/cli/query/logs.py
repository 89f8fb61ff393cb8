"""`skyfarer query logs`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from skyfarer.cli.query.client import Oap
from skyfarer.cli.query.drawing import plain
from skyfarer.cli.query.times import Span
from skyfarer.cli.query.traces import pairs, whose

CONTENT_MAX: Final = 2000
_LOGS = """query logs($condition: LogQueryCondition) {
  found: queryLogs(condition: $condition) {
    errorReason
    logs {
      serviceName serviceInstanceName endpointName traceId timestamp contentType content
      tags { key value }
    }
  }
}"""


@dataclass(frozen=True)
class Wanted:
    service: str | None = None
    instance: str | None = None
    endpoint: str | None = None
    trace: str | None = None
    tags: Sequence[str] = ()
    keywords: Sequence[str] = ()
    page: int = 1
    limit: int = 50


def logs(oap: Oap, span: Span, wanted: Wanted, as_json: bool) -> int:
    """The newest, the newest of them last, as a log is read. Of a trace, whenever it was."""
    condition: dict[str, Any] = {
        **whose(oap, span, wanted.service, wanted.instance, wanted.endpoint),
        "tags": pairs(wanted.tags),
        "keywordsOfContent": list(wanted.keywords),
        "paging": {"pageNum": wanted.page, "pageSize": wanted.limit},
    }
    if wanted.trace is None:
        condition["queryDuration"] = span.by_seconds()
    else:
        condition["relatedTrace"] = {"traceId": wanted.trace}
    found = oap.ask(_LOGS, condition=condition)["found"]
    told = list(reversed(found["logs"]))
    if as_json:
        print(json.dumps(told, indent=2, ensure_ascii=False))
        return 0
    for one in told:
        print(_line(one, span))
    if not told:
        print("no logs like that" + ("" if wanted.trace else " in that time"))
    if found["errorReason"]:
        print(plain(found["errorReason"]))
    return 0


def _line(one: dict[str, Any], span: Span) -> str:
    level = next((tag["value"] for tag in one["tags"] or () if tag["key"] == "level"), "")
    of = f"{one['serviceName'] or ''}/{one['serviceInstanceName'] or ''}".rstrip("/")
    head = f"{span.clock(one['timestamp'], milliseconds=True)} {plain(level):5} {plain(of)}"
    return f"{head}: {plain(one['content'], CONTENT_MAX)}"
