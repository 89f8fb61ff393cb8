"""The analysis goes on after records that stop it: a model without Spark."""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skyfarer.oap.pipeline.sources.probe import Culprit
from skyfarer.oap.pipeline.suspicion import DEATHS, PATIENCE, Suspicion

RECORDS, WHOLE = 60, 16
FAILURES_MAX = 8


class Job:
    """A job as `AnalysisJob` runs it: a batch with a bad record fails, one with a deadly record
    fails where the probe can see it."""

    def __init__(
        self, file: Path, bad: Collection[int] = (), deadly: Collection[int] = (), at: int = 0
    ) -> None:
        self.bad, self.deadly, self.at = set(bad), set(deadly), at
        self.parked = list[int]()
        self.sizes = list[int]()
        self.failures = 0
        self.broken: Callable[[], bool] = lambda: False
        self.control: Callable[[], bool] = lambda: True
        self.suspicion = Suspicion(file, WHOLE, self._probe)
        self.suspicion.begin("queue", at, RECORDS)

    def _probe(self, start: int, end: int) -> list[Culprit]:
        hidden = {*self.suspicion.quarantined, *self.suspicion.entrusted}
        found = sorted(n for n in self.deadly - hidden if start <= n < end)
        return [Culprit(n, "undecodable: deadly", n % 2 == 0) for n in found]

    def run(self) -> bool:
        """Returns whether the job got to the end, rather than give up."""
        in_a_row, failed_at = 0, -1
        while self.at < RECORDS:
            if self._batch():
                continue
            in_a_row, failed_at = (in_a_row if failed_at == self.at else 0) + 1, self.at
            self.failures += 1
            if self.control() and self.suspicion.failed(self.at, RECORDS, "no"):
                in_a_row = 0
            if in_a_row >= FAILURES_MAX:
                return False
        return True

    def _batch(self) -> bool:
        end = min(self.at + self.suspicion.records_max, RECORDS)
        batch = set(range(self.at, end)) - self.suspicion.quarantined.keys()
        self.sizes.append(end - self.at)
        if self.broken() or batch & self.bad or batch & self.deadly - self.suspicion.entrusted:
            return False
        self.parked += sorted(self.suspicion.quarantined.keys() & set(range(self.at, end)))
        self.at = end
        self.suspicion.passed(end)
        return True


PLACES = st.sets(st.integers(0, RECORDS - 1), max_size=6)


@given(PLACES, PLACES)
def test_every_record_at_fault_is_parked_and_no_other(
    tmp_path_factory: pytest.TempPathFactory, bad: set[int], deadly: set[int]
) -> None:
    job = Job(tmp_path_factory.mktemp("job") / "begun.json", bad, deadly)
    assert job.run()
    assert job.parked == sorted(bad | {n for n in deadly if n % 2})
    assert job.suspicion.records_max == WHOLE
    assert not job.suspicion.quarantined.keys() - set(job.parked)


def test_a_failure_that_passes_by_itself_parks_nothing(tmp_path: Path) -> None:
    job = Job(tmp_path / "begun.json")
    job.broken = lambda: job.failures < 1
    assert job.run()
    assert (job.parked, job.sizes[0], job.sizes[1]) == ([], WHOLE, WHOLE)


def test_a_job_that_fails_without_the_record_as_well_gives_up_and_parks_nothing(
    tmp_path: Path,
) -> None:
    job = Job(tmp_path / "begun.json")
    job.broken = lambda: True
    assert not job.run()
    assert job.at == 0
    assert not job.suspicion.quarantined


@given(st.integers(0, 40))
def test_a_fault_that_known_records_meet_as_well_parks_nothing(
    tmp_path_factory: pytest.TempPathFactory, outage: int
) -> None:
    job = Job(tmp_path_factory.mktemp("job") / "begun.json")
    job.broken = lambda: job.failures < outage
    job.control = lambda: not job.broken()
    assert job.run() is (outage < FAILURES_MAX)
    assert job.parked == []


def test_search_takes_a_number_of_failures_that_grows_with_the_logarithm(tmp_path: Path) -> None:
    job = Job(tmp_path / "begun.json", bad={13})
    assert job.run()
    assert job.parked == [13]
    assert job.failures <= PATIENCE + 4 + PATIENCE


def test_a_start_where_others_died_reads_shorter_batches_and_parks_nothing(tmp_path: Path) -> None:
    file = tmp_path / "begun.json"
    sizes = [Job(file, at=20).suspicion.records_max for _ in range(DEATHS + 3)]
    assert sizes == [WHOLE] * DEATHS + [WHOLE // 4, 1, 1]
    job = Job(file, at=20)
    assert job.run()
    assert (job.parked, job.sizes[0], job.sizes[-1]) == ([], 1, (RECORDS - 20 - WHOLE) % WHOLE)


def test_a_start_elsewhere_or_after_an_orderly_end_reads_whole_batches(tmp_path: Path) -> None:
    file = tmp_path / "begun.json"
    for _ in range(DEATHS + 1):
        Job(file, at=20)
    assert Job(file, at=21).suspicion.records_max == WHOLE
    for _ in range(DEATHS + 1):
        Job(file, at=20).suspicion.end()
    assert Job(file, at=20).suspicion.records_max == WHOLE


def test_starts_of_an_idle_queue_are_no_deaths(tmp_path: Path) -> None:
    file = tmp_path / "begun.json"
    for _ in range(DEATHS + 1):
        Suspicion(file, WHOLE, lambda *_: []).begin("queue", 7, 7)
    assert Job(file, at=7).suspicion.records_max == WHOLE


def test_a_damaged_note_is_written_anew(tmp_path: Path) -> None:
    file = tmp_path / "begun.json"
    file.write_bytes(b'{"queue": "que')
    assert Job(file).suspicion.records_max == WHOLE
