"""Aliases: addresses that have turned out to be instances of services.

    network_address_alias  a row an address; of two that claim it the newer has it
    alias_version          one row: how often any of them has changed

The pipeline wants all of them with every batch, and they rarely change: the table that was read is
kept for as long as the version says the same, whichever node has changed one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager
from typing import Final

import pyarrow as pa

from skyfarer.oap.core.storage import ALIASES_MAX
from skyfarer.oap.storage.entities import instances, services
from skyfarer.oap.storage.merging import Numbers
from skyfarer.oap.storage.postgresql import copying
from skyfarer.oap.storage.postgresql.copying import Cursor

DDL: Final = """
CREATE TABLE IF NOT EXISTS alias_version (version BIGINT PRIMARY KEY);
INSERT INTO alias_version SELECT 0 WHERE NOT EXISTS (SELECT FROM alias_version);
"""

_OWN: Final = (
    *("represent_service_id", "represent_service_name"),
    *("represent_service_instance_id", "represent_service_instance_name"),
)
# In one minute the greater name has it: the order of a batch's rows means nothing.
_CLAIMS: Final = """SELECT DISTINCT ON (address)
        address, service_id, service, instance_id, instance,
        min(bucket) OVER (PARTITION BY address) AS first_bucket, bucket
    FROM pg_temp.claimed WHERE address <> ''
    ORDER BY address, bucket DESC, service DESC, instance DESC, service_id DESC, instance_id DESC"""
_CHANGES: Final = f"""SELECT count(*)
    FROM ({_CLAIMS}) AS claim LEFT JOIN network_address_alias AS known USING (address)
    WHERE known.address IS NULL OR (
        claim.bucket >= known.last_update_time_bucket
        AND (claim.service_id, claim.instance_id)
            <> (known.represent_service_id, known.represent_service_instance_id))"""
_NEWER: Final = "excluded.last_update_time_bucket >= t.last_update_time_bucket"
_REPRESENT: Final = ", ".join(
    f"{column} = CASE WHEN {_NEWER} THEN excluded.{column} ELSE t.{column} END" for column in _OWN
)
_STORE: Final = f"""INSERT INTO network_address_alias AS t (
        address, {", ".join(_OWN)}, time_bucket, last_update_time_bucket)
    {_CLAIMS}
    ON CONFLICT (address) DO UPDATE SET {_REPRESENT},
        time_bucket = least(t.time_bucket, excluded.time_bucket),
        last_update_time_bucket = greatest(
            t.last_update_time_bucket, excluded.last_update_time_bucket)"""
_SELECT: Final = f"""SELECT address, represent_service_name, represent_service_instance_name
    FROM network_address_alias
    ORDER BY last_update_time_bucket DESC, address LIMIT {ALIASES_MAX}"""
_COLUMNS: Final = ("address", "alias_service", "alias_instance")


class AliasReads(ABC):
    _aliases_read: tuple[int, pa.Table] | None = None

    @abstractmethod
    def _reading(self) -> AbstractContextManager[Cursor]: ...

    def aliases(self) -> pa.Table:
        with self._reading() as cursor:
            ((version,),) = cursor.execute("SELECT version FROM alias_version").fetchall()
            read = self._aliases_read
            if read is None or read[0] != version:
                rows = cursor.execute(_SELECT).fetchall()
                columns = zip(*rows, strict=True) if rows else ([], [], [])
                arrays = [pa.array(column, pa.string()) for column in columns]
                read = version, pa.table(dict(zip(_COLUMNS, arrays, strict=True)))
                self._aliases_read = read
        return read[1]


def store(cursor: Cursor, rows: pa.Table, buckets: Numbers) -> None:
    """Inside the caller's transaction, alone; `buckets` are the minutes of the rows."""
    columns = {"address": rows["endpoint"], "bucket": pa.array(buckets)}
    columns |= {name: rows[name] for name in ("service", "instance")}
    columns |= {"service_id": services(rows), "instance_id": instances(rows)}
    copying.bring(cursor, "claimed", pa.table(columns))
    ((changes,),) = cursor.execute(_CHANGES, prepare=False).fetchall()
    cursor.execute(_STORE, prepare=False)
    if changes:
        cursor.execute("UPDATE alias_version SET version = version + 1")
