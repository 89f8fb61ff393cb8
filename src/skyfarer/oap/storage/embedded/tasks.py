"""What agents are to do: their settings, and tasks of the profiler (`oap.core.tasks`)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Final

import duckdb

from skyfarer.base.errors import PermanentError
from skyfarer.oap.core import ids
from skyfarer.oap.core.tasks import AgentSettings, ProfileTask

DDL: Final = """
CREATE TABLE IF NOT EXISTS agent_setting (
    service VARCHAR, key VARCHAR, value VARCHAR NOT NULL, PRIMARY KEY (service, key));
"""
TASKS_MAX: Final = 10_000
"""SkyWalking's bound: more of them are not read."""

_END: Final = "start_time + duration * 60000"


class AgentTables(ABC):
    @abstractmethod
    def _reading(self) -> AbstractContextManager[duckdb.DuckDBPyConnection]: ...

    @abstractmethod
    def _transaction(self) -> AbstractContextManager[duckdb.DuckDBPyConnection]: ...

    def agent_settings(self) -> AgentSettings:
        found: dict[str, dict[str, str]] = {}
        query = "SELECT service, key, value FROM agent_setting ORDER BY ALL"
        with self._reading() as cursor:
            rows = cursor.execute(query).fetchall()
        for service, key, value in rows:
            found.setdefault(service, {})[key] = value
        return found

    def replace_agent_settings(self, settings: AgentSettings) -> None:
        with self._transaction() as cursor:
            stored = set(cursor.execute("FROM agent_setting").fetchall())
            wanted = {
                (service, key, value)
                for service, pairs in settings.items()
                for key, value in pairs.items()
            }
            kept = {(service, key) for service, key, _ in wanted}
            for service, key, _ in stored:
                if (service, key) not in kept:
                    query = "DELETE FROM agent_setting WHERE service = ? AND key = ?"
                    cursor.execute(query, [service, key])
            for row in sorted(wanted - stored):
                cursor.execute("INSERT OR REPLACE INTO agent_setting VALUES (?, ?, ?)", list(row))

    def profile_tasks(self, ending_after_ms: int) -> list[ProfileTask]:
        query = f"""FROM (
                FROM profile_task WHERE {_END} > ? ORDER BY create_time DESC LIMIT {TASKS_MAX})
            ORDER BY create_time, id"""
        with self._reading() as cursor:
            rows = cursor.execute(query, [ending_after_ms]).fetchall()
        return [ProfileTask(*row) for row in rows]

    def add_profile_task(self, task: ProfileTask) -> ProfileTask:
        with self._transaction() as cursor:
            under_way = cursor.execute(
                f"SELECT id FROM profile_task WHERE service = ? AND start_time < ? AND {_END} > ?",
                [task.service, task.end_ms, task.start_ms],
            ).fetchall()
            if under_way:
                raise PermanentError(
                    f"service {task.service} is profiled at that time already: {under_way[0][0]}"
                )
            task = _created(cursor, task)
            cursor.execute(
                "INSERT INTO profile_task VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                [
                    *(task.id, task.service, task.endpoint, task.start_ms, task.duration_min),
                    *(task.threshold_ms, task.dump_period_ms, task.samples_max, task.created_ms),
                ],
            )
        return task


def _created(cursor: duckdb.DuckDBPyConnection, task: ProfileTask) -> ProfileTask:
    (last,) = cursor.execute(
        "SELECT max(create_time) FROM profile_task WHERE service = ?", [task.service]
    ).fetchall()[0]
    created_ms = max(task.created_ms, -1 if last is None else last + 1)
    return replace(task, created_ms=created_ms, id=f"{created_ms}_{ids.service_id(task.service)}")
