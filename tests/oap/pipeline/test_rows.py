"""Records of every shape as rows, without Spark: both decoders, and what they refuse."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.streaming.datasource import ReadMaxRows

from oap.pipeline.rogues import Aborting, Choosy, named
from skyfarer.base.units import KIB, MIB
from skyfarer.oap.pipeline.sources.decode import DECODERS, decode
from skyfarer.oap.pipeline.sources.exports import CHUNK_BYTES, PARTS_BYTES_MAX, parts_of
from skyfarer.oap.pipeline.sources.nested import decoder_of
from skyfarer.oap.pipeline.sources.queue import QueueStreamReader
from skyfarer.oap.pipeline.sources.rows import Reading, rows
from skyfarer.oap.pipeline.sources.shapes import SHAPES, TIME_MS_MAX
from skyfarer.oap.pipeline.told import unpacked
from skyfarer.oap.pipeline.told.again import OF_EVERY_ROW
from skyfarer.queue.reader import Reader
from skyfarer.queue.settings import QueueSettings
from skyfarer.queue.writer import Writer
from skyfarer.wire.messages import SegmentObject, SpanObject, inventory, otlp_logs
from skyfarer.wire.messages import otlp_trace as otlp
from skyfarer.wire.messages import v2_trace as v2
from skyfarer.wire.rpc import Kind

NOON = 1_794_744_000_000


@pytest.fixture
def queue(tmp_path: Path) -> Iterator[Writer]:
    writer = Writer(QueueSettings(tmp_path, MIB, 8 * MIB, record_bytes_max=MIB // 4))
    writer.start()
    yield writer
    writer.stop(1)


def read(
    directory: Path, decoder: str = "ptars", reading: Reading | None = None
) -> list[dict[str, Any]]:
    """The rows in the order of the queue, without the columns that say nothing. What the driver is
    told of them stands in `told`."""
    reading = reading or Reading((decoder,))
    reader = Reader(directory)
    reader.start()
    batches = [one for run in reader.runs(0, reader.writing()) for one in rows(run, reading)]
    found = [
        {**row, "told": told}
        for batch in batches
        for row, told in zip(
            batch.drop_columns("told").to_pylist(),
            unpacked(pa.chunked_array([batch["told"]])).to_pylist(),
            strict=True,
        )
    ]
    reader.stop()
    found.sort(key=lambda row: (row["sequence"], row["part"]))
    return [{key: value for key, value in row.items() if value is not None} for row in found]


def span(**fields: Any) -> bytes:
    one = SpanObject(**{"startTime": NOON, "endTime": NOON + 1, **fields})
    return SegmentObject(traceSegmentId="s", service="shop", spans=[one]).SerializeToString()


def v2_span(**fields: Any) -> bytes:
    one = v2.SpanObjectV2(**{"startTime": NOON, "endTime": NOON + 1, **fields})
    identifier = v2.UniqueId(idParts=[1, 2, 3])
    inner = v2.SegmentObject(traceSegmentId=identifier, spans=[one], serviceInstanceId=2)
    whole = v2.UpstreamSegment(globalTraceIds=[identifier], segment=inner.SerializeToString())
    return whole.SerializeToString()


def export(*spans: otlp.Span, attributes: Sequence[otlp.KeyValue] = ()) -> bytes:
    resource = otlp.Resource(attributes=attributes)
    within = otlp.ResourceSpans(resource=resource, scope_spans=[otlp.ScopeSpans(spans=spans)])
    return otlp.ExportTraceServiceRequest(resource_spans=[within]).SerializeToString()


def long(size: int) -> list[otlp.KeyValue]:
    """What a resource may say, and each of its spans repeats."""
    return [otlp.KeyValue(key="command line", value=otlp.AnyValue(string_value="x" * size))]


def otlp_span(number: int = 1, **fields: Any) -> otlp.Span:
    ids = {"trace_id": b"t" * 16, "span_id": bytes([number]) * 8}
    return otlp.Span(**{**ids, "start_time_unix_nano": NOON * 1_000_000, **fields})


def test_both_decoders_give_the_same_rows_of_every_shape(queue: Writer, tmp_path: Path) -> None:
    source = inventory.InventorySource(scope=14, name="shop", heartbeatTime=NOON)
    status = otlp.Status(code=2)
    value = otlp.AnyValue(int_value=80)
    told = otlp_span(2, status=status, attributes=[otlp.KeyValue(key="server.port", value=value)])
    queue.append(Kind.SEGMENT, [span()])
    queue.append(Kind.INVENTORY, [source.SerializeToString(), b""])
    queue.append(Kind.OTLP_TRACES, [export(otlp_span(), told, otlp.Span()), b""])
    queue.append(Kind.V2_SEGMENT, [v2_span(refs=[v2.SegmentReference(parentEndpointId=7)]), b""])
    queue.append(Kind.PPROF, [b"\xff as it comes"])
    queue.append(777, [b"?"])
    written = otlp_logs.ScopeLogs(log_records=[otlp_logs.LogRecord(severity_number=1), {}])
    logs = otlp_logs.ResourceLogs(scope_logs=[written])
    queue.append(
        Kind.OTLP_LOGS,
        [otlp_logs.ExportLogsServiceRequest(resource_logs=[logs]).SerializeToString()],
    )
    native, plain = (read(tmp_path, decoder) for decoder in ("ptars", "protobuf"))
    assert native == plain
    assert [(row["sequence"], row["part"], row.get("reason", "")[:10]) for row in native] == [
        *((0, 0, ""), (1, 0, ""), (2, 0, "incomplete")),
        *((3, 0, ""), (3, 1, ""), (3, 2, "incomplete"), (4, 0, "")),
        *((5, 0, ""), (6, 0, "incomplete"), (7, 0, ""), (8, 0, "unknown_ki")),
        *((9, 0, ""), (9, 1, "")),
    ]
    assert native[1]["others"][0]["inventory"][0]["heartbeatTime"] == NOON
    assert native[4]["segment"]["spans"][0]["isError"]
    assert native[7]["others"][0]["v2"][0]["spans"][0]["refs"][0]["parentEndpointId"] == 7
    assert native[9].keys() == {"sequence", "part", "kind", "told"}
    assert {name for name, value in native[9]["told"].items() if value is not None} == {
        *("sequence", "part", "kind")
    }
    assert [row["told"]["segment_id"] for row in native[:2]] == ["s", None]
    assert native[-1]["told"]["service"] == "unknown_service"
    assert all(row["told"][name] == row.get(name) for row in native for name in OF_EVERY_ROW)


NS = 1_000_000
TIMES = [
    *((Kind.SEGMENT, span, "startTime", 1), (Kind.SEGMENT, span, "endTime", 1)),
    *((Kind.V2_SEGMENT, v2_span, "startTime", 1), (Kind.V2_SEGMENT, v2_span, "endTime", 1)),
    *(
        (Kind.OTLP_TRACES, lambda **fields: export(otlp_span(**fields)), name, NS)
        for name in ("start_time_unix_nano", "end_time_unix_nano")
    ),
]


@pytest.mark.parametrize(("kind", "made", "name", "unit"), TIMES)
def test_a_time_that_no_calendar_holds_is_no_time(
    queue: Writer, tmp_path: Path, kind: Kind, made: Any, name: str, unit: int
) -> None:
    most = TIME_MS_MAX * unit
    strange = [most + unit, 2**63 - 1, 2**63 if unit == NS else -1]
    payloads = [made(**{name: time}) for time in (0, strange[0], most, *strange[1:], NOON * unit)]
    queue.append(kind, payloads)
    reasons = [row.get("reason", "").partition(":")[0] for row in read(tmp_path)]
    assert reasons == ["", "implausible", "", "implausible", "implausible", ""]


@pytest.mark.parametrize("strange", [-1, TIME_MS_MAX + 1])
def test_only_the_record_with_the_strange_span_is_told_apart(
    queue: Writer, tmp_path: Path, strange: int
) -> None:
    good = SpanObject(startTime=NOON, endTime=NOON)
    one = SegmentObject(traceSegmentId="s", service="shop", spans=[good] * 3)
    bad = SpanObject(startTime=strange)
    two = SegmentObject(traceSegmentId="s", service="shop", spans=[good, bad])
    queue.append(Kind.SEGMENT, [message.SerializeToString() for message in (one, two, one)])
    assert [row.get("reason", "")[:11] for row in read(tmp_path)] == ["", "implausible", ""]


def reached(directory: Path, start: int, weight_max: int, records_max: int = 1000) -> int:
    options = {"directory": str(directory), "start": "0", "splits": "1"}
    options |= {"records_max": str(records_max), "weight_max": str(weight_max)}
    stream = QueueStreamReader(options)
    offset = stream.latestOffset({"sequence": start}, ReadMaxRows(records_max))
    stream.stop()
    return offset["sequence"]


def test_a_batch_ends_before_it_is_too_heavy(queue: Writer, tmp_path: Path) -> None:
    """Over the end of a queue file of one MiB, too: 40 records are 4 MiB."""
    for _ in range(40):
        queue.append(Kind.LOG, [bytes(100 * KIB)])
    assert reached(tmp_path, 0, MIB) == 10
    assert reached(tmp_path, 10, MIB) == 20
    assert reached(tmp_path, 35, MIB) == 40
    assert reached(tmp_path, 0, 100 * MIB) == 40
    assert reached(tmp_path, 0, 100 * MIB, records_max=7) == 7
    assert reached(tmp_path, 40, MIB) == 40


def test_an_export_weighs_what_it_is_cut_into_and_one_record_is_never_too_heavy(
    queue: Writer, tmp_path: Path
) -> None:
    heavy = export(*[otlp_span()] * 110, attributes=long(10 * KIB))
    parts = sum(map(len, parts_of(heavy)))
    assert parts > MIB and len(heavy) < 20 * KIB
    queue.append(Kind.OTLP_TRACES, [heavy] * 20)
    assert reached(tmp_path, 0, 10 * (2 * parts + len(heavy))) == 10
    assert reached(tmp_path, 5, 1) == 6


def test_an_export_that_is_not_cut_weighs_its_bytes(queue: Writer, tmp_path: Path) -> None:
    bomb = export(*[otlp_span()] * 1_000, attributes=long(100 * KIB))
    assert len(bomb) * 1_000 > PARTS_BYTES_MAX
    queue.append(Kind.OTLP_TRACES, [bytes(len(bomb)), bomb] * 3)
    assert reached(tmp_path, 0, 4 * len(bomb)) == 4


ALONE = {
    "an export of nothing": ([b""], [""]),
    "a resource of nothing": ([b"\x0a\x02\x12\x00"], [""]),
    "no export at all": ([b"\xff"], ["undecodable"]),
    "both": ([b"\xff", b""], ["", "undecodable"]),
}


@pytest.mark.parametrize("kind", [Kind.OTLP_TRACES, Kind.OTLP_LOGS])
@pytest.mark.parametrize("which", ALONE)
@pytest.mark.timeout(60)
def test_exports_without_a_part_may_be_all_there_is(
    queue: Writer, tmp_path: Path, kind: Kind, which: str
) -> None:
    payloads, reasons = ALONE[which]
    queue.append(kind, payloads)
    rows = read(tmp_path)
    assert sorted(row.get("reason", "").partition(":")[0] for row in rows) == sorted(reasons)


@pytest.mark.timeout(60)
def test_a_bomb_may_be_all_there_is(queue: Writer, tmp_path: Path) -> None:
    tags = [otlp.KeyValue(key=str(number)) for number in range(10_001)]
    queue.append(Kind.OTLP_TRACES, [export(otlp_span(attributes=tags))])
    assert [row["reason"].partition(":")[0] for row in read(tmp_path)] == ["oversize"]


@pytest.mark.timeout(120)
def test_parts_may_end_where_they_are_handed_on(queue: Writer, tmp_path: Path) -> None:
    one = export(*[otlp_span()] * 110, attributes=long(10 * KIB))
    parts = sum(map(len, parts_of(one)))
    queue.append(Kind.OTLP_TRACES, [one] * -(-CHUNK_BYTES // parts))
    assert {row.get("reason") for row in read(tmp_path)} == {None}


@pytest.mark.parametrize("name", sorted(DECODERS))
@pytest.mark.parametrize("kind", [int(kind) for kind in SHAPES])
def test_of_no_payload_there_is_no_row(kind: int, name: str) -> None:
    assert decode([lambda: decoder_of(kind, name)], pa.array([], pa.binary())) == ([], {})


def test_quarantined_record_is_shown_to_no_decoder_and_has_the_reason(
    queue: Writer, tmp_path: Path
) -> None:
    queue.append(Kind.SEGMENT, [span(), b"abort", span()])
    queue.append(Kind.PPROF, [b"as it came"])
    reading = Reading((named(Aborting),), quarantined={1: "skipped: so", 3: "skipped: too", 9: ""})
    found = read(tmp_path, reading=Reading.read(reading.written()))
    assert [row.get("reason") for row in found] == [None, "skipped: so", None, "skipped: too"]
    assert [row["kind"] for row in found] == [Kind.SEGMENT] * 3 + [Kind.PPROF]


def test_entrusted_record_is_shown_to_the_other_decoder_alone(
    queue: Writer, tmp_path: Path
) -> None:
    queue.append(Kind.SEGMENT, [span(), span(operationName="abort"), b"abort \xff"])
    reading = Reading((named(Aborting), "protobuf"), entrusted=frozenset({1, 2}))
    first, second, third = read(tmp_path, reading=Reading.read(reading.written()))
    assert first["segment"]["spans"][0]["operationName"] == ""
    assert second["segment"]["spans"][0]["operationName"] == "abort"
    assert third["reason"].startswith("undecodable: ")


def test_record_that_one_decoder_refuses_is_analysed_by_the_other(
    queue: Writer, tmp_path: Path
) -> None:
    queue.append(Kind.SEGMENT, [span(), span(operationName="choosy"), span()])
    found = read(tmp_path, reading=Reading((named(Choosy), "protobuf")))
    assert [row["segment"]["spans"][0]["operationName"] for row in found] == ["", "choosy", ""]
    (_, bad, _) = read(tmp_path, reading=Reading((named(Choosy),)))
    assert bad["reason"] == "undecodable: RuntimeError: a decoder that likes other records"
