"""Q6: garbage, zeros, truncated, missing and extra files, in any combination.

A start either succeeds or says in one of our own errors why not, and it comes to an end. What is
delivered after it is what was appended.
"""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from skyfarer.base.errors import SkyfarerError

EXAMPLES = 400
PAYLOADS = [b"%02d" % n * 600 for n in range(20)]
FILES = [
    "meta", "state", "lock", "consumer-main",
    "00000.seg", "00001.seg", "00002.seg", "00003.seg",
]  # fmt: skip
EXTRA = ["00001.seg.new", "00000.seg.corrupt", "00009.seg", "consumer-ghost", "meta.new", "core"]

offsets = st.integers(0, 16 * 1024)
edits = st.one_of(
    st.tuples(
        st.just("write"), st.sampled_from(FILES), offsets, st.binary(min_size=1, max_size=64)
    ),
    st.tuples(st.just("zero"), st.sampled_from(FILES), offsets, st.integers(1, 9000)),
    st.tuples(st.just("truncate"), st.sampled_from(FILES), offsets),
    st.tuples(st.just("remove"), st.sampled_from(FILES)),
    st.tuples(st.just("swap"), st.sampled_from(FILES), st.sampled_from(FILES)),
    st.tuples(st.just("extra"), st.sampled_from(EXTRA), st.binary(max_size=100)),
)


def overwrite(path: Path, offset: int, data: bytes) -> None:
    whole = bytearray(path.read_bytes() if path.exists() else b"")
    whole[offset : offset + len(data)] = data
    path.write_bytes(whole)


def apply(directory: Path, edit: tuple) -> None:
    verb, path, *rest = edit[0], directory / edit[1], *edit[2:]
    if verb == "write":
        overwrite(path, *rest)
    elif verb == "zero":
        overwrite(path, rest[0], bytes(rest[1]))
    elif verb == "truncate":
        path.write_bytes((path.read_bytes() if path.exists() else b"")[: rest[0]])
    elif verb == "remove":
        path.unlink(missing_ok=True)
    elif verb == "swap":
        other = directory / rest[0]
        if path.exists() and other.exists():
            mine, others = path.read_bytes(), other.read_bytes()
            path.write_bytes(others)
            other.write_bytes(mine)
    else:
        path.write_bytes(rest[0])


def start_and_read(bench) -> str:
    try:
        writer, consumer, reader = bench.writer(), bench.consumer(), bench.reader()
        delivered = 0
        for run in reader.runs(writer.oldest, writer.writing):
            for sequence, payload in zip(run.sequences(), run.payloads(), strict=True):
                assert payload == PAYLOADS[sequence]
                delivered += 1
        assert consumer.committed() >= 0
        assert len(list(bench.directory.glob("*.new"))) == 0
    except SkyfarerError as error:
        assert str(bench.directory) in str(error)
        return "refused"
    finally:
        bench.close()
    return "whole" if delivered == len(PAYLOADS) else "part"


@pytest.fixture
def filled(memory_bench):
    bench = memory_bench("filled")
    writer = bench.writer()
    writer.append(3, PAYLOADS[:10])
    writer.append(3, PAYLOADS[10:])
    bench.consumer().commit(3)
    bench.close()
    return bench


def test_q06_whatever_a_directory_holds_a_start_ends_and_delivers_nothing_invalid(
    filled, memory_bench
):
    outcomes: Counter[str] = Counter()
    verbs: Counter[str] = Counter()

    @settings(
        max_examples=EXAMPLES, deadline=None, database=None, derandomize=True,
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(st.lists(edits, min_size=1, max_size=6))
    def histories(bundle: list[tuple]) -> None:
        bench = memory_bench("queue")
        shutil.copytree(filled.directory, bench.directory)
        try:
            for edit in bundle:
                apply(bench.directory, edit)
                verbs[edit[0]] += 1
            first = start_and_read(bench)
            assert start_and_read(bench) == first
            outcomes[first] += 1
        finally:
            shutil.rmtree(bench.directory)

    histories()
    assert set(verbs) == {"write", "zero", "truncate", "remove", "swap", "extra"}
    assert all(outcomes[name] >= 10 for name in ("whole", "part", "refused")), outcomes
