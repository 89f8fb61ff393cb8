"""Text of Prometheus read, relabelled and made into meters."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skyfarer.satellite.fetchers.prometheus.config import (
    PrometheusFetcherConfig,
    RelabelConfig,
)
from skyfarer.satellite.fetchers.prometheus.exposition import Sample, Type, parse
from skyfarer.satellite.fetchers.prometheus.meters import COLLECTION_BYTES_MAX, Meters
from skyfarer.satellite.fetchers.prometheus.relabel import Relabel
from skyfarer.satellite.fetchers.prometheus.target import Target, target
from skyfarer.telemetry.exposition import Family, render
from skyfarer.wire.generated.meter_pb2 import MeterData, MeterDataCollection

HISTOGRAM = b"""
# HELP request_seconds How long.
# TYPE request_seconds histogram
request_seconds_bucket{path="/a",le="0.1"} 3
request_seconds_bucket{path="/a",le="0.5"} 5
request_seconds_bucket{path="/a",le="+Inf"} 9
request_seconds_sum{path="/a"} 7.5
request_seconds_count{path="/a"} 9
"""


def collected(body: bytes, now_ms: int = 1000, rules: tuple[RelabelConfig, ...] = ()):
    meters, relabel = Meters("orders", "orders-1", now_ms), Relabel(rules)
    for row in parse(body):
        if isinstance(row, Type):
            meters.declare(row)
        elif row is not None:
            kept = relabel.apply(row, {b"job": b"shop"})
            if kept is not None:
                meters.add(kept, row.name)
    return [MeterDataCollection.FromString(one) for one in meters.collections()]


def singles(collections: list[MeterDataCollection]) -> dict[tuple, float]:
    return {
        (one.singleValue.name, *((each.name, each.value) for each in one.singleValue.labels)): (
            one.singleValue.value
        )
        for collection in collections
        for one in collection.meterData
        if one.HasField("singleValue")
    }


@pytest.mark.parametrize(
    ("line", "sample"),
    [
        (b"up 1", Sample(b"up", {}, 1.0, None)),
        (b"up\t1.5e3 ", Sample(b"up", {}, 1500.0, None)),
        (b"up{} 1", Sample(b"up", {}, 1.0, None)),
        (b'a:b{x="1",y="2",} 3 99', Sample(b"a:b", {b"x": b"1", b"y": b"2"}, 3.0, 99)),
        (b'a { x = "1" , y="2" } 3', Sample(b"a", {b"x": b"1", b"y": b"2"}, 3.0, None)),
        (b'a{x="q\\"}\\\\n\\n"}2', Sample(b"a", {b"x": b'q"}\\n\n'}, 2.0, None)),
        (b'a{x="{,}="} -Inf', Sample(b"a", {b"x": b"{,}="}, -math.inf, None)),
        (b'a{x=""} 0 -5', Sample(b"a", {b"x": b""}, 0.0, -5)),
        ('a{x="grüße"} 1\r'.encode(), Sample(b"a", {b"x": "grüße".encode()}, 1.0, None)),
    ],
)
def test_a_sample_is_read(line: bytes, sample: Sample) -> None:
    assert list(parse(line)) == [sample]


def test_not_a_number_is_read_as_such() -> None:
    (sample,) = parse(b"a NaN")
    assert isinstance(sample, Sample) and math.isnan(sample.value)


@pytest.mark.parametrize(
    "line",
    [
        b"up",
        b"up{",
        b'a{x="1} 1',
        b"a{x=1} 1",
        b'a{="1"} 1',
        b"1a 1",
        b"a one",
        b"a 1 2 3",
        b"<html>",
    ],
)
def test_a_line_that_is_no_sample_is_told(line: bytes) -> None:
    assert list(parse(b"up 1\n" + line + b"\n")) == [Sample(b"up", {}, 1.0, None), None]


def test_comments_and_blank_lines_say_nothing_and_types_are_told() -> None:
    body = b"# a comment\n\n# HELP a x\n#TYPE is a comment\n# TYPE a histogram\n"
    assert list(parse(body)) == [Type(b"a", b"histogram")]


@given(st.binary(max_size=200))
def test_anything_is_read_or_told(body: bytes) -> None:
    assert len(list(parse(body))) <= body.count(b"\n") + 1


@given(
    st.dictionaries(
        st.tuples(st.text(), st.text()),
        st.floats(allow_nan=False, allow_infinity=False),
        max_size=5,
    )
)
def test_what_our_own_exposition_writes_is_read_back(series: dict) -> None:
    family = Family("some_metric", "gauge", "Help with \\ and \n.", ("first", "second"), series)

    found = [row for row in parse(render([family]).encode()) if isinstance(row, Sample)]

    wanted = {tuple(text.encode() for text in key) for key in series}
    assert {(row.labels[b"first"], row.labels[b"second"]) for row in found} == wanted
    assert sorted(row.value for row in found) == sorted(series.values())


def test_counters_gauges_and_summaries_are_single_values_with_their_own_names() -> None:
    body = b"""
