"""What every storage provider must do with slow statements. Run as the storage contract is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from contracts.storage_contract import NOON, batch
from skyfarer.oap.core import ids
from skyfarer.oap.core.slow import SLOWEST_MAX, Slow, SlowStatement

ALWAYS = (19700101000000, 99981231235959)
DATABASE = ids.service_id("db:3306", normal=False)
SLOW = pa.schema(
    {
        **dict.fromkeys(("what", "service", "statement"), pa.string()),
        **dict.fromkeys(("latency", "start_time"), pa.int64()),
        **dict.fromkeys(("id", "trace_id"), pa.string()),
        "minute": pa.int64(),
    }
)


def slow(identifier: str, latency: int, at_ms: int = NOON, **other: Any) -> dict[str, Any]:
    row = {"what": "DATABASE", "service": "db:3306", "statement": "SELECT 1", "latency": latency}
    row |= {"start_time": at_ms, "id": identifier, "trace_id": "t", "minute": at_ms // 60_000}
    return row | other


def apply(storage: Any, rows: Sequence[dict[str, Any]]) -> None:
    first = storage.applied("queue-a")
    told = pa.Table.from_pylist(list(rows), schema=SLOW)
    storage.apply(batch(first, first + 1, slow=told))


def found(storage: Any, what: Slow = Slow.DATABASE, entity: str | None = DATABASE) -> list[str]:
    return [one.id for one in storage.slowest(what, entity, ALWAYS, 1000)]


class SlowContract:
    def test_a_statement_is_read_as_it_was_written(self, storage: Any) -> None:
        apply(storage, [slow("s-1", 300, NOON + 1_999, statement="é' --")])
        expected = SlowStatement("s-1", DATABASE, "é' --", 300, "t", NOON + 1_999)
        assert storage.slowest(Slow.DATABASE, DATABASE, (20261115120001,) * 2, 9) == [expected]
        assert storage.slowest(Slow.DATABASE, None, (20261115120001,) * 2, 9) == [expected]
        assert storage.slowest(Slow.DATABASE, DATABASE, (20261115120002,) * 2, 9) == []
        assert storage.slowest(Slow.CACHE_READ, DATABASE, ALWAYS, 9) == []

    def test_each_kind_has_entities_of_its_own(self, storage: Any) -> None:
        apply(storage, [slow(f"{one.name}-0", 1, what=one.name, service="x") for one in Slow])
        for one in Slow:
            entity = ids.service_id("x", normal=one is Slow.SERVICE_DATABASE)
            assert found(storage, one, entity) == found(storage, one, None) == [f"{one.name}-0"]
            assert found(storage, one, DATABASE) == []

    def test_the_slowest_come_first_over_midnight(self, storage: Any) -> None:
        day = 86_400_000
        apply(storage, [slow("a-0", 5), slow("b-0", 9, NOON + day), slow("c-0", 9)])
        assert found(storage) == ["b-0", "c-0", "a-0"]
        assert [one.id for one in storage.slowest(Slow.DATABASE, None, ALWAYS, 1)] == ["b-0"]

    def test_exactly_the_slowest_of_an_entity_and_minute_are_kept(self, storage: Any) -> None:
        latencies = [(n * 37) % 101 for n in range(101)]
        rows = [slow(f"{latency:03}-0", latency) for latency in latencies]
        others = [slow("other-0", 1, service="other"), slow("later-0", 1, NOON + 60_000)]
        apply(storage, [*rows[:60], *others])
        apply(storage, rows[60:])
        slowest = [f"{latency:03}-0" for latency in sorted(latencies, reverse=True)]
        assert found(storage) == [*slowest[:SLOWEST_MAX], "later-0"]
        assert found(storage, Slow.DATABASE, ids.service_id("other", normal=False)) == ["other-0"]

    def test_an_id_given_twice_is_one_statement(self, storage: Any) -> None:
        apply(storage, [slow("a-0", 5), slow("a-0", 7)])
        assert [one.latency for one in storage.slowest(Slow.DATABASE, None, ALWAYS, 9)] == [7]
