"""Aliases: addresses that have turned out to be instances of services.

    network_address_alias  a row an address; of two that claim it the newer has it

The pipeline wants all of them with every batch, and they rarely change: the table that was read is
kept until a batch changes what it would show.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager
from typing import Final

import duckdb
import pyarrow as pa

from skyfarer.oap.core.storage import ALIASES_MAX
from skyfarer.oap.storage.entities import instances, services
from skyfarer.oap.storage.merging import Numbers

# In one minute the greater name has it: the order of a batch's rows means nothing.
_CLAIMS: Final = """CREATE OR REPLACE TEMP TABLE claim AS
    SELECT address, unnest(newest), first_bucket AS time_bucket FROM (
        SELECT address, min(bucket) AS first_bucket, max({
            'last_update_time_bucket': bucket,
            'represent_service_name': service, 'represent_service_instance_name': instance,
            'represent_service_id': service_id, 'represent_service_instance_id': instance_id
        }) AS newest FROM claimed WHERE address <> '' GROUP BY address)"""
_CHANGES: Final = """SELECT count(*)
    FROM claim LEFT JOIN network_address_alias known USING (address)
    WHERE known.address IS NULL OR (
        claim.last_update_time_bucket >= known.last_update_time_bucket
        AND (claim.represent_service_id, claim.represent_service_instance_id)
            <> (known.represent_service_id, known.represent_service_instance_id))"""
_NEWER: Final = "excluded.last_update_time_bucket >= last_update_time_bucket"
_REPRESENT: Final = ",\n".join(
    f"{column} = CASE WHEN {_NEWER} THEN excluded.{column} ELSE {column} END"
    for column in (
        "represent_service_id",
        "represent_service_name",
        "represent_service_instance_id",
        "represent_service_instance_name",
    )
)
_STORE: Final = f"""INSERT INTO network_address_alias BY NAME FROM claim
    ON CONFLICT DO UPDATE SET {_REPRESENT},
        time_bucket = least(time_bucket, excluded.time_bucket),
        last_update_time_bucket = greatest(
            last_update_time_bucket, excluded.last_update_time_bucket)"""
_SELECT: Final = f"""SELECT address, represent_service_name AS alias_service,
    represent_service_instance_name AS alias_instance FROM network_address_alias
    ORDER BY last_update_time_bucket DESC, address LIMIT {ALIASES_MAX}"""


class AliasReads(ABC):
    _alias_changes = 0
    _aliases_read: tuple[int, pa.Table] | None = None

    @abstractmethod
    def _reading(self) -> AbstractContextManager[duckdb.DuckDBPyConnection]: ...

    def aliases(self) -> pa.Table:
        changes, read = self._alias_changes, self._aliases_read
        if read is None or read[0] != changes:
            with self._reading() as cursor:
                read = changes, cursor.sql(_SELECT).to_arrow_table()
            self._aliases_read = read
        return read[1]

    def _aliases_changed(self) -> None:
        """After the commit: whoever reads in between has the old ones once, not for good."""
        self._alias_changes += 1


def store(cursor: duckdb.DuckDBPyConnection, rows: pa.Table, buckets: Numbers) -> bool:
    """Inside the caller's transaction; `buckets` are the minutes of the rows. True when an address
    now stands for another one than before."""
    columns = {"address": rows["endpoint"], "bucket": pa.array(buckets)}
    columns |= {name: rows[name] for name in ("service", "instance")}
    columns |= {"service_id": services(rows), "instance_id": instances(rows)}
    cursor.register("claimed", pa.table(columns))
    cursor.execute(_CLAIMS)
    ((changes,),) = cursor.execute(_CHANGES).fetchall()
    cursor.execute(_STORE)
    return bool(changes)
