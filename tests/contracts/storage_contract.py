"""What every storage provider must do. A provider's test file subclasses and gives `storage`."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from itertools import permutations
from typing import Any

import pyarrow as pa
import pytest

from contracts.inventory_contract import InventoryContract
from skyfarer.base.errors import PermanentError
from skyfarer.oap.core import ids
from skyfarer.oap.core.entities import ENTITY_COLUMNS
from skyfarer.oap.core.layers import Layer
from skyfarer.oap.core.storage import (
    METADATA_ROWS_MAX,
    PARKED_MAX,
    Analysed,
    Applied,
    Deltas,
    Heartbeat,
    Merge,
    Parked,
    Record,
)

WITHIN_S = 60.0
NOON = int(datetime(2026, 11, 15, 12, 0, tzinfo=UTC).timestamp() * 1000)
MINUTE = NOON // 60_000
BUCKET = 202611151200
SEGMENTS = pa.schema(
    {
        "segment_id": pa.string(),
        "trace_id": pa.string(),
        "service": pa.string(),
        "instance": pa.string(),
        "endpoint": pa.string(),
        "minute": pa.int64(),
        "start_time": pa.int64(),
        "latency": pa.int64(),
        "is_error": pa.bool_(),
        "tags": pa.list_(pa.string()),
        "kind": pa.int32(),
        "data_binary": pa.binary(),
    }
)
RECORDS = pa.schema(
    {"sequence": pa.int64(), "kind": pa.int32(), "minute": pa.int64(), "payload": pa.binary()}
)
TABLE = pa.map_(pa.string(), pa.int64())
NUMBERS = ("layer", "from_layer", "component")
ENTITY_SCHEMA = {
    **{name: pa.int32() if name in NUMBERS else pa.string() for name in ENTITY_COLUMNS},
    "minute": pa.int64(),
}
SUMS = dict.fromkeys(("calls", "latency_sum", "errors"), Merge.SUM)


def segment(segment_id: str, at_ms: int = NOON, **other: Any) -> dict[str, Any]:
    row = {"segment_id": segment_id, "trace_id": "t", "service": "shop", "instance": "shop-1"}
    row |= {"endpoint": "/pay", "minute": at_ms // 60_000, "start_time": at_ms}
    row |= {"latency": 12, "is_error": False, "kind": 1, "data_binary": b"\x00raw", "tags": []}
    return row | other


def records(*rows: tuple[int, int, int, bytes]) -> pa.Table:
    """(sequence, kind, minute, payload) of each."""
    named = [dict(zip(RECORDS.names, row, strict=True)) for row in rows]
    return pa.Table.from_pylist(named, schema=RECORDS)


def delta(minute: int = MINUTE, **other: Any) -> dict[str, Any]:
    """Of the shop's call, as trace analysis emits it."""
    row: dict[str, Any] = {name: 0 if name in NUMBERS else "" for name in ENTITY_COLUMNS}
    row |= {"service": "shop", "layer": Layer.GENERAL, "instance": "shop-1", "endpoint": "/pay"}
    return row | {"minute": minute, "calls": 1, "latency_sum": 10, "errors": 0} | other


def deltas_of(
    rows: Sequence[Mapping[str, Any]],
    merges: Mapping[str, Merge] = SUMS,
    types: Mapping[str, pa.DataType] | None = None,
) -> Deltas:
    """Columns are 64-bit numbers, unless `types` says so."""
    columns = {**ENTITY_SCHEMA, **dict.fromkeys(merges, pa.int64()), **(types or {})}
    return Deltas(pa.Table.from_pylist(list(rows), schema=pa.schema(columns)), merges)


def batch(
    first: int,
    end: int,
    segments: Sequence[dict[str, Any]] = (),
    deltas: Sequence[dict[str, Any]] = (),
    metrics: Mapping[str, Deltas] | None = None,
    **other: Any,
) -> Analysed:
    """`deltas` are calls: each speaks of a service, an instance and an endpoint."""
    calls = dict.fromkeys(("Service", "ServiceInstance", "Endpoint"), deltas_of(deltas))
    rows = pa.Table.from_pylist(list(segments), schema=SEGMENTS)
    return Analysed("queue-a", first, end, rows, metrics or calls, **other)


