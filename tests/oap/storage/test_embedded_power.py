"""The power goes while batches are stored.

What must hold when it is back: every batch whose `apply` had returned is there, whole and once,
with its offset; of the one that was cut off all or nothing; and the storage goes on. Where DuckDB
is told not to sync, the same check must find losses, or it would prove nothing.
"""

from __future__ import annotations

import multiprocessing
import random
import time
from collections.abc import Iterator
from datetime import UTC
from multiprocessing.connection import Connection
from pathlib import Path

import duckdb
import pytest

from skyfarer.base.errors import PermanentError, RetryableError
from skyfarer.base.units import KIB, MIB
from skyfarer.oap.storage.embedded import EmbeddedStorage
from third_parties.cut_disk import CutDisk, cut_disk

from .numbered import QUEUE, numbered, whole

CUTS = 24
UNSYNCED_CUTS = 6
LIFE_MAX = 8
"""Batches that are waited for before a cut."""
DELAY_S_MAX = 0.03
WITHIN_S = 120.0
BYTES_EACH = 4 * KIB
LOGGED, CHECKPOINTED = "16MB", "128KB"
"""What is cut off: mostly the log, or mostly the file that is brought up to date from it."""


def work(path: Path, settings: dict[str, str], told: Connection) -> None:
    """Stores for ever, and tells each number that is durable."""
    storage = EmbeddedStorage()
    storage.start(path, UTC)
    for name, value in settings.items():
        storage._cursor().execute(f"SET {name} = '{value}'")
    while True:
        number = storage.applied(QUEUE)
        storage.apply(numbered(number, BYTES_EACH))
        told.send(number + 1)


def told_before_a_cut(disk: CutDisk, chance: random.Random, settings: dict[str, str]) -> int:
    """How many batches were durable, by what was told before it began."""
    lives = multiprocessing.get_context("forkserver")
    lives.set_forkserver_preload([__name__])
    here, there = lives.Pipe(duplex=False)
    path = disk.place / "skyfarer.duckdb"
    writer = lives.Process(target=work, args=[path, settings, there], daemon=True)
    writer.start()
    there.close()
    told = 0
    for _ in range(chance.randint(1, LIFE_MAX)):
        assert here.poll(WITHIN_S), "the writer tells nothing"
        told = here.recv()
    time.sleep(chance.random() * DELAY_S_MAX)
    while here.poll():
        told = here.recv()
    disk.cut()
    writer.kill()
    writer.join(WITHIN_S)
    here.close()
    disk.unmount()
    disk.mount()
    return told


def reached(place: Path) -> int:
    """By a storage that is opened again; AssertionError where it is not whole."""
    storage = EmbeddedStorage()
    storage.start(place / "skyfarer.duckdb", UTC)
    try:
        return whole(storage, BYTES_EACH)
    finally:
        storage.stop()


def what_is_left(place: Path) -> int:
    """Of a file that may be damaged."""
    try:
        return reached(place)
    except (AssertionError, PermanentError, RetryableError, duckdb.Error):
        return 0


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[CutDisk]:
    with cut_disk("ext4", tmp_path, 192 * MIB) as disk:
        yield disk


def test_no_batch_that_was_applied_is_lost_when_the_power_goes(disk: CutDisk) -> None:
    """One file through all the cuts, so each begins with what the one before has left."""
    chance, last = random.Random(7), 0
    for cut in range(CUTS):
        settings = {"checkpoint_threshold": CHECKPOINTED if cut % 2 else LOGGED}
        told = told_before_a_cut(disk, chance, settings)
        there = reached(disk.place)
        assert told <= there
        assert last < told
        last = there
    assert last > CUTS


@pytest.mark.parametrize("checkpoints", [1, 2, 5])
def test_a_log_that_the_file_has_taken_in_is_set_aside(tmp_path: Path, checkpoints: int) -> None:
    """As a cut leaves it that undoes the removal of the log, and nothing else."""
    path, log = tmp_path / "skyfarer.duckdb", tmp_path / "skyfarer.duckdb.wal"
    storage = EmbeddedStorage()
    storage.start(path, UTC)
    storage.apply(numbered(0, BYTES_EACH))
    removed = log.read_bytes()
    for number in range(1, checkpoints + 1):
        storage._cursor().execute("CHECKPOINT")
        storage.apply(numbered(number, BYTES_EACH))
    storage._cursor().execute("CHECKPOINT")
    storage.stop()
    log.write_bytes(removed)
    assert reached(tmp_path) == checkpoints + 1
    assert (tmp_path / "skyfarer.duckdb.wal.old").read_bytes() == removed


def test_the_same_check_finds_losses_when_nothing_is_synced(disk: CutDisk) -> None:
    chance, losses = random.Random(8), 0
    for _ in range(UNSYNCED_CUTS):
        settings = {"checkpoint_threshold": CHECKPOINTED, "fsync_mode": "NONE"}
        told = told_before_a_cut(disk, chance, settings)
        losses += told > what_is_left(disk.place)
        for left in disk.place.glob("skyfarer*"):
            left.unlink()
    assert losses > 1
