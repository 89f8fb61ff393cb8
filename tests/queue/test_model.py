"""Random histories on a faulty disk against a model that is a list.

A history that once failed, on the code as it was or with one of its rules taken out, stays in
`seeds/` and is replayed before anything is searched for: hypothesis has no `@example` for machines.
"""

from __future__ import annotations

import json
import shutil
import struct
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from skyfarer.base.errors import RetryableError
from skyfarer.base.units import KIB
from skyfarer.queue.consumer import Consumer
from skyfarer.queue.errors import QueueFull
from skyfarer.queue.layout import PAGE_BYTES, SLOT_BYTES, decode_segment_header
from skyfarer.queue.reader import Reader
from skyfarer.queue.run import OVERFLOW, Run
from skyfarer.queue.settings import QueueSettings
from skyfarer.queue.writer import Writer
from skyfarer.testing.faulty_disk import Death, FaultyDisk, flip

SEEDS = sorted((Path(__file__).parent / "seeds").glob("*.json"))
MEMORY = Path("/dev/shm")

KINDS = st.integers(1, 2**32 - 1)
SIZES = st.sampled_from([0, 1, 7, 900, 2500, 3500, 4096])
BATCHES = st.lists(SIZES, min_size=1, max_size=6) | st.integers(200, 400).map(lambda n: [3] * n)
ALIVE = (0, 0)
LAST_STEPS: list[tuple[str, dict[str, Any]]] = [
    ("fill_or_free_disk", {"refused": []}),
    ("start_writer", {"fate": ALIVE}),
    ("start_consumer", {"fate": ALIVE}),
    ("read", {"skip": 0, "fresh": True}),
    ("read", {"skip": 0, "fresh": False}),
]
KEPT_BYTES = st.sampled_from([0, 1, 15, 16, 17, 30, 40, 60, 2100, 5000])
SPACE = st.sampled_from([[], [], [], [], ["allocate"], ["allocate", "pwrite", "pwritev"]])
PARTS = st.sampled_from(["writer", "consumer"])


def fates(calls_max: int) -> st.SearchStrategy[tuple[int, int]]:
    """Which call is the last, and how much of it is done; two in three live on."""
    death = st.tuples(st.integers(1, calls_max), KEPT_BYTES)
    return st.sampled_from([False, False, True]).flatmap(
        lambda dies: death if dies else st.just(ALIVE)
    )


@dataclass
class Model:
    """Everything ever accepted, which of it rotted, and how far the consumer is.

    Of the one append and the one commit that died, nobody knows what was done until the next start.
    """

    records: list[tuple[int, bytes]] = field(default_factory=list)
    rotten_entries: set[int] = field(default_factory=set)
    rotten_payloads: set[int] = field(default_factory=set)
    committed: int = 0
    delivered: int = 0
    dropped: Counter[str] = field(default_factory=Counter)
    appending: list[tuple[int, bytes]] = field(default_factory=list)
    committing: Run | None = None

    def appended(self, writing: int) -> None:
        kept = writing - len(self.records)
        assert 0 <= kept <= len(self.appending), "acknowledged records gone, or others invented"
        self.records += self.appending[:kept]
        self.made_anew(writing, writing + 10**6)
        self.appending = []

    def made_anew(self, first: int, end: int) -> None:
        for rotten in (self.rotten_entries, self.rotten_payloads):
            rotten -= {n for n in rotten if first <= n < end}

    def rotten(self) -> set[int]:
        """Behind an entry and its own payload, both rotten, the checksum of the next has nothing
        to begin with."""
        unproven: set[int] = set()
        for n in sorted(self.rotten_entries):
            if n in self.rotten_payloads or n in unproven:
                unproven.add(n + 1)
        return self.rotten_entries | self.rotten_payloads | unproven

    def settle(self, committed: int) -> None:
        run, self.committing = self.committing, None
        assert committed in (self.committed, run.end if run else self.committed)
        if run is not None and committed == run.end:
            self.committed = run.end
            self.dropped.update(run.dropped)
            self.delivered += run.count - len(run.damaged)


def when(possible: Callable[[Any], bool]) -> Callable[[Any], Any]:
    """As `precondition`, and known to a replay."""

    def decorate(method: Any) -> Any:
        decorated = precondition(possible)(method)
        decorated.possible = possible
        return decorated

    return decorate


