"""What agents are to do: their settings, and tasks of the profiler (`oap.core.tasks`)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Final

from skyfarer.base.errors import PermanentError
from skyfarer.oap.core import ids
from skyfarer.oap.core.tasks import AgentSettings, ProfileTask
from skyfarer.oap.storage.postgresql.copying import Cursor
from skyfarer.oap.storage.postgresql.models import TEXT

DDL: Final = f"""
CREATE TABLE IF NOT EXISTS agent_setting (
    service {TEXT}, key {TEXT}, value {TEXT} NOT NULL, PRIMARY KEY (service, key));
"""
TASKS_MAX: Final = 10_000
"""SkyWalking's bound: more of them are not read."""

_END: Final = "start_time + duration * 60000::bigint"


class AgentTables(ABC):
    @abstractmethod
    def _reading(self) -> AbstractContextManager[Cursor]: ...

    @abstractmethod
    def _transaction(self) -> AbstractContextManager[Cursor]: ...

    def agent_settings(self) -> AgentSettings:
        found: dict[str, dict[str, str]] = {}
        with self._reading() as cursor:
            rows = cursor.execute(
                "SELECT service, key, value FROM agent_setting ORDER BY service, key"
            ).fetchall()
        for service, key, value in rows:
            found.setdefault(service, {})[key] = value
        return found

    def replace_agent_settings(self, settings: AgentSettings) -> None:
        rows = [(service, *pair) for service, own in settings.items() for pair in own.items()]
        with self._transaction() as cursor:
            cursor.execute("LOCK TABLE agent_setting IN SHARE ROW EXCLUSIVE MODE")
            cursor.execute("DELETE FROM agent_setting")
            for row in rows:
                cursor.execute("INSERT INTO agent_setting VALUES (%s, %s, %s)", row)

    def profile_tasks(self, ending_after_ms: int) -> list[ProfileTask]:
        with self._reading() as cursor:
            rows = cursor.execute(
                f"""SELECT * FROM (
                    SELECT * FROM profile_task WHERE {_END} > %s
                    ORDER BY create_time DESC LIMIT {TASKS_MAX}) AS newest
                ORDER BY create_time, id""",
                [ending_after_ms],
            ).fetchall()
        return [ProfileTask(*row) for row in rows]

    def add_profile_task(self, task: ProfileTask) -> ProfileTask:
        with self._transaction() as cursor:
            cursor.execute("LOCK TABLE profile_task IN SHARE ROW EXCLUSIVE MODE")
            under_way = cursor.execute(
                f"""SELECT id FROM profile_task
                WHERE service = %s AND start_time < %s AND {_END} > %s""",
                [task.service, task.end_ms, task.start_ms],
            ).fetchall()
            if under_way:
                raise PermanentError(
                    f"service {task.service} is profiled at that time already: {under_way[0][0]}"
                )
            task = _created(cursor, task)
            cursor.execute(
                "INSERT INTO profile_task VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s)",
                [
                    *(task.id, task.service, task.endpoint, task.start_ms, task.duration_min),
                    *(task.threshold_ms, task.dump_period_ms, task.samples_max, task.created_ms),
                ],
            )
        return task


def _created(cursor: Cursor, task: ProfileTask) -> ProfileTask:
    (last,) = cursor.execute(
        "SELECT max(create_time) FROM profile_task WHERE service = %s", [task.service]
    ).fetchall()[0]
    created_ms = max(task.created_ms, -1 if last is None else last + 1)
    return replace(task, created_ms=created_ms, id=f"{created_ms}_{ids.service_id(task.service)}")
