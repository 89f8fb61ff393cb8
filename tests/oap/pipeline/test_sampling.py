"""Which segments are stored; no Spark in it."""

from __future__ import annotations

import pyarrow as pa

from skyfarer.oap.core.sampling import Policy, Sampling
from skyfarer.oap.pipeline.sampling import sample_numbers, sampled

LOW, HIGH = "a", "hello"  # 97 and 2,322 of 10,000


def segments(*rows: tuple[str, str, int, bool]) -> pa.Table:
    columns = zip(*rows, strict=True)
    return pa.table(dict(zip(("trace_id", "service", "latency", "is_error"), columns, strict=True)))


def stored(sampling: Sampling, *rows: tuple[str, str, int, bool]) -> list[bool]:
    """Of each row, whether it is; the two halves have every row once."""
    table = segments(*rows).append_column("place", pa.array(range(len(rows))))
    chosen, others = (half["place"].to_pylist() for half in sampled(table, sampling))
    assert sorted(chosen + others) == list(range(len(rows)))
    return [place in chosen for place in range(len(rows))]


def test_a_trace_is_numbered_by_the_hash_that_java_has() -> None:
    hashes = {
        "": 0,
        "a": 97,
        "hello": 99162322,
        "polygenelubricants": -(2**31),
        "é": 233,
        "😀": 1772899,
    }
    expected = [abs(number) % 10_000 for number in hashes.values()]
    assert sample_numbers(list(hashes)).tolist() == expected
    assert sample_numbers([]).tolist() == []


def test_everything_is_stored_unless_told_otherwise() -> None:
    assert Sampling().everything
    assert stored(Sampling(), (HIGH, "shop", 1, False)) == [True]
    assert not Sampling(services={"shop": Policy(rate=1)}).everything


def test_a_trace_is_stored_by_the_rate_of_its_service() -> None:
    sampling = Sampling(Policy(98, -1), {"shop": Policy(rate=97), "cart": Policy(duration_ms=5)})
    rows = [(LOW, "other", 1, False), (LOW, "shop", 1, False), (LOW, "cart", 1, False)]
    assert stored(sampling, *rows) == [True, False, True]
    assert stored(sampling, (HIGH, "other", 1, False)) == [False]
    assert stored(Sampling(Policy(0, -1)), ("", "other", 1, False)) == [False]


def test_a_slow_segment_is_stored_from_its_duration_on() -> None:
    own = {"shop": Policy(duration_ms=10), "fast": Policy(duration_ms=-1), "half": Policy(rate=1)}
    sampling = Sampling(Policy(0, 20), own)
    rows = [
        (HIGH, name, latency, False)
        for name, latency in (("shop", 9), ("shop", 10), ("x", 19), ("half", 20), ("fast", 99))
    ]
    assert stored(sampling, *rows) == [False, True, False, True, False]


def test_a_failed_segment_is_stored_unless_that_is_switched_off() -> None:
    row = (HIGH, "shop", 1, True)
    assert stored(Sampling(Policy(0, -1)), row) == [True]
    assert stored(Sampling(Policy(0, -1), errors=False), row) == [False]
