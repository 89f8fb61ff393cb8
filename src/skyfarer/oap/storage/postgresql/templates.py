"""Dashboards that were saved (`oap.core.templates`): a row an id."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager
from typing import Final

from skyfarer.base.errors import PermanentError
from skyfarer.oap.core.templates import TEMPLATES_MAX, Template
from skyfarer.oap.storage.postgresql.copying import Cursor

_SAVE: Final = """INSERT INTO ui_template
    SELECT %s, %s, %s, %s, coalesce(max(number), 0) + 1 FROM ui_template
    ON CONFLICT (id) DO UPDATE SET configuration = excluded.configuration,
        update_time = excluded.update_time, disabled = excluded.disabled"""


class SavedTemplates(ABC):
    @abstractmethod
    def _reading(self) -> AbstractContextManager[Cursor]: ...

    @abstractmethod
    def _transaction(self) -> AbstractContextManager[Cursor]: ...

    def templates(self) -> list[Template]:
        with self._reading() as cursor:
            rows = cursor.execute(
                "SELECT id, configuration, update_time, disabled FROM ui_template ORDER BY number"
            ).fetchall()
        return [Template(*row) for row in rows]

    def save_template(self, template: Template) -> None:
        with self._transaction() as cursor:
            cursor.execute("LOCK TABLE ui_template IN SHARE ROW EXCLUSIVE MODE")
            ((others,),) = cursor.execute(
                "SELECT count(*) FROM ui_template WHERE id <> %s", [template.id]
            ).fetchall()
            if others >= TEMPLATES_MAX:
                raise PermanentError(f"there are {TEMPLATES_MAX} saved dashboards already")
            cursor.execute(
                _SAVE,
                [template.id, template.configuration, template.updated_ms, template.disabled],
            )