def sums(calls: int, latency_sum: int, errors: int) -> dict[str, int]:
    return {"calls": calls, "latency_sum": latency_sum, "errors": errors}


def calls_of(storage: Any, source: str, entity: str, start: int, end: int) -> Any:
    return storage.series(source, entity, list(SUMS), start, end)


class HeldMidway(dict[str, Deltas]):
    """Metrics of a batch, that come only when they are told to."""

    def __init__(self, metrics: Mapping[str, Deltas]) -> None:
        super().__init__(metrics)
        self.reached, self.go_on = threading.Event(), threading.Event()

    def items(self) -> Any:
        self.reached.set()
        assert self.go_on.wait(WITHIN_S)
        return super().items()


def _all_read(storage: Any) -> tuple[int, list[str], list[str], list[Any], list[str]]:
    """The offset, services, endpoints, calls, and segments of a trace."""
    shop = ids.service_id("shop")
    return (
        storage.progress("queue-a").next_sequence,
        [service.name for service in storage.services(None)],
        [endpoint.name for endpoint in storage.endpoints(shop, "", 9)],
        list(storage.series("Service", shop, ["calls"], BUCKET, BUCKET).values()),
        sorted(found.brief.segment_id for found in storage.trace("t", 9, 1 << 20)),
    )


def _beat(service: str, instance: str) -> Heartbeat:
    return Heartbeat(service, instance, "GENERAL", MINUTE, None)


def _minutes(count: int) -> pa.ChunkedArray:
    return pa.chunked_array([[MINUTE] * count])


