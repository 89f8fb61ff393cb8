"""The reading half: what the query room asks."""

from __future__ import annotations

from collections.abc import Collection

from skyfarer.oap.core.storage import (
    PARKED_BYTES_MAX,
    PARKED_MAX,
    Applied,
    Endpoint,
    Instance,
    Parked,
    Record,
    Service,
)
from skyfarer.oap.core.time_bucket import day_of, days_between
from skyfarer.oap.storage.listed import instance, service
from skyfarer.oap.storage.portions import within_bytes
from skyfarer.oap.storage.postgresql import models, schema
from skyfarer.oap.storage.postgresql.aliases import AliasReads
from skyfarer.oap.storage.postgresql.comparing import RowReads
from skyfarer.oap.storage.postgresql.events import EventReads
from skyfarer.oap.storage.postgresql.logs import LogReads
from skyfarer.oap.storage.postgresql.relations import RelationReads
from skyfarer.oap.storage.postgresql.series import MetricReads
from skyfarer.oap.storage.postgresql.slow import SlowReads
from skyfarer.oap.storage.postgresql.traces import TraceReads


class Reads(
    TraceReads,
    LogReads,
    EventReads,
    SlowReads,
    MetricReads,
    RowReads,
    RelationReads,
    AliasReads,
):
    _metadata_rows_max: int

    def services(self, layer: str | None, of: Collection[str] | None = None) -> list[Service]:
        limit = self._metadata_rows_max if of is None else len(of)
        with self._reading() as cursor:
            rows = cursor.execute(
                """SELECT service_id, name, array_agg(DISTINCT layer ORDER BY layer)
                FROM service_traffic
                WHERE %(of)s::text[] IS NULL OR service_id = ANY(%(of)s::text[])
                GROUP BY service_id, name
                HAVING %(layer)s::text IS NULL OR bool_or(layer = %(layer)s::text)
                ORDER BY name LIMIT %(limit)s""",
                {"layer": layer, "limit": limit, "of": None if of is None else list(of)},
            ).fetchall()
        return [service(*row) for row in rows]

    def instances(self, service_id: str, start_bucket: int, end_bucket: int) -> list[Instance]:
        with self._reading() as cursor:
            rows = cursor.execute(
                """SELECT id, name, properties FROM instance_traffic
                WHERE service_id = %s AND last_ping >= %s AND time_bucket <= %s
                ORDER BY name LIMIT %s""",
                [service_id, start_bucket, end_bucket, self._metadata_rows_max],
            ).fetchall()
        return [instance(service_id, *row) for row in rows]

    def endpoints(
        self, service_id: str, keyword: str, limit: int, between: tuple[int, int] | None = None
    ) -> list[Endpoint]:
        start_bucket, end_bucket = between or (None, None)
        with self._reading() as cursor:
            rows = cursor.execute(
                """SELECT id, name FROM endpoint_traffic
                WHERE service_id = %(service)s AND strpos(name, %(keyword)s) > 0
                AND (%(start)s::bigint IS NULL OR
                    (last_ping >= %(start)s::bigint AND time_bucket <= %(end)s::bigint))
                ORDER BY time_bucket DESC, name LIMIT %(limit)s""",
                {
                    "service": service_id,
                    "keyword": keyword,
                    "start": start_bucket,
                    "end": end_bucket,
                    "limit": limit,
                },
            ).fetchall()
        return [Endpoint(part, name, service_id) for part, name in rows]

    def records(self, kind: int, start_bucket: int, end_bucket: int, limit: int) -> list[Record]:
        found: list[Record] = []
        with self._reading() as cursor:
            present = schema.present(cursor)
            for day in days_between(day_of(start_bucket), day_of(end_bucket)):
                if (table := models.RECORD.of_day(day)) not in present or len(found) >= limit:
                    continue
                rows = cursor.execute(
                    f"""SELECT partition, sequence, kind, time_bucket, payload FROM {table}
                    WHERE kind = %s AND time_bucket BETWEEN %s AND %s
                    ORDER BY time_bucket, partition, sequence LIMIT %s""",
                    [kind, start_bucket, end_bucket, limit - len(found)],
                )
                found += [Record(*row) for row in rows.fetchall()]
        return found

    def parked(
        self, partition: str, limit: int = PARKED_MAX, bytes_max: int = PARKED_BYTES_MAX
    ) -> list[Parked]:
        with self._reading() as cursor:
            sizes = cursor.execute(
                """SELECT sequence, octet_length(payload) FROM parked_record
                WHERE partition = %s ORDER BY sequence LIMIT %s""",
                [partition, limit],
            ).fetchall()
            wanted = [sequence for sequence, _ in within_bytes(sizes, bytes_max)]
            rows = cursor.execute(
                """SELECT sequence, kind, reason, payload FROM parked_record
                WHERE partition = %s AND sequence = ANY(%s) ORDER BY sequence""",
                [partition, wanted],
            ).fetchall()
        return [Parked(*row) for row in rows]

    def progress(self, partition: str) -> Applied:
        with self._reading() as cursor:
            offset = cursor.execute(
                "SELECT next_sequence, delivered FROM source_offset WHERE partition = %s",
                [partition],
            ).fetchall()
            dropped = cursor.execute(
                "SELECT reason, records FROM source_dropped WHERE partition = %s", [partition]
            ).fetchall()
        next_sequence, delivered = offset[0] if offset else (0, 0)
        return Applied(next_sequence, delivered, dict(dropped))
