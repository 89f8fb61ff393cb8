"""One record among many that nothing was made for: it is parked, and that is all."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from oap.pipeline.bench import NOON
from oap.pipeline.faults.line import Line, contents
from oap.pipeline.faults.work import fill, laced, pair, pairs
from skyfarer.oap.core.storage import Applied, Parked
from skyfarer.oap.pipeline.metrics import Metrics

CALLS = 500
OWN = ("source_offset", "source_dropped", "parked_record")
"""Where a parked record may show; nothing else knows of it."""
LONG_MIN, LONG_MAX = -(2**63), 2**63 - 1


def timed(start_ms: int, end_ms: int) -> bytes:
    one, _ = pair(10_000, NOON)
    one.spans[-1].startTime, one.spans[-1].endTime = start_ms, end_ms
    return bytes(one.SerializeToString())


POISON = {
    "undecodable": [b"\xff\xff\xff\xff", pairs([10_000])[0][1][:-3]],
    "incomplete": [b""],
    "implausible": [
        timed(LONG_MIN, 1),
        timed(NOON, LONG_MIN),
        timed(LONG_MAX, LONG_MIN),
        timed(-1, LONG_MAX),
        timed(NOON * 1_000_000, NOON * 1_000_000 + 5),
    ],
}


def test_poison_is_parked_with_its_reason_bytes_and_place_and_spoils_nothing_else(
    spark: SparkSession, metrics: Metrics, tmp_path: Path
) -> None:
    good = pairs(range(CALLS))
    bad = [payload for payloads in POISON.values() for payload in payloads]
    fill(tmp_path / "clean", good)
    fill(tmp_path / "laced", laced(good, bad))
    for name in ("clean", "laced"):
        with Line(tmp_path / name, spark, metrics) as line:
            line.run(records=len(good) + len(bad))
            progress = line.storage.progress(line.reader.queue_id)
            parked = line.storage.parked(line.reader.queue_id)
    dropped = {code: len(payloads) for code, payloads in POISON.items()}
    assert progress == Applied(len(good) + len(bad), len(good), dropped)
    assert [one.payload for one in parked] == bad
    assert [code(one) for one in parked] == [code for code in POISON for _ in POISON[code]]
    distance = len(good) // len(bad) + 1
    assert [one.sequence for one in parked] == [n * distance for n in range(len(bad))]
    assert contents(tmp_path / "laced", *OWN) == contents(tmp_path / "clean", *OWN)


def code(one: Parked) -> str:
    return one.reason.partition(":")[0]
