from __future__ import annotations

from contracts.tasks_contract import TasksContract


class TestPostgresTasks(TasksContract):
    pass