class StorageContract(InventoryContract):
    def test_a_partition_never_seen_begins_at_zero(self, storage: Any) -> None:
        assert storage.applied("queue-a") == 0
        assert storage.progress("queue-a") == Applied(0, 0, {})

    def test_results_and_offset_are_stored_together(self, storage: Any) -> None:
        storage.apply(batch(0, 2, [segment("a"), segment("b")], [delta(calls=2, latency_sum=20)]))
        assert storage.applied("queue-a") == 2
        series = calls_of(storage, "Service", ids.service_id("shop"), BUCKET, BUCKET)
        assert series == {BUCKET: sums(2, 20, 0)}

    def test_a_batch_that_does_not_begin_at_the_offset_stores_nothing(self, storage: Any) -> None:
        storage.apply(batch(0, 1, [segment("a")], [delta()]))
        for first in (0, 2):
            with pytest.raises(PermanentError):
                storage.apply(batch(first, 3, [segment("b")], [delta()]))
        assert storage.applied("queue-a") == 1
        assert list(storage.known_segments(pa.chunked_array([["b"]]), _minutes(1))) == []

    def test_a_batch_that_fails_midway_leaves_no_trace(self, storage: Any) -> None:
        with pytest.raises(Exception, match=r"(?i)duplicate|unique|constraint"):
            storage.apply(batch(0, 2, [segment("a"), segment("a")], [delta()]))
        assert storage.applied("queue-a") == 0
        assert storage.services(None) == []
        assert list(storage.known_segments(pa.chunked_array([["a"]]), _minutes(1))) == []

    def test_a_batch_that_failed_is_stored_whole_when_it_comes_again(self, storage: Any) -> None:
        broken = Parked(1, 1, "undecodable", b"")
        with pytest.raises(Exception, match=r"(?i)duplicate|unique|constraint"):
            storage.apply(batch(0, 2, [segment("a")], [delta()], parked=[broken, broken]))
        storage.apply(batch(0, 2, [segment("a")], [delta()], parked=[broken]))
        shop = ids.service_id("shop")
        assert calls_of(storage, "Service", shop, BUCKET, BUCKET) == {BUCKET: sums(1, 10, 0)}
        assert [service.id for service in storage.services(None)] == [shop]
        assert [instance.name for instance in storage.instances(shop, BUCKET, BUCKET)] == ["shop-1"]
        assert [endpoint.name for endpoint in storage.endpoints(shop, "", 9)] == ["/pay"]

    def test_deltas_of_several_batches_add_up_per_minute_and_source(self, storage: Any) -> None:
        storage.apply(batch(0, 1, deltas=[delta(), delta(minute=MINUTE + 1, errors=1)]))
        storage.apply(batch(1, 2, deltas=[delta(calls=3, latency_sum=90, errors=2)]))
        shop = ids.service_id("shop")
        expected = {BUCKET: sums(4, 100, 2), BUCKET + 1: sums(1, 10, 1)}
        for source, entity in (
            ("Service", shop),
            ("ServiceInstance", ids.instance_id(shop, "shop-1")),
            ("Endpoint", ids.endpoint_id(shop, "/pay")),
        ):
            assert calls_of(storage, source, entity, BUCKET, BUCKET + 1) == expected
        assert calls_of(storage, "Service", shop, BUCKET + 1, BUCKET + 1) == {
            BUCKET + 1: sums(1, 10, 1)
        }

    def test_a_series_runs_over_midnight(self, storage: Any) -> None:
        late = MINUTE + 11 * 60 + 59
        storage.apply(batch(0, 1, deltas=[delta(minute=late), delta(minute=late + 1)]))
        shop = ids.service_id("shop")
        series = calls_of(storage, "Service", shop, 202611152359, 202611160000)
        assert sorted(series) == [202611152359, 202611160000]

    def test_known_segments_are_found_in_their_day_only(self, storage: Any) -> None:
        storage.apply(batch(0, 2, [segment("a"), segment("b", NOON + 86_400_000)]))
        wanted = pa.chunked_array([["a", "b", "c"]])
        both = pa.chunked_array([[MINUTE, MINUTE + 1440, MINUTE]])
        assert sorted(storage.known_segments(wanted, both)) == ["a", "b"]
        assert list(storage.known_segments(wanted, _minutes(3))) == ["a"]

    def test_a_segment_that_is_not_stored_is_known_all_the_same(self, storage: Any) -> None:
        minutes = {"segment_id": ["b", "c"], "minute": [MINUTE, MINUTE + 1440]}
        storage.apply(batch(0, 3, [segment("a")], unsampled=pa.table(minutes)))
        wanted, both = pa.chunked_array([["a", "b", "c", "d"]]), [MINUTE, MINUTE + 1440]
        days = pa.chunked_array([both + both])
        assert sorted(storage.known_segments(wanted, days)) == ["a", "b", "c"]
        assert [one.brief.segment_id for one in storage.trace("t", 9, 999)] == ["a"]
        assert storage.progress("queue-a") == Applied(3, 3, {})

    def test_entities_are_listed_with_the_ids_of_the_protocol(self, storage: Any) -> None:
        storage.apply(batch(0, 2, deltas=[delta(), delta(service=" ", instance="", endpoint="é")]))
        shop, blank = ids.service_id("shop"), ids.service_id(" ")
        assert {(s.id, s.name, s.layers, s.normal) for s in storage.services("GENERAL")} == {
            (shop, "shop", ("GENERAL",), True),
            (blank, " ", ("GENERAL",), True),
        }
        assert storage.services("MESH") == []
        assert [i.id for i in storage.instances(shop, BUCKET, BUCKET)] == [
            ids.instance_id(shop, "shop-1")
        ]
        assert [e.id for e in storage.endpoints(blank, "", 10)] == [ids.endpoint_id(blank, "é")]

    def test_endpoints_are_searched_by_keyword_and_limited(self, storage: Any) -> None:
        names = ["/pay", "/pay/late", "/cart%", "/cart'; DROP TABLE endpoint_traffic; --"]
        storage.apply(batch(0, 1, deltas=[delta(endpoint=name) for name in names]))
        shop = ids.service_id("shop")
        assert {e.name for e in storage.endpoints(shop, "/pay", 10)} == {"/pay", "/pay/late"}
        assert {e.name for e in storage.endpoints(shop, "%", 10)} == {"/cart%"}
        assert {e.name for e in storage.endpoints(shop, "';", 10)} == {names[3]}
        assert len(storage.endpoints(shop, "", 3)) == 3

    def test_an_endpoint_is_found_between_its_first_and_its_last_call(self, storage: Any) -> None:
        storage.apply(batch(0, 1, deltas=[delta(minute=MINUTE + 2)]))
        storage.apply(batch(1, 2, deltas=[delta(minute=MINUTE + 5), delta(endpoint="/old")]))
        shop = ids.service_id("shop")

        def found(start: int, end: int, keyword: str = "", limit: int = 10) -> list[str]:
            span = (BUCKET + start, BUCKET + end)
            return [e.name for e in storage.endpoints(shop, keyword, limit, span)]

        assert found(0, 9) == ["/pay", "/old"]
        assert found(5, 9) == found(1, 2) == found(3, 4) == ["/pay"]
        assert found(-9, 0) == ["/old"]
        assert found(0, 9, "old") == ["/old"]
        assert found(0, 9, limit=1) == ["/pay"]
        assert found(6, 9) == found(-9, -1) == []

    def test_names_without_a_letter_are_one_endpoint(self, storage: Any) -> None:
        """Each order of their signs is one's own, so that none is right by chance."""
        for number, minutes in enumerate(permutations((1, 4, 7))):
            service = f"shop-{number}"
            told = [
                delta(minute=MINUTE + minute, service=service, endpoint=" " * length)
                for length, minute in enumerate(minutes, 1)
            ]
            storage.apply(batch(number, number + 1, deltas=told))
            shop = ids.service_id(service)
            found = [
                minute
                for minute in range(9)
                if storage.endpoints(shop, "", 9, (BUCKET + minute, BUCKET + minute))
            ]
            assert found == [1, 2, 3, 4, 5, 6, 7]
            assert [one.id for one in storage.endpoints(shop, "", 9)] == [
                ids.endpoint_id(shop, " ")
            ]

    def test_an_instance_is_listed_while_it_gives_signs_of_life(self, storage: Any) -> None:
        storage.apply(batch(0, 1, deltas=[delta()]))
        ping = Heartbeat("shop", "shop-1", "GENERAL", MINUTE + 5, None)
        storage.apply(batch(1, 2, heartbeats=[ping]))
        shop = ids.service_id("shop")
        assert storage.instances(shop, BUCKET + 5, BUCKET + 9) != []
        assert storage.instances(shop, BUCKET + 6, BUCKET + 9) == []
        assert storage.instances(shop, BUCKET - 9, BUCKET - 1) == []

    def test_properties_are_merged_and_survive_a_plain_ping(self, storage: Any) -> None:
        told = [{"language": "python", "os": "linux"}, {"os": "bsd"}, None]
        beats = [Heartbeat("shop", "shop-1", "GENERAL", MINUTE, properties) for properties in told]
        storage.apply(batch(0, 3, heartbeats=beats))
        (instance,) = storage.instances(ids.service_id("shop"), BUCKET, BUCKET)
        assert instance.language == "PYTHON"
        assert instance.attributes == (("os", "bsd"),)

    def test_a_service_seen_in_two_layers_is_one_service(self, storage: Any) -> None:
        beats = [Heartbeat("shop", "i", layer, MINUTE, None) for layer in ("GENERAL", "MESH")]
        storage.apply(batch(0, 2, heartbeats=beats))
        (service,) = storage.services("MESH")
        assert service.layers == ("GENERAL", "MESH")

    def test_a_service_name_gives_its_group(self, storage: Any) -> None:
        storage.apply(batch(0, 1, deltas=[delta(service="team::shop")]))
        (service,) = storage.services(None)
        assert (service.group, service.short_name) == ("team", "shop")

    def test_progress_balances_delivered_and_dropped(self, storage: Any) -> None:
        parked = [Parked(1, 1, "undecodable: no", b"\xff\x00"), Parked(2, 9, "unknown_kind", b"")]
        counts = {"undecodable": 1, "unknown_kind": 1}
        storage.apply(batch(0, 3, [segment("a")], [delta()], parked=parked, dropped=counts))
        storage.apply(batch(3, 5, dropped={"undecodable": 2}))
        assert storage.progress("queue-a") == Applied(5, 1, {"undecodable": 3, "unknown_kind": 1})
        assert storage.parked("queue-a") == parked

    def test_records_are_kept_whole_and_read_by_kind_and_time(self, storage: Any) -> None:
        raw, tomorrow = bytes(range(256)), MINUTE + 1440
        rows = [(0, 5, MINUTE, raw), (1, 7, MINUTE, b""), (3, 5, tomorrow, b"x")]
        rows.append((2, 5, MINUTE, b"second"))
        storage.apply(batch(0, 4, records=records(*rows)))
        late = BUCKET + 10_000
        first, last = Record("queue-a", 0, 5, BUCKET, raw), Record("queue-a", 3, 5, late, b"x")
        second = Record("queue-a", 2, 5, BUCKET, b"second")
        assert storage.records(5, BUCKET, late, 9) == [first, second, last]
        assert storage.records(5, BUCKET, late, 2) == [first, second]
        assert storage.records(5, BUCKET, late, 1) == [first]
        assert storage.records(5, BUCKET + 1, late, 9) == [last]
        assert storage.records(7, BUCKET, BUCKET, 9) == [Record("queue-a", 1, 7, BUCKET, b"")]
        assert storage.records(6, BUCKET, late, 9) == []
        assert storage.progress("queue-a") == Applied(4, 4, {})

    def test_records_of_a_batch_that_is_refused_are_not_kept(self, storage: Any) -> None:
        with pytest.raises(PermanentError):
            storage.apply(batch(1, 2, records=records((1, 5, MINUTE, b"x"))))
        assert storage.records(5, BUCKET, BUCKET, 9) == []

    def test_no_more_services_are_listed_than_a_page_can_show(self, storage: Any) -> None:
        beats = [_beat(f"s{n:05}", "one") for n in range(METADATA_ROWS_MAX + 1)]
        storage.apply(batch(0, 1, heartbeats=beats))
        names = [service.name for service in storage.services(None)]
        assert names == [beat.service for beat in beats[:-1]]

    def test_a_service_beyond_the_list_is_found_by_its_id(self, storage: Any) -> None:
        beats = [_beat(f"s{n:05}", "one") for n in range(METADATA_ROWS_MAX + 1)]
        storage.apply(batch(0, 1, heartbeats=beats))
        asked = [ids.service_id(name) for name in (beats[-1].service, "nobody")]
        assert [one.name for one in storage.services(None, asked)] == [beats[-1].service]
        assert storage.services("MESH", asked) == []
        assert storage.services(None, []) == []

    def test_no_more_instances_are_listed_than_a_page_can_show(self, storage: Any) -> None:
        beats = [_beat("shop", f"i{n:05}") for n in range(METADATA_ROWS_MAX + 1)]
        storage.apply(batch(0, 1, heartbeats=beats))
        found = storage.instances(ids.service_id("shop"), BUCKET, BUCKET)
        assert [instance.name for instance in found] == [beat.instance for beat in beats[:-1]]

    def test_parked_records_are_read_up_to_a_number_and_a_size(self, storage: Any) -> None:
        parked = [Parked(n, 1, "undecodable", b"0123456789") for n in range(PARKED_MAX + 1)]
        storage.apply(batch(0, len(parked), parked=parked))
        assert storage.parked("queue-a") == parked[:-1]
        assert storage.parked("queue-a", limit=3) == parked[:3]
        assert storage.parked("queue-a", bytes_max=25) == parked[:2]
        assert storage.parked("queue-a", bytes_max=1) == parked[:1]

    def test_reads_are_answered_while_a_batch_is_held_midway(self, storage: Any) -> None:
        """With what there was before it; it is whole when it goes on."""
        storage.apply(batch(0, 1, [segment("a")], [delta()]))
        held = HeldMidway({"Service": deltas_of([delta(service="bank")])})
        writer = threading.Thread(
            target=storage.apply, args=[batch(1, 2, [segment("b")], metrics=held)]
        )
        writer.start()
        assert held.reached.wait(WITHIN_S)
        try:
            before = _all_read(storage)
            assert writer.is_alive()
        finally:
            held.go_on.set()
            writer.join(WITHIN_S)
        assert before == (1, ["shop"], ["/pay"], [{"calls": 1}], ["a"])
        after = (2, ["bank", "shop"], ["/pay"], [{"calls": 1}], ["a", "b"])
        assert _all_read(storage) == after

    def test_partitions_do_not_share_offsets(self, storage: Any) -> None:
        storage.apply(batch(0, 4))
        assert storage.applied("queue-b") == 0