# TYPE taken_total counter
taken_total 5
# TYPE temperature gauge
temperature{room="x"} -2.5
# TYPE latency summary
latency{quantile="0.99"} 0.25
latency_sum 10
latency_count 4
untyped 7
"""
    (collection,) = collected(body)
    first = collection.meterData[0]

    assert (first.service, first.serviceInstance, first.timestamp) == ("orders", "orders-1", 1000)
    job = ("job", "shop")
    assert singles([collection]) == {
        ("taken_total", job): 5,
        ("temperature", ("room", "x"), job): -2.5,
        ("latency", ("quantile", "0.99"), job): 0.25,
        ("latency_sum", job): 10,
        ("latency_count", job): 4,
        ("untyped", job): 7,
    }


def test_a_histogram_counts_each_bucket_alone_by_its_lower_bound() -> None:
    (collection,) = collected(HISTOGRAM)
    (found,) = [one.histogram for one in collection.meterData if one.HasField("histogram")]

    assert found.name == "request_seconds"
    assert {label.name: label.value for label in found.labels} == {"path": "/a", "job": "shop"}
    buckets = [(one.isNegativeInfinity, one.bucket, one.count) for one in found.values]
    assert buckets == [(True, 0.0, 3), (False, 0.1, 2), (False, 0.5, 4)]
    assert len(singles([collection])) == 2


def test_a_series_named_like_a_bucket_outside_of_a_histogram_is_a_single_value() -> None:
    assert singles(collected(b'my_bucket{le="1"} 3\n')) == {
        ("my_bucket", ("le", "1"), ("job", "shop")): 3
    }


def test_values_that_are_not_finite_are_left_out() -> None:
    meters = Meters("orders", "", 1)
    for row in parse(b"a NaN\nb +Inf\nc 1\n"):
        assert isinstance(row, Sample)
        meters.add(row)

    assert (meters.kept, meters.skipped) == (1, 2)


def test_samples_with_a_time_of_their_own_are_a_set_of_their_own() -> None:
    found = collected(b"a 1\nb 2 5000\nc 3\n")

    times = {one.meterData[0].timestamp: len(one.meterData) for one in found}
    assert times == {1000: 2, 5000: 1}


def test_many_samples_become_several_bounded_collections_each_with_its_identity() -> None:
    body = b"".join(b'a{number="%d"} %d\n' % (n, n) for n in range(40_000))
    meters = Meters("orders", "orders-1", 7)
    for row in parse(body):
        assert isinstance(row, Sample)
        meters.add(row)
    made = meters.collections()

    assert len(made) > 1 and max(map(len, made)) < 1.2 * COLLECTION_BYTES_MAX
    found = [MeterDataCollection.FromString(one) for one in made]
    assert {one.meterData[0].service for one in found} == {"orders"}
    assert sum(len(one.meterData) for one in found) == 40_000


@given(st.text(min_size=1), st.dictionaries(st.text(), st.text(), max_size=4), st.floats(-1e9, 1e9))
def test_a_single_value_is_what_the_generated_code_would_write(name, labels, value) -> None:
    value += 0.0  # a negative zero is written as none
    meters = Meters("orders", "orders-1", 99)
    pairs = {key.encode(): text.encode() for key, text in labels.items()}
    meters.add(Sample(name.encode(), pairs, value, None))
    data = MeterData(service="orders", serviceInstance="orders-1", timestamp=99)
    data.singleValue.name = name
    data.singleValue.value = value
    for key, text in pairs.items():
        data.singleValue.labels.add(name=key.decode(), value=text.decode())

    assert meters.collections() == [MeterDataCollection(meterData=[data]).SerializeToString()]


def test_rules_keep_drop_and_replace() -> None:
    rules = (
        RelabelConfig("__name__", "go_.*", "drop"),
        RelabelConfig("path", "/a|/b|", "keep"),
        RelabelConfig("path", "/(.*)", target="short", replacement=r"p-\1"),
        RelabelConfig("pod", ".*", target="pod", replacement=""),
        RelabelConfig("__name__", "(.*)_total", target="__name__", replacement=r"\1"),
    )
    body = b'go_threads 1\ntaken_total{path="/a",pod="x"} 2\ntaken_total{path="/c"} 3\nup 4\n'

    job = ("job", "shop")
    assert singles(collected(body, rules=rules)) == {
        ("taken", ("path", "/a"), job, ("short", "p-a")): 2,
        ("up", job): 4,
    }


def test_a_label_the_target_itself_calls_like_ours_is_kept_under_another_name() -> None:
    assert singles(collected(b'a{job="its own"} 1\n')) == {
        ("a", ("exported_job", "its own"), ("job", "shop")): 1
    }


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("127.0.0.1:9100", Target("127.0.0.1", 9100, "/metrics", False)),
        ("http://node/m?x=1", Target("node", 80, "/m?x=1", False)),
        ("[::1]:9100", Target("::1", 9100, "/metrics", False)),
    ],
)
def test_a_target_is_read(text: str, wanted: Target) -> None:
    assert target(text, secure=False) == wanted


@pytest.mark.parametrize(
    "text", ["", "a b:1", "host:99999", "ftp://host", "https://host", "u@host:1"]
)
def test_what_is_no_target_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"target|tls"):
        target(text, secure=False)


@pytest.mark.parametrize(
    "keys",
    [
        {"targets": ()},
        {"targets": ("a:1", "http://a:1/metrics")},
        {"targets": ("a:1",), "timeout": "20s"},
        {"targets": ("a:1",), "max_body_bytes": 10},
    ],
)
def test_a_wrong_configuration_is_refused(keys: dict) -> None:
    with pytest.raises(ValueError, match=r"targets|timeout|max_body_bytes"):
        PrometheusFetcherConfig(service="orders", **keys)
