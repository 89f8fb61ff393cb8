"""What the pages ask of the OAP about logs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from skyfarer.ui.api import OapClient
from skyfarer.ui.fields import pairs
from skyfarer.ui.listing import Listed
from skyfarer.ui.logs.model import LogQuestion, LogRow
from skyfarer.ui.model import ServerTime

_LOGS = """query logs($condition: LogQueryCondition) {
  queryLogs(condition: $condition) {
    errorReason
    logs { serviceName endpointName traceId timestamp content tags { key value } }
  }
}"""


async def search(client: OapClient, time: ServerTime, asked: LogQuestion) -> Listed[LogRow]:
    services = await client.services()
    named = {service.name: service.id for service in services}
    names = tuple(service.name for service in services if service.normal)
    if asked.fault or (asked.service and asked.service not in named):
        return Listed((), names, False)
    condition: dict[str, Any] = {
        "paging": {"pageNum": asked.page, "pageSize": LogQuestion.page_rows},
        "serviceId": named.get(asked.service),
        "tags": [{"key": key, "value": value} for key, value in pairs(asked.tags)] or None,
        "keywordsOfContent": asked.wanted or None,
        "excludingKeywordsOfContent": asked.unwanted or None,
    }
    if asked.trace_id:
        condition["relatedTrace"] = {"traceId": asked.trace_id}
    else:
        condition["queryDuration"] = asked.window.duration(time)
    rows, missing = await _logs(client, condition)
    return Listed(rows, names, len(rows) == LogQuestion.page_rows, missing)


async def logs_of_trace(client: OapClient, trace_id: str) -> tuple[LogRow, ...]:
    """The first of them, oldest first."""
    asked = {
        "relatedTrace": {"traceId": trace_id},
        "paging": {"pageNum": 1, "pageSize": LogQuestion.page_rows},
        "queryOrder": "ASC",
    }
    return (await _logs(client, asked))[0]


async def _logs(client: OapClient, asked: dict[str, Any]) -> tuple[tuple[LogRow, ...], str]:
    condition = {name: value for name, value in asked.items() if value is not None}
    answer = (await client.graphql(_LOGS, {"condition": condition}))["queryLogs"]
    return tuple(map(_row, answer["logs"])), answer["errorReason"] or ""


def _row(found: Mapping[str, Any]) -> LogRow:
    return LogRow(
        time_ms=found["timestamp"],
        service=found["serviceName"] or "",
        endpoint=found["endpointName"] or "",
        trace_id=found["traceId"] or "",
        text=found["content"] or "",
        tags=tuple((tag["key"], tag["value"] or "") for tag in found["tags"] or ()),
    )
