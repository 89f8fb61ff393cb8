"""Random histories of a queue on a faulty disk, each step compared with the model."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import invariant, rule

from skyfarer.base.errors import PermanentError, RetryableError
from skyfarer.queue.consumer import Consumer
from skyfarer.queue.durability import SyncFailed
from skyfarer.queue.errors import QueueFull, QueueMissing
from skyfarer.queue.reader import Reader
from skyfarer.queue.run import OVERFLOW, Run
from skyfarer.queue.writer import Writer
from skyfarer.testing.faulty_disk import Death

from .histories import (
    ALIVE,
    BATCHES,
    KINDS,
    NAMES,
    PARTS,
    SIZES,
    SPACE,
    Fate,
    failures,
    fates,
    when,
)
from .model import Place
from .rot import RottingStage


class QueueMachine(RottingStage):
    @when(lambda self: self.writer is None)
    @rule(fate=fates(24), failed=failures(24))
    def start_writer(self, fate: Fate, failed: int = 0) -> None:
        writer = self.new_writer(self.new_disk("writer", fate, failed))
        try:
            writer.start()
        except Death:
            self.met["death in recovery"] += 1
            return
        except (RetryableError, PermanentError) as error:
            self.excused(error, failed)
            self.suspect_known &= self.durability == "append"  # it may have been a sync that failed
            return
        assert writer.recovered is not None
        self.met["torn tail cut"] += writer.recovered.torn > 0
        self.met["segment set aside"] += writer.recovered.quarantined > 0
        self.met["unacknowledged records kept"] += writer.writing > len(self.model.records)
        self.model.appended(writer.writing)
        self.suspect_known &= not self.state_rotten
        self.state_rotten = False
        self.writer = self.recovered_again(writer)
        if self.reader is None:
            self.reader = Reader(self.settings.directory)
            self.reader.start()

    def recovered_again(self, first: Writer) -> Writer:
        before = self.picture(first)
        first.stop(0.0)
        disk = self.new_disk("writer", ALIVE)
        disk.full = frozenset()
        second = self.new_writer(disk)
        second.start()
        assert self.picture(second) == before
        assert second.recovered is not None
        assert (second.recovered.torn, second.recovered.quarantined) == (0, 0)
        disk.full = self.no_space
        return second

    def picture(self, writer: Writer) -> tuple[object, ...]:
        kept = {
            path.name: path.read_bytes()
            for path in self.settings.directory.iterdir()
            if path.name not in ("state", "lock", "wake")
        }
        return writer.queue_id, writer.writing, writer.oldest, writer.dropped, kept

    @when(lambda self: self.reader is not None)
    @rule(fate=fates(3), failed=failures(2), name=NAMES)
    def start_consumer(self, fate: Fate, failed: int = 0, name: str = "main") -> None:
        if name in self.consumers:
            return
        consumer = Consumer(self.settings.directory, name, self.new_disk(name, fate, failed))
        try:
            consumer.start()
        except Death:
            return
        except QueueMissing:
            assert self.state_rotten
            return
        except (RetryableError, PermanentError) as error:
            self.excused(error, failed)
            return
        oldest = self.reader.oldest()
        before = self.model.place(name)
        self.model.settle(name, stated(consumer), Place(oldest, oldest))
        self.met["consumer fell back"] += self.model.place(name).committed < before.committed
        self.consumers[name] = consumer

    @rule(kind=KINDS, size=SIZES, fate=fates(8), failed=failures(8))
    def put(self, kind: int, size: int, fate: Fate, failed: int = 0) -> None:
        self.put_many(kind, [size], fate, failed=failed)

    @rule(
        kind=KINDS,
        sizes=BATCHES,
        fate=fates(20),
        refused=st.integers(0, 8),
        failed=failures(20),
        helped=st.booleans(),
    )
    def put_many(
        self,
        kind: int,
        sizes: list[int],
        fate: Fate,
        refused: int = 0,
        failed: int = 0,
        helped: bool = False,
    ) -> None:
        """`helped`: while the call waits for room, consumers make some."""
        if self.writer is None:
            self.start_writer(fate, failed)
        if self.writer is None:
            return
        model, first = self.model, len(self.model.records)
        payloads = [(b"%d/" % (first + n) * size)[:size] for n, size in enumerate(sizes)]
        model.appending = [(kind, payload) for payload in payloads]
        self.arm("writer", fate, failed, refused)
        self.sleeper.then = self.help if helped else lambda: None
        try:
            assert self.writer.append(kind, payloads) == first
        except Death:
            self.met["death in append"] += 1
            self.writer = None
            return
        except QueueFull:
            self.met["full"] += 1
            assert self.when_full != "drop_oldest"
            assert first > self.slowest() or self.places_rotten()
            model.appending = []
        except (RetryableError, PermanentError) as error:
            self.met["sync failed"] += isinstance(error, SyncFailed)
            self.excused(error, failed, refused)
            model.appending = []
        model.made_anew(first, first + len(model.appending))
        model.appended(self.writer.writing)

    def help(self) -> None:
        self.met["waited"] += 1
        for name in self.names:
            self.consume(500, 10**6, ALIVE, name=name)

    @when(lambda self: self.writer is not None)
    @rule(fate=fates(6), failed=failures(6))
    def sync(self, fate: Fate, failed: int = 0) -> None:
        model, before = self.model, self.writer.durable
        self.arm("writer", fate, failed)
        try:
            assert self.writer.sync() == len(model.records)
            assert model.suspect <= max(before, self.slowest()) or not self.suspect_known
            self.suspect_known = True
            if model.suspect <= self.slowest():
                model.suspect = 0
        except Death:
            self.met["death in sync"] += 1
            self.writer = None
            return
        except SyncFailed as error:
            self.excused(error, failed)
            self.met["sync failed"] += 1
            model.suspect = len(model.records)
        except (RetryableError, PermanentError) as error:
            if "every consumer has committed" in str(error):
                doubtful = self.places_rotten() or not self.suspect_known
                assert model.suspect > self.slowest() or doubtful
            else:
                self.excused(error, failed)
        assert before <= self.writer.durable <= len(model.records)

    @when(lambda self: self.reader is not None)
    @rule(
        limit=st.integers(1, 500),
        bytes_max=st.sampled_from([1, 3000, 10**6]),
        fate=fates(3),
        failed=failures(2),
        name=NAMES,
    )
    def consume(
        self, limit: int, bytes_max: int, fate: Fate, failed: int = 0, name: str = "main"
    ) -> None:
        if name not in self.consumers:
            self.start_consumer(ALIVE, name=name)
        if name not in self.consumers:
            return
        model, start = self.model, self.committed(name)
        end = min(start + limit, max(start, self.shown(self.reader)))
        self.arm(name, fate, failed)
        for run in self.reader.runs(start, end, bytes_max):
            assert run.first == self.committed(name)
            self.check(run, name)
            model.committing[name] = run
            try:
                self.consumers[name].commit(run.end, run.dropped)
            except Death:
                self.met["death in commit"] += 1
                del self.consumers[name]
                return
            except (RetryableError, PermanentError) as error:
                self.excused(error, failed)
            model.settle(name, stated(self.consumers[name]))
            if self.committed(name) != run.end:
                return
        assert self.committed(name) == end

    def check(self, run: Run, name: str | None = None) -> None:
        """Numbers are given up by "drop_oldest", and otherwise only when every consumer had them:
        one that fell back finds them gone."""
        if run.reason == OVERFLOW:
            had = self.model.reached[name] if name else len(self.model.records)
            assert self.when_full == "drop_oldest" or run.end <= had
            assert run.end <= self.reader.oldest()
            self.met["overflow"] += 1
            return
        self.met["damage found"] += bool(run.damaged)
        assert {n for n in run.damaged if n >= self.given_up} <= self.model.rotten()
        found = list(zip(run.kinds(), map(bytes, run.payloads()), strict=True))
        whole = [n for n in range(run.first, run.end) if n not in set(run.damaged)]
        assert found == [self.model.records[n] for n in whole]

    @when(lambda self: self.reader is not None)
    @rule(skip=st.integers(0, 2000), fresh=st.booleans())
    def read(self, skip: int, fresh: bool) -> None:
        reader = Reader(self.settings.directory) if fresh else self.reader
        try:
            reader.start()
        except QueueMissing:
            assert self.state_rotten
            return
        at, end = reader.oldest(), max(reader.oldest(), self.shown(reader))
        at += skip % (end - at + 1)
        for run in reader.runs(at, end):
            assert run.first == at
            self.check(run)
            at = run.end
        assert at == end

    def shown(self, reader: Reader) -> int:
        """Of an append that died, a start that failed may have shown more than is known yet."""
        return min(reader.writing(), len(self.model.records))

    @when(lambda self: self.writer is not None or self.consumers)
    @rule(part=PARTS, gently=st.booleans())
    def end(self, part: str, gently: bool) -> None:
        ending = self.writer if part == "writer" else self.consumers.pop(part, None)
        if gently and ending is not None:
            ending.stop(0.0)
        self.disks[part].die()
        if part == "writer":
            self.writer = None

    @rule(refused=SPACE)
    def fill_or_free_disk(self, refused: list[str]) -> None:
        self.no_space = frozenset(refused)
        for disk in self.disks.values():
            disk.full = self.no_space

    @invariant()
    def numbers_agree(self) -> None:
        if self.writer is not None:
            count = len(self.model.records)
            assert self.writer.writing == count
            assert self.reader.writing() == count or self.state_rotten
            assert self.reader.writing() <= count
            assert self.reader.oldest() == self.writer.oldest <= count
            done = min(max(self.model.reached[name], self.trying(name)) for name in self.names)
            assert self.when_full == "drop_oldest" or self.writer.oldest <= done
            assert self.durability == "append" or self.is_durable(count)

    def is_durable(self, count: int) -> bool:
        """Under "fsync": all of it, or nothing, for what an earlier writer failed to sync."""
        if self.writer.durable == count:
            return True
        return self.writer.durable == 0 and (not self.suspect_known or self.places_rotten())

    def trying(self, name: str) -> int:
        return self.model.committing[name].end if name in self.model.committing else 0

    @invariant()
    def the_ledger_is_exact(self) -> None:
        model, writing = self.model, len(self.model.records)
        for name, consumer in self.consumers.items():
            place = model.place(name)
            assert stated(consumer) == place._replace(delivered=0)
            queued, dropped = writing - place.committed, sum(dict(place.dropped).values())
            assert writing == place.delivered + queued + dropped
        if self.writer and not model.committing and not self.places_rotten():
            assert self.writer.dropped == max(map(self.missed, self.names))

    def missed(self, name: str) -> int:
        place = self.model.place(name)
        waiting = max(0, self.writer.oldest - place.committed)
        return dict(place.dropped).get(OVERFLOW, 0) + waiting


def stated(consumer: Consumer) -> Place:
    return Place(consumer.committed(), 0, tuple(sorted(consumer.dropped().items())))
