"""What every storage promises of what agents are to do."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from skyfarer.base.errors import PermanentError
from skyfarer.oap.core import ids
from skyfarer.oap.core.tasks import ProfileTask

NOW = 1_763_208_000_000
MINUTE = 60_000
TASK = ProfileTask("", "shop", "/pay", NOW, 5, 100, 10, 3, NOW)


class TasksContract:
    def test_nothing_is_configured_at_first(self, storage: Any) -> None:
        assert storage.agent_settings() == {}
        assert storage.profile_tasks(0) == []

    def test_settings_are_what_was_said_last(self, storage: Any) -> None:
        first = {"shop": {"a": "1", "b": "2"}, "cart": {"a": "1"}}
        second = {"shop": {"a": "1", "b": "3", "c": ""}, "stock": {"x.y": "*"}}
        for wanted in (first, second, second, {}, first):
            storage.replace_agent_settings(wanted)
            assert storage.agent_settings() == wanted

    def test_a_task_is_kept_under_an_id_of_its_own_until_it_is_over(self, storage: Any) -> None:
        stored = storage.add_profile_task(TASK)
        assert stored == replace(TASK, id=f"{NOW}_{ids.service_id('shop')}")
        assert storage.profile_tasks(stored.end_ms - 1) == [stored]
        assert storage.profile_tasks(stored.end_ms) == []

    def test_a_service_has_one_task_at_a_time(self, storage: Any) -> None:
        storage.add_profile_task(TASK)
        for start_ms in (NOW - 4 * MINUTE, NOW, NOW + 4 * MINUTE):
            with pytest.raises(PermanentError, match="is profiled at that time already"):
                storage.add_profile_task(replace(TASK, start_ms=start_ms))
        storage.add_profile_task(replace(TASK, service="cart"))
        later = storage.add_profile_task(replace(TASK, start_ms=TASK.end_ms))
        assert later.created_ms == NOW + 1, "an agent that had the first would not hear of it"
        assert len(storage.profile_tasks(0)) == 3
