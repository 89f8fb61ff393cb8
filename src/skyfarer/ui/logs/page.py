"""The page of logs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from skyfarer.ui import fields
from skyfarer.ui.api import Status
from skyfarer.ui.listing import Listed, ListPage
from skyfarer.ui.logs import api, sought
from skyfarer.ui.logs.model import LogQuestion, LogRow
from skyfarer.ui.logs.rows import log_rows


class LogsPage(ListPage[LogQuestion, LogRow]):
    path = "/logs"

    def form(self, asked: LogQuestion) -> Mapping[str, fields.Field]:
        return {
            "keywords": fields.text("With words", asked.keywords, 'timeout "read failed" …'),
            "excluding": fields.text("Without words", asked.excluding, "healthcheck …"),
            "tags": fields.text("Tags", asked.tags, "level=ERROR, …"),
            "trace_id": fields.text("Trace id", asked.trace_id),
        }

    async def search(self, status: Status, asked: LogQuestion) -> Listed[LogRow]:
        return await api.search(self._client, status.time, asked)

    def lines(self, rows: Sequence[LogRow], status: Status) -> None:
        log_rows(rows, status, self._window)

    def nothing(self, asked: LogQuestion) -> str:
        return "Nothing was looked for." if asked.fault else sought.nothing_found(asked)

    def advice(self, asked: LogQuestion) -> str:
        return asked.fault or sought.advice(asked)