class QueueMachine(RuleBasedStateMachine):
    when_full = "reject"
    met: Counter[str]

    def __init__(self) -> None:
        super().__init__()
        self.place = Path(tempfile.mkdtemp(dir=MEMORY if MEMORY.is_dir() else None))
        self.settings = QueueSettings(
            self.place / "queue", 16 * KIB, 64 * KIB, 4 * KIB, when_full=self.when_full
        )
        self.model = Model()
        self.no_space: frozenset[str] = frozenset()
        self.writer: Writer | None = None
        self.consumer: Consumer | None = None
        self.reader: Reader | None = None
        self.disks = {"writer": FaultyDisk(), "consumer": FaultyDisk()}

    def new_disk(self, whose: str, fate: tuple[int, int]) -> FaultyDisk:
        self.disks[whose].die()
        disk = self.disks[whose] = FaultyDisk()
        disk.full = self.no_space
        disk.die_at(*fate)
        return disk

    @when(lambda self: self.writer is None)
    @rule(fate=fates(14))
    def start_writer(self, fate: tuple[int, int]) -> None:
        writer = Writer(self.settings, self.new_disk("writer", fate))
        try:
            writer.start()
        except Death:
            self.met["death in recovery"] += 1
            return
        except RetryableError:
            assert self.no_space
            return
        assert writer.recovered is not None
        self.met["torn tail cut"] += writer.recovered.torn > 0
        self.met["segment set aside"] += writer.recovered.quarantined > 0
        self.met["unacknowledged records kept"] += writer.writing > len(self.model.records)
        self.model.appended(writer.writing)
        self.writer = self.recovered_again(writer)
        if self.reader is None:
            self.reader = Reader(self.settings.directory)
            self.reader.start()

    def recovered_again(self, first: Writer) -> Writer:
        before = self.picture(first)
        first.stop(0.0)
        disk = self.new_disk("writer", ALIVE)
        disk.full = frozenset()
        second = Writer(self.settings, disk)
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

    @when(lambda self: self.reader is not None and self.consumer is None)
    @rule(fate=fates(3))
    def start_consumer(self, fate: tuple[int, int]) -> None:
        disk = self.new_disk("consumer", fate)
        consumer = Consumer(self.settings.directory, "main", disk)
        try:
            consumer.start()
        except Death:
            return
        self.model.settle(consumer.committed())
        self.consumer = consumer

    @rule(kind=KINDS, size=SIZES, fate=fates(8))
    def put(self, kind: int, size: int, fate: tuple[int, int]) -> None:
        self.put_many(kind, [size], fate)

    @rule(kind=KINDS, sizes=BATCHES, fate=fates(14), refused=st.integers(0, 8))
    def put_many(
        self, kind: int, sizes: list[int], fate: tuple[int, int], refused: int = 0
    ) -> None:
        if self.writer is None:
            self.start_writer(fate)
        if self.writer is None:
            return
        model, first = self.model, len(self.model.records)
        payloads = [(b"%d/" % (first + n) * size)[:size] for n, size in enumerate(sizes)]
        model.appending = [(kind, payload) for payload in payloads]
        self.disks["writer"].die_at(*fate)
        self.disks["writer"].refuse_at(refused)
        try:
            assert self.writer.append(kind, payloads) == first
        except Death:
            self.met["death in append"] += 1
            self.writer = None
            return
        except QueueFull:
            assert self.when_full == "reject" and first > self.model.committed
            model.appending = []
        except RetryableError:
            the_last_is_rotten = first - 1 in model.rotten_entries
            assert self.no_space or refused or the_last_is_rotten
            self.met["damage noticed" if the_last_is_rotten else "no space"] += 1
            model.appending = []
        model.made_anew(first, first + len(model.appending))
        model.appended(self.writer.writing)

    @when(lambda self: self.reader is not None)
    @rule(limit=st.integers(1, 500), bytes_max=st.sampled_from([1, 3000, 10**6]), fate=fates(3))
    def consume(self, limit: int, bytes_max: int, fate: tuple[int, int]) -> None:
        if self.consumer is None:
            self.start_consumer(ALIVE)
        model, start = self.model, self.model.committed
        end = min(start + limit, len(model.records))
        self.disks["consumer"].die_at(*fate)
        for run in self.reader.runs(start, end, bytes_max):
            assert run.first == model.committed
            self.check(run)
            model.committing = run
            try:
                self.consumer.commit(run.end, run.dropped)
            except Death:
                self.met["death in commit"] += 1
                self.consumer = None
                return
            except RetryableError:
                assert self.no_space
            model.settle(self.consumer.committed())
            if model.committed != run.end:
                return
        assert model.committed == end

    def check(self, run: Run) -> None:
        if run.reason == OVERFLOW:
            assert self.when_full == "drop_oldest" and run.end <= self.reader.oldest()
            self.met["overflow"] += 1
            return
        self.met["damage found"] += bool(run.damaged)
        assert set(run.damaged) <= self.model.rotten()
        found = list(zip(run.kinds(), map(bytes, run.payloads()), strict=True))
        whole = [n for n in range(run.first, run.end) if n not in set(run.damaged)]
        assert found == [self.model.records[n] for n in whole]

    @when(lambda self: self.reader is not None)
    @rule(skip=st.integers(0, 2000), fresh=st.booleans())
    def read(self, skip: int, fresh: bool) -> None:
        reader = Reader(self.settings.directory) if fresh else self.reader
        reader.start()
        at, end = reader.oldest(), len(self.model.records)
        at += skip % (end - at + 1)
        for run in reader.runs(at, end):
            assert run.first == at
            self.check(run)
            at = run.end
        assert at == end

    @when(lambda self: self.writer is not None or self.consumer is not None)
    @rule(part=PARTS, gently=st.booleans())
    def end(self, part: str, gently: bool) -> None:
        ending = getattr(self, part)
        if gently and ending is not None:
            ending.stop(0.0)
        self.disks[part].die()
        setattr(self, part, None)

    @rule(refused=SPACE)
    def fill_or_free_disk(self, refused: list[str]) -> None:
        self.no_space = frozenset(refused)
        for disk in self.disks.values():
            disk.full = self.no_space

    @when(lambda self: any(self.settings.directory.glob("*.seg")))
    @rule(
        file=st.integers(0, 3),
        region=st.sampled_from(["header", "index", "payload"]),
        byte=st.integers(0, 2**14),
        bit=st.integers(0, 7),
    )
    def rot(self, file: int, region: str, byte: int, bit: int) -> None:
        """One bit of one file; of the header's two copies always in the first."""
        paths = sorted(self.settings.directory.glob("*.seg"))
        path, shape = paths[file % len(paths)], self.settings.geometry
        data = path.read_bytes()
        entries = list(struct.iter_unpack("<IIIII", data[shape.index]))
        used = max((n + 1 for n, entry in enumerate(entries) if any(entry)), default=0)
        taken = max(start + length for start, length, *_ in entries)
        begin, size = {
            "header": (0, PAGE_BYTES // 2),
            "index": (PAGE_BYTES, min(used + 2, shape.slots) * SLOT_BYTES),
            "payload": (shape.payload_offset, min(taken + 16, shape.payload_bytes)),
        }[region]
        at = begin + byte % size
        queue_id = bytes.fromhex(self.reader.queue_id if self.reader else "")
        header = decode_segment_header(data[:PAGE_BYTES], queue_id)
        flip(path, at, bit)
        for slot, (start, length, *_) in enumerate(entries[:used] if header else ()):
            if region == "index" and (at - PAGE_BYTES) // SLOT_BYTES == slot:
                self.model.rotten_entries.add(header.first + slot)
            # Where the payload of a rotten entry lies, the entry no longer says: it may be here.
            unknown = region == "payload" and header.first + slot in self.model.rotten_entries
            if unknown or start <= at - shape.payload_offset < start + length:
                self.model.rotten_payloads.add(header.first + slot)

    @invariant()
    def numbers_agree(self) -> None:
        if self.writer is not None:
            count = len(self.model.records)
            assert self.writer.writing == self.reader.writing() == count
            assert self.reader.oldest() == self.writer.oldest <= count
            done = self.model.committing.end if self.model.committing else self.model.committed
            assert self.when_full == "drop_oldest" or self.writer.oldest <= done

    @invariant()
    def the_ledger_is_exact(self) -> None:
        if self.writer is not None and self.consumer is not None:
            model, writing = self.model, self.writer.writing
            assert (self.consumer.committed(), self.consumer.dropped()) == (
                model.committed,
                dict(model.dropped),
            )
            waiting = max(0, self.writer.oldest - model.committed)
            assert self.writer.dropped == model.dropped[OVERFLOW] + waiting
            queued, dropped = writing - model.committed, sum(model.dropped.values())
            assert writing == model.delivered + queued + dropped

    def teardown(self) -> None:
        for disk in self.disks.values():
            disk.die()
        shutil.rmtree(self.place)


def machine_type(policy: str) -> type[QueueMachine]:
    return type("Machine", (QueueMachine,), {"when_full": policy, "met": Counter()})


@pytest.mark.parametrize("path", SEEDS, ids=lambda path: path.stem)
def test_a_history_that_once_failed_agrees_with_a_list(path: Path) -> None:
    seed = json.loads(path.read_text())
    machine = machine_type(seed["when_full"])()
    try:
        for name, arguments in [*seed["steps"], *LAST_STEPS]:
            step = getattr(machine, name)
            if getattr(step, "possible", lambda machine: True)(machine):
                step(**arguments)
            machine.numbers_agree()
            machine.the_ledger_is_exact()
        assert machine.writer is not None and machine.consumer is not None
    finally:
        machine.teardown()


@pytest.mark.parametrize("policy", ["reject", "drop_oldest"])
def test_any_history_on_a_faulty_disk_agrees_with_a_list(policy: str) -> None:
    machine = machine_type(policy)
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=100,
            stateful_step_count=50,
            deadline=None,
            print_blob=True,
            suppress_health_check=list(HealthCheck),
        ),
    )
    deaths = {"death in append", "death in commit", "death in recovery"}
    assert deaths | {"no space", "damage found"} <= {fault for fault, n in machine.met.items() if n}
