"""Random traffic through the queue, Spark and the sink into storage: exactly what a plain model of
all of it says, in every table."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from pyspark.sql import SparkSession

from golden.model import Facts, Model
from golden.queued import Window, random_queue
from golden.records import unlike
from golden.stored import facts_in, records_in, settings_of
from golden.together import OF_TRACES
from oap.pipeline.bench import NOON, Bench
from skyfarer.oap.core.expiry import Retention
from skyfarer.oap.core.storage import Applied
from skyfarer.oap.oal.compiler import plan_of, shipped
from skyfarer.oap.pipeline.metrics import Metrics
from skyfarer.testing.plain_analysis import Rules
from skyfarer.testing.plain_analysis.keeping import Keeping, Policy
from skyfarer.testing.random_segments import GATEWAYS, PRICES, PROVIDERS
from skyfarer.wire.messages import (
    KeyStringValuePair,
    SegmentObject,
    SegmentReference,
    SpanObject,
)

GROUPS = 140
SHOWN_MAX = 8
OUTCOMES = ("delivered", "duplicate", "expired", "future")
DAY_MS = 86_400_000
NOW_MS = NOON + 3_600_000
DAYS = 7
WINDOW = Window((NOW_MS // DAY_MS - DAYS + 1) * DAY_MS, NOW_MS, NOW_MS + 600_000)
RULES = Rules(GATEWAYS, providers=PROVIDERS, prices=PRICES)
KEEPING = Keeping(
    searchable=("http.status_code", "db.type", "cache.type", "db.statement"),
    policy=Policy(5_000, 2_500),
    services={"shop": Policy(rate=9_000), "cart": Policy(duration_ms=500)},
    database_ms={"default": 10, "mysql": 0},
    cache_read_ms={"default": 0, "redis": 5},
    cache_write_ms={"default": 5},
)
PLAN = plan_of([text for text in shipped() if text.file in OF_TRACES])


class Ran(NamedTuple):
    queue: list[list[SegmentObject]]
    bench: Bench
    model: Model


@pytest.fixture(scope="module")
def ran(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ran]:
    directory: Path = tmp_path_factory.mktemp("random")
    settings = settings_of(RULES, KEEPING, Retention(DAYS, DAYS))
    bench = Bench(directory, spark, settings, metrics=Metrics(PLAN, settings))
    bench.start(directory / "skyfarer.duckdb")
    model = Model(RULES, KEEPING, PLAN, WINDOW)
    queue = random_queue(GROUPS, WINDOW)
    queue[0] += [*certain()]
    for batch in queue:
        model.apply(batch)
        bench.append(*batch)
        bench.apply()
    yield Ran(queue, bench, model)
    bench.stop()


def certain() -> Iterator[SegmentObject]:
    """What random traffic has mostly: a cache that is slow both ways, and callers whose names have
    no letter, which are one service, first seen by neither the first nor the last of them."""
    for operation in ("read", "write"):
        told = {"cache.type": "redis", "cache.op": operation, "cache.cmd": "get", "cache.key": "k"}
        cached = SpanObject(spanType="Exit", spanLayer="Cache", peer="redis:6379")
        cached.tags.extend(KeyStringValuePair(key=key, value=value) for key, value in told.items())
        yield at(0, f"slow to {operation}", cached)
    for number, minute in enumerate((3, 1, 2)):
        caller = SegmentReference(parentService=" " * number, refType="CrossProcess")
        yield at(minute, f"of {number}", SpanObject(refs=[caller], operationName="/pay"))


def at(minute: int, name: str, span: SpanObject) -> SegmentObject:
    span.startTime = NOON + minute * 60_000 - 7 * 3_600_000
    span.endTime = span.startTime + 50
    return SegmentObject(traceSegmentId=name, traceId=name, service="shop", spans=[span])


def test_every_metric_relation_entity_and_alias_is_what_the_model_says(ran: Ran) -> None:
    told = [*_unlike(ran.model.facts, facts_in(ran.bench, PLAN))]
    assert f"{len(told)} differ\n" + "\n".join(told[:SHOWN_MAX]) == "0 differ\n"


def test_every_record_is_what_the_model_says(ran: Ran) -> None:
    told = unlike(ran.model.records, records_in(ran.bench))
    assert f"{len(told)} differ\n" + "\n".join(told[:SHOWN_MAX]) == "0 differ\n"


def test_every_segment_has_the_outcome_that_the_model_says(ran: Ran) -> None:
    outcomes = dict(ran.model.outcomes)
    sent = sum(map(len, ran.queue))
    assert ran.bench.progress() == Applied(sent, outcomes.pop("delivered"), outcomes)
    assert ran.bench.parked() == ran.model.parked


def test_the_traffic_has_all_that_can_become_of_a_segment(ran: Ran) -> None:
    records, tables = ran.model.records, {key[0] for key in ran.model.facts}
    assert min(ran.model.outcomes[one] for one in OUTCOMES) > GROUPS / 10
    assert 0 < len(records.segments) < ran.model.outcomes["delivered"]
    assert {one["what"] for one in records.slow} == {
        *("top_n_database_statement", "top_n_service_database_statement"),
        *("top_n_cache_read_command", "top_n_cache_write_command"),
    }
    assert len({one["second"] // 10**6 for one in records.segments}) == DAYS
    assert records.tags
    assert len(tables) == len(("metrics", "alias")) + 5 + 3


def _unlike(plain: Facts, stored: Facts) -> Iterator[str]:
    for key in sorted(plain.keys() | stored.keys(), key=repr):
        one, other = plain.get(key, "nothing"), stored.get(key, "nothing")
        if one != other:
            yield f"{key}: plain {one}, storage {other}"
