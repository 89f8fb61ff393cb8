"""Random histories against a model that is a list."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

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

from skyfarer.queue.errors import QueueFull
from skyfarer.queue.run import OVERFLOW

SIZES = st.sampled_from([0, 1, 7, 100, 900, 2500, 4096])
BATCHES = st.lists(SIZES, min_size=1, max_size=6) | st.integers(200, 400).map(lambda n: [3] * n)


class Model:
    """Everything ever accepted, and how far the consumer is."""

    def __init__(self) -> None:
        self.records: list[tuple[int, bytes]] = []
        self.committed = 0
        self.delivered: list[int] = []
        self.overflowed = 0

    def append(self, kind: int, payloads: list[bytes]) -> int:
        self.records += [(kind, payload) for payload in payloads]
        return len(self.records) - len(payloads)


class QueueMachine(RuleBasedStateMachine):
    bench_type: type
    when_full = "reject"

    def __init__(self) -> None:
        super().__init__()
        self.place = Path(tempfile.mkdtemp())
        self.bench = self.bench_type(self.place / "queue")
        self.model = Model()
        self.reopen_all()

    def reopen_all(self) -> None:
        self.bench.close()
        self.writer = self.bench.writer(when_full=self.when_full)
        self.consumer, self.reader = self.bench.consumer(), self.bench.reader()

    @rule(kind=st.integers(1, 2**32 - 1), sizes=BATCHES)
    def append(self, kind: int, sizes: list[int]) -> None:
        payloads = [
            (b"%d/" % (len(self.model.records) + n) * size)[:size] for n, size in enumerate(sizes)
        ]
        try:
            first = self.writer.append(kind, payloads)
        except QueueFull:
            assert self.when_full == "reject"
            assert len(self.model.records) > self.model.committed
        else:
            assert first == self.model.append(kind, payloads)

    @rule(limit=st.integers(1, 500), bytes_max=st.sampled_from([1, 3000, 10**6]))
    def consume(self, limit: int, bytes_max: int) -> None:
        start = self.model.committed
        for run in self.reader.runs(start, start + limit, bytes_max):
            assert run.first == self.model.committed
            if run.reason == OVERFLOW:
                assert run.end <= self.writer.oldest
                self.model.overflowed += run.count
            else:
                found = list(zip(run.kinds(), map(bytes, run.payloads()), strict=True))
                assert found == self.model.records[run.first : run.end]
                self.model.delivered += run.sequences()
            self.consumer.commit(run.end, run.dropped)
            self.model.committed = run.end
        assert self.model.committed == min(len(self.model.records), start + limit)

    @rule()
    def reopen(self) -> None:
        before = (self.writer.queue_id, self.writer.oldest, self.writer.dropped)
        self.reopen_all()
        assert (self.writer.queue_id, self.writer.oldest, self.writer.dropped) == before

    @precondition(lambda self: self.model.records)
    @rule(data=st.data())
    def read_anywhere(self, data: st.DataObject) -> None:
        start = data.draw(st.integers(self.writer.oldest, len(self.model.records)))
        runs = list(self.reader.runs(start, len(self.model.records)))
        found = [bytes(payload) for run in runs for payload in run.payloads()]
        assert found == [payload for _, payload in self.model.records[start:]]

    @invariant()
    def numbers_agree(self) -> None:
        assert self.writer.writing == self.reader.writing() == len(self.model.records)
        assert self.reader.oldest() == self.writer.oldest <= self.writer.writing
        assert self.consumer.committed() == self.model.committed

    @invariant()
    def the_ledger_is_exact(self) -> None:
        waiting = max(0, self.writer.oldest - self.model.committed)
        assert self.writer.dropped == self.model.overflowed + waiting
        queued = self.writer.writing - self.consumer.committed()
        dropped = sum(self.consumer.dropped().values())
        assert self.writer.writing == len(self.model.delivered) + queued + dropped

    def teardown(self) -> None:
        self.bench.close()
        shutil.rmtree(self.place)


@pytest.mark.parametrize("policy", ["reject", "drop_oldest"])
def test_any_history_agrees_with_a_list(bench, policy):
    machine = type("Machine", (QueueMachine,), {"bench_type": type(bench), "when_full": policy})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=40,
            stateful_step_count=40,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
