"""What every storage provider does with metrics, relations and aliases, beside StorageContract."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from contracts.storage_contract import BUCKET, MINUTE, TABLE, batch, delta, deltas_of
from skyfarer.base.errors import PermanentError
from skyfarer.oap.core import ids
from skyfarer.oap.core.entities import (
    ADDRESS_ALIAS,
    ENDPOINT_META,
    ENTITIES,
    SERVICE_META,
    DetectPoint,
    Entity,
)
from skyfarer.oap.core.layers import Layer
from skyfarer.oap.core.storage import Deltas, Merge, Relation

HOUR, DAY = BUCKET // 100, BUCKET // 10_000
SHOP = ids.service_id("shop")
KEYS = ("entity_id", "time_bucket")
WIDE = {"total": Merge.SUM, "slowest": Merge.MAX, "fastest": Merge.MIN, "buckets": Merge.SUM}
TYPES = {"buckets": TABLE, "ratio": pa.float64(), "lowest": pa.float64()}


def of_wide(*rows: dict[str, Any], merges: Mapping[str, Merge] = WIDE) -> Deltas:
    return deltas_of(rows, merges, {name: TYPES[name] for name in merges if name in TYPES})


def called(minute: int = MINUTE, **other: Any) -> dict[str, Any]:
    """The shop calls the bank, as the bank sees it."""
    row = delta(minute, from_service="shop", from_layer=Layer.GENERAL, from_instance="shop-1")
    row |= {"from_endpoint": "/pay", "service": "bank", "instance": "bank-1", "endpoint": "/take"}
    return row | {"component": 1, "detect_point": "SERVER"} | other


def address(minute: int, name: str, service: str, instance: str) -> dict[str, Any]:
    return delta(minute, endpoint=name, service=service, instance=instance)


def only(source: str, *rows: dict[str, Any]) -> dict[str, Deltas]:
    return {source: deltas_of(rows, {})}


def aliases_of(storage: Any) -> dict[str, tuple[str, str]]:
    rows = storage.aliases().to_pylist()
    return {row["address"]: (row["alias_service"], row["alias_instance"]) for row in rows}


def rows_of(storage: Any, source: str, start: int, end: int, *service: str) -> list[Any]:
    found = storage.rows(source, ["total"], start, end, *service).select([*KEYS, "total"])
    return sorted(tuple(row.values()) for row in found.to_pylist())


class MetricsContract:
    def test_columns_merge_as_they_say_and_null_is_none(self, storage: Any) -> None:
        told = [
            delta(total=1, slowest=5, fastest=5, buckets={"1": 1, "2": 1}),
            delta(total=2, slowest=None, fastest=7, buckets=None),
            delta(total=None, slowest=9, fastest=2, buckets={"2": 5, "é": 1}),
        ]
        storage.apply(batch(0, 2, metrics={"Service": of_wide(*told[:2])}))
        storage.apply(batch(2, 3, metrics={"Service": of_wide(told[2])}))
        merged = {"total": 3, "slowest": 9, "fastest": 2, "buckets": {"1": 1, "2": 6, "é": 1}}
        assert storage.series("Service", SHOP, list(WIDE), BUCKET, BUCKET) == {BUCKET: merged}

    def test_tables_take_the_larger_or_the_smaller_value_of_each_key(self, storage: Any) -> None:
        merges = {"most": Merge.MAX, "least": Merge.MIN}
        told: list[dict[str, int]] = [{"a": 5, "b": 2}, {"b": 9, "c": 0}, {"a": 4, "c": -1}]
        for number, table in enumerate(told):
            row = delta(MINUTE + number // 2, most=table, least=table)
            rows = deltas_of([row], merges, dict.fromkeys(merges, TABLE))
            storage.apply(batch(number, number + 1, metrics={"Service": rows}))
        found = {
            bucket: storage.series("Service", SHOP, list(merges), bucket, bucket)[bucket]
            for bucket in (BUCKET, HOUR, DAY)
        }
        most = {"a": 5, "b": 9, "c": 0}
        assert found[BUCKET] == {"most": most, "least": {"a": 5, "b": 2, "c": 0}}
        assert found[HOUR] == {"most": most, "least": {"a": 4, "b": 2, "c": -1}}
        assert found[DAY] == found[HOUR]

    def test_hours_and_days_are_merged_minutes(self, storage: Any) -> None:
        at = (MINUTE, MINUTE + 59, MINUTE + 60, MINUTE + 1440)
        for number, minute in enumerate(at):
            row = delta(minute, total=2**number, slowest=number, fastest=number, buckets={"1": 1})
            storage.apply(batch(number, number + 1, metrics={"Service": of_wide(row)}))

        def total(start: int, end: int) -> dict[int, Any]:
            found = storage.series("Service", SHOP, ["total", "buckets"], start, end)
            return {bucket: (row["total"], row["buckets"]["1"]) for bucket, row in found.items()}

        assert total(HOUR, HOUR + 100) == {HOUR: (3, 2), HOUR + 1: (4, 1), HOUR + 100: (8, 1)}
        assert total(HOUR + 1, HOUR + 1) == {HOUR + 1: (4, 1)}
        assert total(DAY, DAY + 1) == {DAY: (7, 3), DAY + 1: (8, 1)}
        assert sorted(total(BUCKET, BUCKET + 59)) == [BUCKET, BUCKET + 59]

    def test_a_range_has_one_precision(self, storage: Any) -> None:
        for start, end in ((BUCKET, HOUR), (DAY, BUCKET), (2026, 2027)):
            with pytest.raises(ValueError, match="one precision"):
                storage.series("Service", SHOP, ["total"], start, end)

    def test_rows_of_all_entities_are_read_at_once(self, storage: Any) -> None:
        told = [delta(MINUTE + n // 2, endpoint=f"/{n % 2}", total=n) for n in range(4)]
        told.append(delta(MINUTE + 1440, endpoint="/0", total=None))
        storage.apply(batch(0, 1, metrics={"Endpoint": deltas_of(told, {"total": Merge.SUM})}))
        first, second = (ids.endpoint_id(SHOP, f"/{n}") for n in range(2))
        assert rows_of(storage, "Endpoint", BUCKET, BUCKET + 1) == [
            *((first, BUCKET, 0), (first, BUCKET + 1, 2)),
            *((second, BUCKET, 1), (second, BUCKET + 1, 3)),
        ]
        days = [(first, DAY, 2), (first, DAY + 1, None), (second, DAY, 4)]
        assert rows_of(storage, "Endpoint", DAY, DAY + 1) == days
        assert rows_of(storage, "Endpoint", HOUR + 1, HOUR + 9) == []

    def test_rows_may_be_those_of_one_service(self, storage: Any) -> None:
        names = ("shop", "shop-2", "sho", "bank")
        told = [delta(service=name, total=n) for n, name in enumerate(names)]
        sources = ("Service", "ServiceInstance", "Endpoint")
        deltas = deltas_of(told, {"total": Merge.SUM})
        storage.apply(batch(0, 1, metrics=dict.fromkeys(sources, deltas)))
        for number, name in enumerate(names):
            service = ids.service_id(name)
            entities = service, ids.instance_id(service, "shop-1"), ids.endpoint_id(service, "/pay")
            for source, entity in zip(sources, entities, strict=True):
                found = rows_of(storage, source, BUCKET, BUCKET, service)
                assert found == [(entity, BUCKET, number)]
        assert rows_of(storage, "Endpoint", BUCKET, BUCKET, ids.service_id("none")) == []
        with pytest.raises(ValueError, match="two services"):
            storage.rows("ServiceRelation", ["total"], BUCKET, BUCKET, SHOP)

    def test_rows_lack_columns_that_were_never_written(self, storage: Any) -> None:
        assert storage.rows("Service", ["total"], BUCKET, BUCKET).to_pylist() == []
        for number, column in enumerate(("total", "slowest")):
            row, merges = delta(MINUTE + 1440 * number, **{column: 7}), {column: WIDE[column]}
            storage.apply(
                batch(number, number + 1, metrics={"Service": of_wide(row, merges=merges)})
            )
        wanted = ["slowest", "total", "never", 'no"column']
        found = storage.rows("Service", wanted, DAY, DAY + 1).sort_by("time_bucket").to_pylist()
        row = {"entity_id": SHOP, "total": 7, "slowest": None, "time_bucket": DAY}
        assert found == [row, row | {"total": None, "slowest": 7, "time_bucket": DAY + 1}]
        assert storage.rows("Service", ["never"], DAY, DAY).column_names == list(KEYS)

    def test_rows_hold_tables_too(self, storage: Any) -> None:
        row = delta(total=1, slowest=2, fastest=3, buckets={"1": 4})
        storage.apply(batch(0, 1, metrics={"Service": of_wide(row)}))
        (found,) = storage.rows("Service", ["buckets"], BUCKET, BUCKET).to_pylist()
        assert dict(found["buckets"]) == {"1": 4}

    def test_doubles_keep_their_fractions(self, storage: Any) -> None:
        merges = {"ratio": Merge.SUM, "lowest": Merge.MIN}
        for number, ratio in enumerate((0.5, 0.25)):
            row = delta(ratio=ratio, lowest=-ratio)
            metrics = {"Service": of_wide(row, merges=merges)}
            storage.apply(batch(number, number + 1, metrics=metrics))
        series = storage.series("Service", SHOP, list(merges), BUCKET, BUCKET)
        assert series == {BUCKET: {"ratio": 0.75, "lowest": -0.5}}

    def test_a_plan_may_add_columns_and_leave_others_alone(self, storage: Any) -> None:
        row = delta(total=1, buckets={"1": 1}, slowest=4, ratio=0.5)
        first, second = {"total": Merge.SUM, "buckets": Merge.SUM}, {"ratio": Merge.SUM}
        plans: list[dict[str, Merge]] = [first, {**second, "total": Merge.SUM}, first]
        for number, merges in enumerate(plans):
            metrics = {"Service": of_wide(row, merges=merges)}
            storage.apply(batch(number, number + 1, metrics=metrics))
        series = storage.series("Service", SHOP, ["total", "ratio", "buckets"], DAY, DAY)
        assert series == {DAY: {"total": 3, "ratio": 0.5, "buckets": {"1": 2}}}

    def test_what_was_never_written_is_left_out(self, storage: Any) -> None:
        assert storage.series("Endpoint", "none", ["total"], BUCKET, BUCKET) == {}
        rows = [delta(total=1, slowest=None), delta(MINUTE + 1, total=None, slowest=3)]
        storage.apply(batch(0, 1, metrics={"Service": of_wide(*rows)}))
        wanted = ["total", "never", 'no"column', ""]
        series = storage.series("Service", SHOP, wanted, BUCKET, BUCKET + 9)
        assert series == {BUCKET: {"total": 1}}
        assert storage.series("Service", "other", wanted, BUCKET, BUCKET) == {}
        assert storage.series("Endpoint", SHOP, wanted, BUCKET, BUCKET) == {}

    def test_a_name_that_is_no_column_stores_nothing(self, storage: Any) -> None:
        for name in ('total"; DROP TABLE service_traffic; --', "a" * 64, "", "1st", "entity_id"):
            metrics = {"Service": deltas_of([delta(**{name: 1})], {name: Merge.SUM})}
            with pytest.raises(PermanentError, match="column"):
                storage.apply(batch(0, 1, metrics=metrics))
        assert storage.applied("queue-a") == 0
        assert storage.services(None) == []

    def test_a_column_keeps_its_type(self, storage: Any) -> None:
        merges = {"total": Merge.SUM}
        storage.apply(batch(0, 1, metrics={"Service": of_wide(delta(total=1), merges=merges)}))
        other = deltas_of([delta(total=0.5)], merges, {"total": pa.float64()})
        with pytest.raises(PermanentError, match="total"):
            storage.apply(batch(1, 2, metrics={"Service": other}))
        assert storage.applied("queue-a") == 1

    def test_a_sum_that_grows_too_large_stops_no_batch(self, storage: Any) -> None:
        row = delta(total=2**63 - 1, slowest=1, fastest=1, buckets={"1": 2**63 - 1})
        for number in range(2):
            storage.apply(batch(number, number + 1, metrics={"Service": of_wide(row)}))
        assert storage.applied("queue-a") == 2

    def test_a_table_has_no_more_keys_than_its_bound(self, storage: Any) -> None:
        tables = [{"m": 1, "n": 1}, {"a": 1, "m": 1, "z": 1}, {"b": 1}]
        for number, table in enumerate(tables):
            rows = deltas_of([delta(buckets=table)], {"buckets": Merge.SUM}, {"buckets": TABLE})
            deltas = replace(rows, bounds={"buckets": 3})
            storage.apply(batch(number, number + 1, metrics={"Service": deltas}))
        for bucket in (BUCKET, HOUR, DAY):
            series = storage.series("Service", SHOP, ["buckets"], bucket, bucket)
            assert series == {bucket: {"buckets": {"m": 2, "n": 1, "a": 1}}}

    def test_every_source_has_rows_of_its_own_under_the_id_of_its_entity(
        self, storage: Any
    ) -> None:
        virtual = {"DatabaseAccess", "CacheAccess", "MQAccess", "MQEndpointAccess"}
        metrics = {}
        for number, source in enumerate(ENTITIES):
            layer = Layer.VIRTUAL_MQ if source in virtual else Layer.GENERAL
            row = called(layer=layer, total=number)
            metrics[source] = deltas_of([row], {"total": Merge.SUM})
        storage.apply(batch(0, 1, metrics=metrics))
        for number, source in enumerate(ENTITIES):
            entity = _entity_id(ENTITIES[source], ids.service_id("bank", source not in virtual))
            series = storage.series(source, entity, ["total"], BUCKET, BUCKET)
            assert series == {BUCKET: {"total": number}}, source

    def test_rows_of_a_relation_are_one_whatever_they_were_seen_with(self, storage: Any) -> None:
        rows = [called(component=n, detect_point=p, total=1) for n in (1, 2) for p in DetectPoint]
        storage.apply(
            batch(0, 1, metrics={"ServiceRelation": deltas_of(rows, {"total": Merge.SUM})})
        )
        entity = ids.relation_id(SHOP, ids.service_id("bank"))
        series = storage.series("ServiceRelation", entity, ["total"], BUCKET, BUCKET)
        assert series == {BUCKET: {"total": len(rows)}}

    def test_virtual_services_are_listed_in_their_layers(self, storage: Any) -> None:
        rows = [
            delta(service="mysql:3306", layer=Layer.VIRTUAL_DATABASE),
            delta(service="shop", layer=Layer.VIRTUAL_GATEWAY),
            delta(service="odd", layer=4711),
        ]
        storage.apply(batch(0, 1, deltas=[delta(), delta(layer=Layer.FAAS)]))
        storage.apply(batch(1, 2, metrics=only(SERVICE_META, *rows)))
        assert {(s.id, s.name, s.layers, s.normal) for s in storage.services(None)} == {
            (SHOP, "shop", ("FAAS", "GENERAL"), True),
            (ids.service_id("shop", False), "shop", ("VIRTUAL_GATEWAY",), False),
            (ids.service_id("mysql:3306", False), "mysql:3306", ("VIRTUAL_DATABASE",), False),
            (ids.service_id("odd"), "odd", ("UNDEFINED",), True),
        }
        (database,) = storage.services("VIRTUAL_DATABASE")
        assert database.name == "mysql:3306"

    def test_an_endpoint_that_was_merely_heard_of_was_never_called(self, storage: Any) -> None:
        topic = delta(service="kafka:9092", layer=Layer.VIRTUAL_MQ, endpoint="orders")
        storage.apply(batch(0, 1, metrics=only(ENDPOINT_META, topic)))
        kafka = ids.service_id("kafka:9092", False)
        (endpoint,) = storage.endpoints(kafka, "", 9)
        assert (endpoint.id, endpoint.name) == (ids.endpoint_id(kafka, "orders"), "orders")
        assert storage.endpoints(kafka, "", 9, (BUCKET, BUCKET)) == []
        storage.apply(batch(1, 2, metrics=only("Endpoint", topic)))
        storage.apply(batch(2, 3, metrics=only(ENDPOINT_META, topic)))
        assert storage.endpoints(kafka, "", 9, (BUCKET, BUCKET)) == [endpoint]

    def test_relations_are_read_by_the_end_at_which_they_were_seen(self, storage: Any) -> None:
        bank = ids.service_id("bank")
        seen = [called(component=n) for n in (3, 1, 3)]
        seen += [called(component=7, detect_point=point) for point in ("CLIENT", "PROXY")]
        seen.append(called(from_service="User", from_layer=Layer.UNDEFINED))
        storage.apply(batch(0, 1, metrics=only("ServiceRelation", *seen)))
        storage.apply(batch(1, 2, metrics=only("ServiceRelation", called(component=2))))
        user = ids.service_id("User", False)
        server, client = DetectPoint.SERVER, DetectPoint.CLIENT
        pay = Relation(ids.relation_id(SHOP, bank), SHOP, bank, server, (1, 2, 3))
        use = Relation(ids.relation_id(user, bank), user, bank, server, (1,))
        for bucket in (BUCKET, HOUR, DAY):
            found = storage.relations(Entity.SERVICE_RELATION, server, bucket, bucket)
            assert found == sorted([pay, use], key=lambda relation: relation.id)
            (other,) = storage.relations(Entity.SERVICE_RELATION, client, bucket, bucket)
            assert (other.id, other.detect_point, other.components) == (pay.id, client, (7,))
        assert storage.relations(Entity.SERVICE_RELATION, server, BUCKET + 1, BUCKET + 9) == []
        for of, expected in ({SHOP}, [pay]), ({user, SHOP}, found), ({bank}, found), (set(), []):
            got = storage.relations(Entity.SERVICE_RELATION, server, DAY, DAY, of=of)
            assert got == expected

    def test_a_relation_of_several_days_is_one(self, storage: Any) -> None:
        seen = [called(component=1), called(MINUTE + 1440, component=2)]
        storage.apply(batch(0, 1, metrics=only("ServiceRelation", *seen)))
        (found,) = storage.relations(Entity.SERVICE_RELATION, DetectPoint.SERVER, HOUR, HOUR + 100)
        assert found.components == (1, 2)

    def test_relations_of_instances_and_endpoints_have_their_ends(self, storage: Any) -> None:
        bank = ids.service_id("bank")
        row, late = called(component=5), called(component=4)
        sources = ("ServiceInstanceRelation", "EndpointRelation")
        for number, one in enumerate((row, late)):
            metrics = {source: deltas_of([one], {}) for source in sources}
            storage.apply(batch(number, number + 1, metrics=metrics))
        server, client = DetectPoint.SERVER, DetectPoint.CLIENT
        ends = ids.instance_id(SHOP, "shop-1"), ids.instance_id(bank, "bank-1")
        calls = Relation(ids.relation_id(*ends), *ends, server, ())
        for of in (None, {SHOP}, {bank}):
            found = storage.relations(Entity.INSTANCE_RELATION, server, BUCKET, BUCKET, of=of)
            assert found == [calls]
        ends = ids.endpoint_id(SHOP, "/pay"), ids.endpoint_id(bank, "/take")
        identifier = ids.endpoint_relation_id(SHOP, "/pay", bank, "/take")
        for of in (None, {ends[0]}, {ends[1]}):
            found = storage.relations(Entity.ENDPOINT_RELATION, server, BUCKET, BUCKET, of=of)
            assert found == [Relation(identifier, *ends, server, (5,))]
        for entity in (Entity.INSTANCE_RELATION, Entity.ENDPOINT_RELATION, Entity.SERVICE):
            assert storage.relations(entity, client, BUCKET, BUCKET) == []

    def test_an_address_is_of_who_claimed_it_last(self, storage: Any) -> None:
        assert aliases_of(storage) == {}
        first = [address(MINUTE, "10.0.0.1:80", "shop", "a"), address(MINUTE, "b:80", "bank", "b")]
        first.append(address(MINUTE - 1, "10.0.0.1:80", "zoo", "z"))
        storage.apply(batch(0, 1, metrics=only(ADDRESS_ALIAS, *first)))
        assert aliases_of(storage) == {"10.0.0.1:80": ("shop", "a"), "b:80": ("bank", "b")}
        older = address(MINUTE - 9, "b:80", "zoo", "z")
        newer = address(MINUTE + 1, "10.0.0.1:80", "shop", "a2")
        storage.apply(batch(1, 2, metrics=only(ADDRESS_ALIAS, older, newer)))
        assert aliases_of(storage) == {"10.0.0.1:80": ("shop", "a2"), "b:80": ("bank", "b")}
        assert storage.services(None) == []

    def test_aliases_of_a_refused_batch_are_not_kept(self, storage: Any) -> None:
        claim = only(ADDRESS_ALIAS, address(MINUTE, "b:80", "bank", "b"))
        with pytest.raises(PermanentError):
            storage.apply(batch(1, 2, metrics=claim))
        assert aliases_of(storage) == {}


def _entity_id(entity: Entity, bank: str) -> str:
    shop_1, bank_1 = ids.instance_id(SHOP, "shop-1"), ids.instance_id(bank, "bank-1")
    return {
        Entity.SERVICE: bank,
        Entity.INSTANCE: bank_1,
        Entity.ENDPOINT: ids.endpoint_id(bank, "/take"),
        Entity.SERVICE_RELATION: ids.relation_id(SHOP, bank),
        Entity.INSTANCE_RELATION: ids.relation_id(shop_1, bank_1),
        Entity.ENDPOINT_RELATION: ids.endpoint_relation_id(SHOP, "/pay", bank, "/take"),
    }[entity]
