"""The probe finds the records that end a process, and no other."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

from oap.pipeline.rogues import Aborting, Choosy, Crashing, Greedy, Hungry, Looping, named
from skyfarer.base.units import MIB
from skyfarer.oap.pipeline.sources.bounds import Bounds
from skyfarer.oap.pipeline.sources.probe import STEP_RECORDS, Culprit, probe
from skyfarer.oap.pipeline.sources.rows import Reading
from skyfarer.queue.settings import QueueSettings
from skyfarer.queue.writer import Writer
from skyfarer.testing.traces import segment
from skyfarer.wire.rpc import Kind

RECORDS = 2 * STEP_RECORDS + 7
BOUNDS = Bounds(run_cpu_s=3.0, record_cpu_s=1.0, memory_bytes=256 * MIB)
ROGUES = {
    Aborting: "ended its process by SIGABRT",
    Crashing: "ended its process by SIGSEGV",
    Looping: "took more than 1 s of processor time",
    Hungry: "ended its process by SIGABRT",
    Greedy: "asked for more than 256 MiB",
}


@pytest.fixture(autouse=True)
def importable(monkeypatch: pytest.MonkeyPatch) -> None:
    """The decoders of the tests are there in other processes, too."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(path for path in sys.path if path))


def fill(directory: Path, words: dict[int, str]) -> None:
    settings = QueueSettings(directory, MIB, 8 * MIB, record_bytes_max=MIB // 4)
    made = [
        segment("shop", "shop-1", words.get(n, "/pay"), 1_794_744_000_000, 10, segment_id=str(n))
        for n in range(RECORDS)
    ]
    writer = Writer(settings)
    writer.start()
    writer.append(Kind.SEGMENT, [bytes(one.SerializeToString()) for one in made])
    writer.stop(1)


def found(directory: Path, reading: Reading) -> list[Culprit]:
    return probe(directory, 0, RECORDS, reading, lambda: False)


@pytest.mark.parametrize("rogue", ROGUES)
def test_probe_names_each_record_that_ends_its_process(rogue: type, tmp_path: Path) -> None:
    places = (0, 3, STEP_RECORDS, RECORDS - 1)
    fill(tmp_path, dict.fromkeys(places, rogue.word.decode()))
    reading = Reading((named(rogue),), bounds=BOUNDS)
    reason = f"undecodable: its decoder {ROGUES[rogue]}"
    assert found(tmp_path, reading) == [Culprit(place, reason, False) for place in places]


def test_probe_says_that_the_other_decoder_can_read_a_record(tmp_path: Path) -> None:
    fill(tmp_path, {5: "abort"})
    (culprit,) = found(tmp_path, Reading((named(Aborting), "protobuf"), bounds=BOUNDS))
    assert (culprit.sequence, culprit.entrusted) == (5, True)


def test_probe_names_nothing_that_raises_is_quarantined_or_entrusted(tmp_path: Path) -> None:
    fill(tmp_path, {1: "choosy", 2: "abort", 4: "abort"})
    assert found(tmp_path, Reading((named(Choosy), "protobuf"))) == []
    known = {2: "known"}
    careful = Reading((named(Aborting), "protobuf"), quarantined=known, entrusted=frozenset({4}))
    assert found(tmp_path, careful) == []


def test_probe_that_cannot_read_the_queue_names_nothing(tmp_path: Path) -> None:
    assert found(tmp_path / "no queue", Reading()) == []


def test_probe_ends_when_it_is_told_to(tmp_path: Path) -> None:
    fill(tmp_path, {7: "loop"})
    endless = Bounds(run_cpu_s=600.0, record_cpu_s=600.0)
    begun = time.monotonic()
    reading = Reading((named(Looping),), bounds=endless)
    assert probe(tmp_path, 0, RECORDS, reading, lambda: time.monotonic() > begun + 3) == []
