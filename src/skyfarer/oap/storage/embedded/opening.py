"""Opens the file, and makes the tables that are there from the beginning, or looks for them.

Version and zone are read before anything is written: a file of a newer program stays as it is, and
so does one of another zone. What is missing is made in one transaction.

A checkpoint takes the log into the file, syncs the file and removes the log, but does not sync the
directory: after a power cut a log may be back that the file has long taken in, and DuckDB refuses
both. Such a log is set aside. Nothing is lost by it: the file is of a later checkpoint, which is
made of all that was in the log.
"""

from __future__ import annotations

import logging
import re
from datetime import tzinfo
from pathlib import Path
from typing import Final

import duckdb

from skyfarer.base.errors import PermanentError, RetryableError
from skyfarer.oap.core.zone import check_zone, name_of
from skyfarer.oap.storage.embedded import expiry, models, parked, schema, tasks
from skyfarer.oap.storage.embedded.failures import (
    has_old_log,
    is_full,
    is_locked,
    sentence,
)

log = logging.getLogger(__name__)

ATTACHED: Final = "store"
USE: Final = f"USE {ATTACHED}"
_FIXED: Final = (schema.FIXED, parked.DDL, tasks.DDL, expiry.DDL)
FIXED_TABLES: Final = frozenset(
    name
    for statements in _FIXED
    for name in re.findall("CREATE TABLE IF NOT EXISTS ([a-z_]+) ", statements)
)


def connected(path: Path, memory_limit: str) -> duckdb.DuckDBPyConnection:
    """To a database in memory, that the file is attached to. It never uses that one itself: who
    does cannot detach a file that DuckDB has given up."""
    config: dict[str, str | bool | int | float | list[str]] = {
        "memory_limit": memory_limit,
        "autoinstall_known_extensions": False,
        "temp_directory": f"{path}.tmp",
    }
    return duckdb.connect(config=config)


def attach(
    connection: duckdb.DuckDBPyConnection, path: Path, row_group_rows: int, install: bool
) -> None:
    """Without `install` a file that another one has open is one to wait for."""
    quoted = str(path).replace("'", "''")
    statement = f"ATTACH '{quoted}' AS {ATTACHED} (ROW_GROUP_SIZE {row_group_rows})"
    try:
        try:
            connection.execute(statement)
        except duckdb.IOException as error:
            if not has_old_log(error):
                raise
            _set_aside_the_log(path)
            connection.execute(statement)
    except (duckdb.IOException, duckdb.ResourceInUseException) as error:
        if is_locked(error) and not install:
            raise RetryableError(f"{path}: another process has it open") from error
        if is_full(error):
            raise RetryableError(f"cannot open {path}: {sentence(error)}") from error
        raise PermanentError(
            f"cannot open the storage file {path}: {sentence(error)}; if another OAP runs on it, "
            "stop that one or set SKYFARER_DATA_DIR"
        ) from error


def _set_aside_the_log(path: Path) -> None:
    old = path.with_name(f"{path.name}.wal")
    kept = path.with_name(f"{path.name}.wal.old")
    old.replace(kept)
    log.warning("a power cut has brought back a log that %s had taken in: now %s", path, kept.name)


def attach_again(connection: duckdb.DuckDBPyConnection, path: Path, row_group_rows: int) -> None:
    """After what DuckDB gives up a file for; whatever hinders it may pass."""
    connection.execute(f"DETACH DATABASE IF EXISTS {ATTACHED}")
    try:
        attach(connection, path, row_group_rows, install=False)
    except PermanentError as error:
        raise RetryableError(str(error)) from error


def install(cursor: duckdb.DuckDBPyConnection, path: Path, zone: tzinfo, now_ms: int) -> None:
    """Makes what is missing of the fixed tables, and columns of any that a stream has got since;
    what is there stays as it is, but for what an upgrade does to the tables of an older version.
    A file without a zone is given this one."""
    version = _version(cursor, path)
    _check_zone(cursor, zone, now_ms)
    cursor.begin()
    for statements in _FIXED:
        cursor.execute(statements)
    cursor.execute(
        "INSERT INTO server_zone SELECT ? WHERE NOT EXISTS (FROM server_zone)", [name_of(zone)]
    )
    cursor.commit()
    if version is not None and version < schema.VERSION:
        schema.upgrade(cursor, version)
    for table, column in models.lacking(schema.columns(cursor)):
        cursor.execute(models.add(table, column))


def check(cursor: duckdb.DuckDBPyConnection, path: Path, zone: tzinfo, now_ms: int) -> None:
    """RetryableError naming a table, a column or the version that `install` has not made yet."""
    version = _version(cursor, path)
    if missing := sorted(FIXED_TABLES - schema.present(cursor)):
        raise not_there(path, missing[0])
    if version is None or version < schema.VERSION:
        raise RetryableError(
            f"{path}: the tables are of schema {version}, not yet of {schema.VERSION}"
        )
    if lacking := models.lacking(schema.columns(cursor)):
        table, column = lacking[0]
        raise RetryableError(f"{path}: {table} has no column {column.name} yet")
    _check_zone(cursor, zone, now_ms)


def not_there(path: Path, table: str = schema.VERSION_TABLE) -> RetryableError:
    return RetryableError(f"{path}: table:{table} does not exist")


def _check_zone(cursor: duckdb.DuckDBPyConnection, zone: tzinfo, now_ms: int) -> None:
    if schema.ZONE_TABLE in schema.present(cursor):
        for (name,) in cursor.execute(f"SELECT name FROM {schema.ZONE_TABLE}").fetchall():
            check_zone(name, zone, now_ms)


def _version(cursor: duckdb.DuckDBPyConnection, path: Path) -> int | None:
    """The one there is, if any; PermanentError for a file of a newer program."""
    if schema.VERSION_TABLE not in schema.present(cursor):
        return None
    query = f"SELECT max(version) FROM {schema.VERSION_TABLE}"
    version: int | None = cursor.execute(query).fetchall()[0][0]
    if version is not None and version > schema.VERSION:
        raise PermanentError(
            f"{path} has schema {version}, this program knows {schema.VERSION}: "
            "start the newer program, or move the file away"
        )
    return version
