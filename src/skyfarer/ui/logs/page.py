"""The page of logs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from skyfarer.ui import fields
from skyfarer.ui.api import Status
from skyfarer.ui.listing import Listed, ListPage, Question
from skyfarer.ui.logs import api
from skyfarer.ui.logs.model import LogRow
from skyfarer.ui.logs.rows import log_rows


class LogsPage(ListPage[Question, LogRow]):
    path = "/logs"
    nothing = "No log fits. Look at a longer time, or ask for less."

    def form(self, asked: Question) -> Mapping[str, fields.Field]:
        return {
            "tags": fields.text("Tags", asked.tags, "level=ERROR, …"),
            "trace_id": fields.text("Trace id", asked.trace_id),
        }

    async def search(self, status: Status, asked: Question) -> Listed[LogRow]:
        return await api.search(self._client, status.time, asked)

    def lines(self, rows: Sequence[LogRow], status: Status) -> None:
        log_rows(rows, status)
