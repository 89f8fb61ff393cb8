"""Full analysis, from a queue on disk to what storage is given, beside what the engine does with
the same rows of Parquet.

The stream reads 100,000 segments a micro-batch and does to them all that an OAP does
(`pipeline_line`): every shipped metric, relations, records, tags and slow statements. The limit is
the same aggregation over the same rows, already made and exploded, from Parquet, in the same
session, in turns with the stream. Medians of the batches after the warm-up.

Then, without the limit: what a segment costs after 5 million of them, beside what it cost at first;
and a batch of 5,000 beside an empty one. And what it costs with 10,000 endpoints in place of 10,
with the same of the limit: the result has 25 times as many rows, which Spark has to carry for both.
And a batch with one record that nothing can be made of, beside the same without it.

    bench_pipeline.py [--smoke] [--only limit|flat|wide|poison|reports]

With --smoke a few thousand segments go the same ways in two minutes: whether it works, not how fast
it is.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

import pipeline_line as line
from figures import figure
from skyfarer.base.units import MIB
from skyfarer.oap.core.storage import Deltas
from skyfarer.oap.pipeline.folding import ROW, folded
from skyfarer.oap.pipeline.session import SparkSettings, spark_session
from skyfarer.oap.pipeline.sources.decode import DECODERS
from skyfarer.oap.pipeline.sources.queue import QueueSource
from skyfarer.oap.pipeline.sources.shapes import SEGMENT
from skyfarer.queue.settings import QueueSettings
from skyfarer.queue.writer import Writer
from skyfarer.wire.messages import SegmentObject, runtime
from skyfarer.wire.rpc import Kind

JVMS: Final = 1_000
ENDPOINTS: Final = (10, 10_000)
FLAT_MAX: Final = 1.25


@dataclass(frozen=True)
class Counts:
    batch: int = 100_000
    batches: int = 60
    warm_up: int = 45
    """Java is slow until it has compiled itself, the longer the more there is to compile."""
    long: int = 5_000_000
    ends: int = 10
    """Batches at either end of the long run that are compared."""
    small: int = 5_000
    small_times: int = 30
    turns: int = 30
    turns_warm_up: int = 10


SMOKE: Final = Counts(
    batch=20_000, batches=3, warm_up=1, long=80_000, ends=1, small_times=3, turns=2, turns_warm_up=1
)


class Bench:
    def __init__(self, session: SparkSession, scratch: Path, counts: Counts) -> None:
        self._session, self._scratch, self._counts = session, scratch, counts
        self._limit = line.limit()

    def beside_the_limit(self, segments: Sequence[SegmentObject]) -> None:
        counts = self._counts
        queue, said = self._scratch / "queue", self._scratch / "said"
        line.fill(queue, segments, counts.batch * counts.batches)
        line.write_rows(self._session, queue, counts.batch, said)
        with line.Line(self._session, queue) as under:
            times = list(self._stream(under, said))[counts.warm_up :]
            assert under.counter.segments == counts.batch * counts.batches, "segments were left out"
        shutil.rmtree(queue)
        own, direct = (statistics.median(some) for some in zip(*times, strict=True))
        figure("pipeline_stream", counts.batch / own, "segments/s, local[2]")
        figure("pipeline_parquet_limit", counts.batch / direct, "segments/s, local[2]")
        figure("pipeline_ratio_to_limit", direct / own, "ratio", at_least=0.4)

    def _stream(self, under: line.Line, said: Path) -> Iterator[tuple[float, float]]:
        """Per batch: seconds of the stream's whole batch, and of the limit right after it."""
        done, times = threading.Event(), list[tuple[float, float]]()
        ended = [time.monotonic()]

        def sink(batch: DataFrame, number: int) -> None:
            under.sink(batch, number)
            own = time.monotonic() - ended[0]
            begun = time.monotonic()
            direct = self._limit.of(self._session.read.parquet(str(said))).toArrow()
            times.append((own, time.monotonic() - begun))
            assert under.counter.last is not None
            same(under.counter.last.metrics, folded(self._limit.named(direct), line.TRACES))
            ended[0] = time.monotonic()
            if len(times) == self._counts.batches:
                done.set()

        run_until(under.stream(self._counts.batch), sink, done)
        yield from times

    def flat(self, segments: Sequence[SegmentObject]) -> None:
        """Ratios of late batches to early ones, all of them when Java is warm; then of small ones
        to an empty one."""
        counts, queue = self._counts, self._scratch / "long"
        line.fill(queue, segments, counts.long)
        starts = range(0, counts.long, counts.batch)
        assert len(starts) >= 2 * counts.ends, "both ends would be the same batches"
        self._batches(queue, [0] * counts.warm_up)
        spent = self._batches(queue, starts)
        early, late = (
            statistics.median(some) for some in (spent[: counts.ends], spent[-counts.ends :])
        )
        figure("pipeline_cost_after_5_million", late / early, "ratio to 100 k", at_most=FLAT_MAX)
        shutil.rmtree(queue)
        self._small(segments)

    def _batches(self, queue: Path, starts: Sequence[int]) -> list[float]:
        """Seconds of each, by one sink."""
        with line.Line(self._session, queue) as under:
            return [seconds(lambda at=at: under.take(at, self._counts.batch)) for at in starts]

    def _small(self, segments: Sequence[SegmentObject]) -> None:
        """Of whole micro-batches, Spark's own files included. An empty one has a record, or there
        were none, and nothing to analyse."""
        times = 2 * self._counts.small_times
        queues = [self._scratch / name for name in ("pings", "one-by-one", "small")]
        line.fill_with_pings(queues[0], times)
        for queue, count in zip(queues[1:], (1, self._counts.small), strict=True):
            line.fill(queue, segments, times * count)
        sizes = (1, 1, self._counts.small)
        nothing, one, small = map(self._cycle, queues, sizes)
        figure("pipeline_empty_batch", nothing, "s")
        figure("pipeline_batch_of_one", one, "s")
        figure("pipeline_batch_of_5_k", small / nothing, "ratio to an empty one", at_most=2.0)
        figure("pipeline_batch_of_5_k_to_one", small / one, "ratio to one of a single segment")

    def _cycle(self, queue: Path, records_max: int) -> float:
        """Seconds from the end of one batch to that of the next, in the middle."""
        ended, enough = list[float](), threading.Event()
        with line.Line(self._session, queue) as under:

            def sink(batch: DataFrame, number: int) -> None:
                under.sink(batch, number)
                ended.append(time.monotonic())
                if len(ended) > self._counts.small_times:
                    enough.set()

            run_until(under.stream(records_max), sink, enough)
        spent = [after - before for before, after in pairwise(ended)]
        return statistics.median(spent[len(spent) // 3 :])

    def wide(self) -> None:
        """Ratios of many endpoints to few, in turns. Until Java is warm it is slow with either,
        which hides the difference: so the warm-up is a long one."""
        counts = self._counts
        queues = [self._scratch / str(number) for number in ENDPOINTS]
        said = [self._scratch / f"said-{number}" for number in ENDPOINTS]
        for queue, path, number in zip(queues, said, ENDPOINTS, strict=True):
            line.fill(queue, line.called(number), counts.batch * counts.turns)
            line.write_rows(self._session, queue, counts.batch, path)
        with (
            line.Line(self._session, queues[0]) as few,
            line.Line(self._session, queues[1]) as many,
        ):
            turns = [
                (
                    *(
                        seconds(lambda to=to, at=at: to.take(at * counts.batch, counts.batch))
                        for to in (few, many)
                    ),
                    *(seconds(lambda path=path: self._direct(path)) for path in said),
                )
                for at in range(counts.turns)
            ]
        few_s, many_s, limit_few_s, limit_many_s = (
            statistics.median(some) for some in zip(*turns[counts.turns_warm_up :], strict=True)
        )
        figure("pipeline_10_endpoints", counts.batch / few_s, "segments/s, local[2]")
        figure("pipeline_10000_endpoints", many_s / few_s, "ratio to 10", at_most=FLAT_MAX)
        figure(
            "pipeline_10000_endpoints_limit",
            limit_many_s / limit_few_s,
            "ratio to 10, from Parquet",
        )

    def _direct(self, said: Path) -> None:
        self._limit.of(self._session.read.parquet(str(said))).toArrow()

    def poisoned(self, segments: Sequence[SegmentObject]) -> None:
        """In turns, each of either first as often as the other."""
        counts, queues = self._counts, [self._scratch / "sound", self._scratch / "poisoned"]
        for queue, broken_each in zip(queues, (None, counts.batch), strict=True):
            line.fill(queue, segments, counts.batch * counts.turns, broken_each)
        spent: tuple[list[float], list[float]] = ([], [])
        with (
            line.Line(self._session, queues[0]) as sound,
            line.Line(self._session, queues[1]) as ill,
        ):
            for turn in range(counts.turns):
                for which in (turn % 2, 1 - turn % 2):
                    begun = time.monotonic()
                    (sound, ill)[which].take(turn * counts.batch, counts.batch)
                    spent[which].append(time.monotonic() - begun)
            assert ill.counter.segments == sound.counter.segments - counts.turns
        sound_s, ill_s = (statistics.median(some[counts.turns_warm_up :]) for some in spent)
        figure("pipeline_one_poison_record", ill_s / sound_s, "ratio to none", at_most=1.05)

    def reported(self) -> None:
        """What a second of JVMs costs beside the traces of its batch."""
        queue = self._scratch / "jvms"
        fill_with_jvms(queue)
        spent = []
        with line.Line(self._session, queue) as under:
            for _ in range(self._counts.small_times + self._counts.warm_up):
                spent.append(seconds(lambda: under.take(0, JVMS)))
        figure(
            "pipeline_reports_of_1000_jvms", statistics.median(spent[self._counts.warm_up :]), "s"
        )


def run_until(
    rows: DataFrame, sink: Callable[[DataFrame, int], None], done: threading.Event
) -> None:
    query = rows.writeStream.foreachBatch(sink).start()
    while not done.wait(0.1):
        if query.exception() is not None:
            raise RuntimeError(str(query.exception()))
    query.stop()


def seconds(deed: Callable[[], None]) -> float:
    begun = time.monotonic()
    deed()
    return time.monotonic() - begun


def same(streamed: dict[str, Deltas], direct: dict[str, Deltas]) -> None:
    keys = [(name, "ascending") for name in ROW]
    assert streamed.keys() == direct.keys()
    for source, one in streamed.items():
        # Not as tables: what is read from Parquet may always be null.
        both = (some.rows.sort_by(keys).columns for some in (one, direct[source]))
        assert next(both) == next(both), f"the two differ in {source}"


def fill_with_jvms(queue: Path) -> None:
    told = runtime.JVMMetricCollection(service="shop")
    metric = told.metrics.add(time=line.NOON_MS)
    metric.cpu.usagePercent = 40.0
    for heap in (True, False):
        metric.memory.add(isHeap=heap, used=10**8, max=10**9)
        metric.gc.add(phase=int(heap), count=1, time=5)
    for pool in range(6):
        metric.memoryPool.add(type=pool, used=10**7, max=10**8)
    metric.thread.liveCount, metric.clazz.loadedClassCount = 40, 9_000
    writer = Writer(QueueSettings(queue, 16 * MIB, 64 * MIB, consumers=(line.CONSUMER,)))
    writer.start()
    for number in range(JVMS):
        told.serviceInstance = f"shop-{number}"
        writer.append(Kind.JVM_METRICS, [told.SerializeToString()])
    writer.stop(10)


def decoder_rates(segments: Sequence[SegmentObject]) -> dict[str, float]:
    array, rates = pa.array([one.SerializeToString() for one in segments], pa.binary()), {}
    for name in DECODERS:
        decoder, spent = DECODERS[name](SEGMENT), []
        for _ in range(3):
            started = time.process_time()
            decoder.decode_all(array)
            spent.append(time.process_time() - started)
        rates[name] = len(segments) / statistics.median(spent)
    return rates


PARTS: Final[Mapping[str, Callable[[Bench, Sequence[SegmentObject]], None]]] = {
    "limit": Bench.beside_the_limit,
    "flat": Bench.flat,
    "wide": lambda bench, _: bench.wide(),
    "poison": Bench.poisoned,
    "reports": lambda bench, _: bench.reported(),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("--smoke", action="store_true", help="small counts: does it work")
    parser.add_argument("--only", choices=PARTS, help="one part instead of all")
    given = parser.parse_args()
    counts = SMOKE if given.smoke else Counts()
    segments = line.realistic()
    for name, rate in decoder_rates(segments).items():
        figure(f"decode_{name}", rate, "segments/s of one core")
    with tempfile.TemporaryDirectory() as scratch:
        settings = SparkSettings("local[2]", "2g", 2, Path(scratch) / "spark")
        session = spark_session(settings)
        session.dataSource.register(QueueSource)
        bench = Bench(session, Path(scratch), counts)
        for part in [given.only] if given.only else PARTS:
            PARTS[part](bench, segments)
        session.stop()


if __name__ == "__main__":
    main()
