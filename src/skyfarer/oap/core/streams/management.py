"""What somebody has told the program to keep: dashboards and tasks of the profiler."""

from __future__ import annotations

from typing import Final

from skyfarer.oap.core.streams.declaration import Column, ColumnType, Processor, Stream
from skyfarer.oap.core.streams.scopes import Scope

_ID: Final = Column("id", ColumnType.TEXT)

UI_TEMPLATE: Final = Stream(
    "ui_template",
    Scope.UI_TEMPLATE,
    Processor.MANAGEMENT,
    key=(_ID,),
    columns=(
        Column("configuration", ColumnType.TEXT),
        Column("update_time", ColumnType.LONG),
        Column("disabled", ColumnType.BOOLEAN),
        Column("number", ColumnType.INT),
    ),
)
PROFILE_TASK: Final = Stream(
    "profile_task",
    Scope.PROFILE_TASK,
    Processor.MANAGEMENT,
    key=(_ID,),
    columns=(
        Column("service", ColumnType.TEXT),
        Column("endpoint", ColumnType.TEXT),
        Column("start_time", ColumnType.LONG),
        Column("duration", ColumnType.INT),
        Column("min_duration_threshold", ColumnType.INT),
        Column("dump_period", ColumnType.INT),
        Column("max_sampling_count", ColumnType.INT),
        Column("create_time", ColumnType.LONG),
    ),
)

MANAGEMENT: Final = (UI_TEMPLATE, PROFILE_TASK)
