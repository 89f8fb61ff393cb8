"""The disk of the storage is full for a while: the job waits, and ends where one would that never
met it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from oap.pipeline.faults import job
from oap.pipeline.faults.line import Tables, contents
from oap.pipeline.faults.lives import LIFE_S, living
from skyfarer.base.units import KIB, MIB
from skyfarer.testing.programs import eventually
from third_parties.small_disk import small_disk

pytestmark = pytest.mark.timeout(3600)

ROOM_BYTES = 64 * KIB
"""Enough to make the fixed tables, and too little for the batches."""
REFUSED = "analysis failed at record"
NOT_COUNTED = "(0 in a row): "


def test_a_job_on_a_full_disk_waits_and_goes_on_by_itself_when_there_is_room(
    filled: Path, undisturbed: Tables, tmp_path: Path
) -> None:
    life, said = shutil.copytree(filled, tmp_path / "life"), tmp_path / "said"
    (life / job.WORKER_DIED).touch()  # one that died would be a failure of another kind

    def refusals() -> list[str]:
        return [line for line in said.read_text().splitlines() if REFUSED in line]

    with small_disk(life / "storage", 64 * MIB) as place, said.open("w") as output:
        filler = place / "filler"
        filler.write_bytes(bytes(64 * MIB - ROOM_BYTES))
        with living(life, output) as process:
            eventually(lambda: len(refusals()) >= 2, LIFE_S, "batches are refused")
            filler.unlink()
            assert process.wait(LIFE_S) == 0, said.read_text()
        assert contents(life) == undisturbed
    assert all(NOT_COUNTED in line and "No space left" in line for line in refusals())
