"""What the driver is told, without Spark: how it is carried, and what a mesh says of instances."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from skyfarer.oap.core.entities import INSTANCE_META
from skyfarer.oap.pipeline.analysis.settings import (
    AnalysisSettings,
    KeptSettings,
    NamingSettings,
    SlowSettings,
)
from skyfarer.oap.pipeline.sources.reports import TYPE
from skyfarer.oap.pipeline.told import TOLD, Telling, carried, unpacked
from skyfarer.oap.pipeline.told.messages import reports

NOON = 1_794_744_000_000


def test_workers_read_the_settings_that_were_written() -> None:
    slow = SlowSettings({"default": 200, "mongodb": 100}, {"redis": 10}, {})
    kept = KeptSettings("FROM_ENTRY_SPAN", ("a", "ö\n"), ("level",), slow)
    telling = Telling.by(AnalysisSettings(NamingSettings(1, 2, 3), kept=kept))
    assert Telling.read(telling.written()) == telling
    assert Telling.read(Telling().written()) == Telling()


def test_tables_of_different_columns_arrive_as_one() -> None:
    columns = {"sequence": pa.array([4, 5, 6]), "tags": pa.array([["a=b"], [], None])}
    first, none = carried(columns), carried({"sequence": pa.array([], pa.int64())})
    second = carried({"sequence": pa.array([7]), "reason": pa.array(["bad"])})
    assert [first.null_count, len(none), second.null_count] == [2, 0, 0]
    found = unpacked(pa.chunked_array([first, none, second]))
    assert found.schema == TOLD
    assert found["sequence"].to_pylist() == [4, 5, 6, 7]
    assert found["tags"].to_pylist() == [["a=b"], [], None, None]
    assert found["reason"].to_pylist() == [None, None, None, "bad"]


def test_of_no_rows_nothing_is_told() -> None:
    assert unpacked(pa.chunked_array([], pa.binary())) == TOLD.empty_table()


def test_of_an_instance_the_last_word_of_a_minute_is_told_for_each_record() -> None:
    def said(instance: str, at_s: int, version: str, source: str = INSTANCE_META) -> dict[str, Any]:
        pairs = [{"key": "version", "value": version}]
        told = {"source": source, "service": "shop", "instance": instance, "layer": 1}
        return {**told, "time": NOON + at_s * 1000, "properties": pairs}

    rows = [
        [said("a", 1, "1"), said("b", 2, "1"), said("a", 3, "2"), said("a", 61, "3")],
        [],
        [said("a", 5, "4"), said("c", 6, "1", "ServiceMesh")],
    ]
    found = pa.table(reports(pa.array(rows, TYPE), Telling())).to_pylist()
    assert [
        [(one["instance"], one["minute"] - NOON // 60_000, one["properties"]) for one in row]
        for row in (record["updates"] for record in found)
    ] == [
        [
            ("b", 0, [{"key": "version", "value": "1"}]),
            ("a", 0, [{"key": "version", "value": "2"}]),
            ("a", 1, [{"key": "version", "value": "3"}]),
        ],
        [],
        [("a", 0, [{"key": "version", "value": "4"}])],
    ]
    assert [(one["start_time"], one["last_time"]) for one in found] == [
        (NOON + 1000, NOON + 61_000),
        (None, None),
        (NOON + 5000, NOON + 6000),
    ]
