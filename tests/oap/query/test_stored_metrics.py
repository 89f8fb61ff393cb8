"""Metrics that were stored as the pipeline stores them, asked for by HTTP."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from contracts.storage_contract import batch
from golden.mqe.storing import deltas
from skyfarer.oap.core.layers import Layer
from skyfarer.oap.oal.interpreter import accumulate, values
from skyfarer.oap.oal.plan import Plan, SourcePlan
from skyfarer.oap.oal.series import SEPARATOR

STEPS = {
    "MINUTE": ("2026-11-15 0800", "2026-11-15 0802", 1),
    "HOUR": ("2026-11-15 08", "2026-11-15 08", 60),
    "DAY": ("2026-11-15", "2026-11-15", 1440),
}


def call(latency: int, status: bool, endpoint: str, **more: Any) -> dict[str, Any]:
    row = {"name": "cart", "latency": latency, "status": status, "endpointName": endpoint}
    return row | {"type": "HTTP", "tag": {}, "detectPoint": "CLIENT"} | more


# Two batches of two minutes, eight and two past; the second brings more of both.
BATCHES = (
    {0: [call(30, True, "/a"), call(1700, True, "/b")], 2: [call(620, False, "/a")]},
    {0: [call(95, False, "/a")], 2: [call(5, True, "/c"), call(40, True, "/a")]},
)


def source_plan(plan: Plan, source: str) -> SourcePlan:
    return next(one for one in plan.sources if one.source == source)


def store(shelf: Any, plan: SourcePlan, minute: int, **entity: Any) -> None:
    for rows in BATCHES:
        applied = shelf.storage.applied("queue-a")
        metrics = {plan.source: deltas(plan, minute, rows, **entity)}
        shelf.storage.apply(batch(applied, applied + 1, metrics=metrics))


def asked(shelf: Any, plan: SourcePlan, entity: dict[str, Any], step: str) -> list[dict[str, Any]]:
    """By point: metric → value as text, or label → value as text."""
    start, end, _ = STEPS[step]
    fields = "\n".join(
        f'{metric.name}: execExpression(expression: "{metric.name}", entity: $e, duration: $d)'
        " { error type results { metric { labels { key value } } values { value } } }"
        for metric in plan.metrics
    )
    query = f"query ($e: Entity!, $d: Duration!) {{ {fields} }}"
    data = shelf.ask(query, e=entity, d={"start": start, "end": end, "step": step})
    points: list[dict[str, Any]] = []
    for name, result in data.items():
        assert (result["type"], result["error"]) == ("TIME_SERIES_VALUES", None)
        for series in result["results"]:
            label = "".join(
                f"{{{one['key']}={one['value']}}}" for one in series["metric"]["labels"]
            )
            for number, value in enumerate(series["values"]):
                points += [{} for _ in range(number + 1 - len(points))]
                if value["value"] is not None:
                    points[number][name + label] = value["value"]
    return points


def expected(plan: SourcePlan, rows: list[Any], minutes: int) -> dict[str, str]:
    shown: dict[str, str] = {}
    for name, value in values(plan, accumulate(plan, rows), minutes).items():
        if isinstance(value, Mapping):
            shown |= {
                name + (label if label.startswith("{") else f"{{_={label}}}"): str(number)
                for label, number in value.items()
            }
        else:
            shown[name] = (
                f"{value:.3f}".rstrip("0").rstrip(".") if "." in str(value) else str(value)
            )
    return shown


@pytest.mark.parametrize(
    ("source", "stored", "entity"),
    [
        ("Service", {}, {}),
        (
            "ServiceRelation",
            {
                "service": "stock",
                "layer": Layer.VIRTUAL_DATABASE,
                "from_layer": Layer.GENERAL,
                "component": 7,
                "detect_point": "CLIENT",
            },
            {"destServiceName": "stock", "destNormal": False},
        ),
    ],
)
def test_what_batches_brought_is_read_by_the_minute_the_hour_and_the_day(
    shelf, plan, fresh, eight, source, stored, entity
):
    of = source_plan(plan, source)
    names = {"serviceName": fresh, "normal": True} | entity
    origin = "from_service" if entity else "service"
    store(shelf, of, eight // 60_000, **({"service": fresh} | stored | {origin: fresh}))
    first, last = ([row for rows in BATCHES for row in rows[after]] for after in (0, 2))
    by_step = {step: asked(shelf, of, names, step) for step in STEPS}
    assert by_step["MINUTE"] == [expected(of, first, 1), {}, expected(of, last, 1)]
    assert by_step["HOUR"] == [expected(of, first + last, 60)]
    assert by_step["DAY"] == [expected(of, first + last, 1440)]


def test_growth_of_a_counter_begins_with_the_bucket_before_the_chart(shelf, plan, fresh, eight):
    of = source_plan(plan, "InstanceMeter")
    counted = {-1: [40], 0: [60, 90], 2: [95, 100]}
    rows = {
        after: [{"meter": "instance_golang_gc_count", "value": value} for value in values]
        for after, values in counted.items()
    }
    applied = shelf.storage.applied("queue-a")
    told = deltas(of, eight // 60_000, rows, service=fresh, instance="one")
    shelf.storage.apply(batch(applied, applied + 1, metrics={of.source: told}))
    entity = {"serviceName": fresh, "normal": True, "serviceInstanceName": "one"}
    name = "meter_instance_golang_gc_count"
    assert asked(shelf, of, entity, "MINUTE") == [{name: "50"}, {}, {name: "5"}]
    assert asked(shelf, of, entity, "HOUR") == [{name: "1"}]


def test_growth_of_labelled_counters_is_shown_by_label_for_all_instances(shelf, plan, fresh, eight):
    of = source_plan(plan, "ServiceMeter")
    counted = {
        -1: [("a", "all", "1", 40), ("b", "all", "1", 900)],
        0: [("a", "all", "1", 90), ("b", "all", "1", 7), ("b", "failed", "1", 3)],
        2: [("a", "all", "2", 5), ("a", "all", "2", 6)],
    }
    rows = {
        after: [
            {
                "meter": "sw_stl_sender_output_count",
                "series": SEPARATOR.join([who, "pipe=p", f"status={status}", f"type={kind}"]),
                "value": value,
            }
            for who, status, kind, value in told
        ]
        for after, told in counted.items()
    }
    applied = shelf.storage.applied("queue-a")
    service = {"service": fresh, "layer": Layer.SO11Y_SATELLITE}
    told = deltas(of, eight // 60_000, rows, **service)
    shelf.storage.apply(batch(applied, applied + 1, metrics={of.source: told}))
    entity = {"serviceName": fresh, "normal": True}
    name = "satellite_service_send_event_count"
    every, failed = f"{name}{{pipe=p}}{{status=all}}", f"{name}{{pipe=p}}{{status=failed}}"
    assert asked(shelf, of, entity, "MINUTE") == [{every: "57", failed: "0"}, {}, {every: "1"}]
    found = shelf.ask(
        """query ($e: Entity!, $d: Duration!) { some: execExpression(entity: $e, duration: $d,
        expression: "satellite_service_send_event_count{pipe='p,q',status='failed'}")
        { results { metric { labels { key value } } } } }""",
        e=entity,
        d=dict(zip(("start", "end"), STEPS["MINUTE"], strict=False)) | {"step": "MINUTE"},
    )
    (series,) = found["some"]["results"]
    assert series["metric"]["labels"] == [
        {"key": "pipe", "value": "p"},
        {"key": "status", "value": "failed"},
    ]


def test_a_metric_of_a_source_that_has_no_rows_has_no_value(shelf, plan, fresh):
    of = source_plan(plan, "GenAIModelAccess")
    entity = {"serviceName": fresh, "normal": True, "serviceInstanceName": "one"}
    assert asked(shelf, of, entity, "MINUTE") == [{}, {}, {}]
