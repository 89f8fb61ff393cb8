"""Q18: few file descriptors, and no memory that grows with what has passed through."""

from __future__ import annotations

import os
import resource
from pathlib import Path

import pytest

from skyfarer.base.errors import RetryableError
from skyfarer.base.units import KIB, MIB
from skyfarer.queue.consumer import Consumer
from skyfarer.testing.kill_points import run_apart

FILES_MAX = 64
SEGMENTS = 200
RECORDS = 1_200_000
WARM_UP_RECORDS = 200_000
BATCH = 500
GROWTH_BYTES_MAX = 1 * MIB


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def test_q18_a_ring_of_more_segments_than_file_descriptors_is_written_and_read(memory_bench):
    bench = memory_bench("queue")

    def life(tell) -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (FILES_MAX, FILES_MAX))
        writer = bench.writer(capacity_bytes=SEGMENTS * 16 * KIB)
        reader, consumer = bench.reader(), bench.consumer()
        used_max = delivered = 0
        for n in range(2 * SEGMENTS):
            writer.append(1, [b"%d" % n * 1000] * 2)
            used_max = max(used_max, open_files())
            if n % 100 == 50:
                for run in reader.runs(consumer.committed(), reader.writing()):
                    delivered += len(run.payloads())
                    consumer.commit(run.end, run.dropped)
        tell("writing", writer.writing)
        tell("delivered", delivered)
        tell("segments", len(bench.segment_paths()))
        tell("files", used_max)

    facts = run_apart(life).facts
    assert facts["writing"] == 4 * SEGMENTS
    assert facts["delivered"] == 2 * (2 * SEGMENTS - 49)
    assert facts["segments"] == SEGMENTS > FILES_MAX > facts["files"]


def test_q18_an_append_that_gets_no_file_descriptor_can_be_tried_again(memory_bench):
    bench = memory_bench("queue")

    def life(tell) -> None:
        writer = bench.writer(capacity_bytes=SEGMENTS * 16 * KIB)
        kept, refused = 0, 0
        taken: list[int] = []
        resource.setrlimit(resource.RLIMIT_NOFILE, (FILES_MAX, FILES_MAX))
        for n in range(100):
            while n % 2:
                try:
                    taken.append(os.open("/dev/null", os.O_RDONLY))
                except OSError:
                    break
            try:
                writer.append(1, [b"%d" % kept * 1000] * 2)
                kept += 2
            except RetryableError as error:
                assert "Too many open files" in str(error)
                refused += 1
            while taken:
                os.close(taken.pop())
        tell("kept", kept)
        tell("refused", refused)

    facts = run_apart(life).facts
    assert facts["refused"] >= 10
    writer = bench.writer(capacity_bytes=SEGMENTS * 16 * KIB)
    assert writer.writing == facts["kept"]
    assert bench.records() == [b"%d" % (n - n % 2) * 1000 for n in range(facts["kept"])]
    bench.close()


def pass_through(bench, policy: str, tell) -> None:
    """A writer, a reader and a consumer in one process, as in a satellite."""
    shape = {"segment_bytes": 256 * KIB, "capacity_bytes": 2 * MIB, "when_full": policy}
    writer, reader = bench.writer(**shape), bench.reader()
    consumer: Consumer = bench.consumer()
    delivered = 0
    for n in range(0, RECORDS, BATCH):
        if n == WARM_UP_RECORDS:
            tell("before", resident_bytes())
        writer.append(1, [b"%040d" % (n + at) for at in range(BATCH)])
        if policy == "reject" or n % 50_000 == 0:
            for run in reader.runs(consumer.committed(), reader.writing()):
                delivered += len(run.payloads())
                consumer.commit(run.end, run.dropped)
    tell("after", resident_bytes())
    tell("delivered", delivered)
    tell("dropped", sum(consumer.dropped().values()))
    tell("queued", writer.writing - consumer.committed())


@pytest.mark.parametrize("policy", ["reject", "drop_oldest"])
def test_q18_a_million_records_pass_and_resident_memory_stays(memory_bench, policy):
    bench = memory_bench("queue")
    facts = run_apart(lambda tell: pass_through(bench, policy, tell)).facts
    assert facts["delivered"] + facts["dropped"] + facts["queued"] == RECORDS
    assert (facts["dropped"] > 0) == (policy == "drop_oldest")
    assert facts["after"] - facts["before"] < GROWTH_BYTES_MAX


def test_q18_an_append_that_gets_no_memory_can_be_tried_again(memory_bench):
    """Every other one may not have a page more than there is, and a map needs some."""
    bench, endless = memory_bench("queue"), resource.RLIM_INFINITY

    def life(tell) -> None:
        writer = bench.writer(capacity_bytes=SEGMENTS * 16 * KIB)
        kept = refused = 0
        for n in range(100):
            if n % 2:
                pages = int(Path("/proc/self/statm").read_text().split()[0])
                limit = pages * resource.getpagesize()
                resource.setrlimit(resource.RLIMIT_AS, (limit, endless))
            try:
                kept = writer.append(1, [bytes(4000)] * 2) + 2
            except (RetryableError, MemoryError):
                refused += 1
            finally:
                resource.setrlimit(resource.RLIMIT_AS, (endless, endless))
        tell("kept", kept)
        tell("refused", refused)

    facts = run_apart(life).facts
    assert facts["refused"] >= 10
    writer = bench.writer(capacity_bytes=SEGMENTS * 16 * KIB)
    assert writer.writing == facts["kept"]
    assert bench.records() == [bytes(4000)] * facts["kept"]
    bench.close()


def test_q18_a_queue_of_any_size_passes_through_a_little_memory(memory_bench):
    """64 MiB of a ring of 8, with 24 to work in: what is mapped is bounded, and given back."""
    bench, endless = memory_bench("queue"), resource.RLIM_INFINITY

    def life(tell) -> None:
        shape = {"segment_bytes": 1 * MIB, "capacity_bytes": 8 * MIB}
        writer, reader, consumer = bench.writer(**shape), bench.reader(), bench.consumer()
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        limit = pages * resource.getpagesize() + 24 * MIB
        resource.setrlimit(resource.RLIMIT_AS, (limit, endless))
        delivered = 0
        for _ in range(0, 64 * MIB, 400 * KIB):
            writer.append(1, [bytes(4000)] * 100)
            for run in reader.runs(consumer.committed(), reader.writing()):
                delivered += sum(map(len, run.payloads()))
                consumer.commit(run.end, run.dropped)
        tell("delivered", delivered)
        tell("dropped", sum(consumer.dropped().values()))

    facts = run_apart(life).facts
    assert facts["delivered"] == 100 * 4000 * len(range(0, 64 * MIB, 400 * KIB))
    assert facts["dropped"] == 0
