"""Dashboards that were saved (`oap.core.templates`): a row an id."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager
from typing import Final

import duckdb

from skyfarer.base.errors import PermanentError
from skyfarer.oap.core.templates import TEMPLATES_MAX, Template

_SAVE: Final = """INSERT INTO ui_template
    SELECT $id, $configuration, $updated, $disabled, coalesce(max(number), 0) + 1 FROM ui_template
    ON CONFLICT DO UPDATE SET configuration = excluded.configuration,
        update_time = excluded.update_time, disabled = excluded.disabled"""


class SavedTemplates(ABC):
    @abstractmethod
    def _reading(self) -> AbstractContextManager[duckdb.DuckDBPyConnection]: ...

    @abstractmethod
    def _transaction(self) -> AbstractContextManager[duckdb.DuckDBPyConnection]: ...

    def templates(self) -> list[Template]:
        query = "SELECT id, configuration, update_time, disabled FROM ui_template ORDER BY number"
        with self._reading() as cursor:
            rows = cursor.execute(query).fetchall()
        return [Template(*row) for row in rows]

    def save_template(self, template: Template) -> None:
        with self._transaction() as cursor:
            ((others,),) = cursor.execute(
                "SELECT count(*) FROM ui_template WHERE id <> ?", [template.id]
            ).fetchall()
            if others >= TEMPLATES_MAX:
                raise PermanentError(f"there are {TEMPLATES_MAX} saved dashboards already")
            cursor.execute(
                _SAVE,
                {
                    "id": template.id,
                    "configuration": template.configuration,
                    "updated": template.updated_ms,
                    "disabled": template.disabled,
                },
            )
