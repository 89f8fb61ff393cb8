"""SIGKILL between any two steps of the fetcher and of its queue: every line once, events whole.

The files are changed by the test's own code, which the kill never hits; what was left undone when
the process died is done afterwards, and a fetcher started anew reads on.
"""

from __future__ import annotations

import asyncio
import os
import random
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

import skyfarer
from satellite.fetchers.log_rig import Rig
from skyfarer.satellite.fetchers.log.config import MultilineConfig
from skyfarer.testing.kill_points import BEGINS, Tell, killed_at, on_both_cores, steps_of

ROOMS = [str(Path(skyfarer.__file__).parent / room) for room in ("satellite/fetchers", "queue")]
POINTS = 100
SEED = 20260721


def event(number: int) -> str:
    return f"2026 event {number}" + "".join(f"\n at {n}" for n in range(number % 4))


def events(first: int, end: int) -> str:
    return "".join(event(number) + "\n" for number in range(first, end))


def rename(rig: Rig, to: str) -> None:
    rig.app.rename(rig.logs / to)


def copy_truncate(rig: Rig, to: str) -> None:
    shutil.copy(rig.app, rig.logs / to)
    os.truncate(rig.app, 0)


HALF = event(63)[:20]
STEPS: Sequence[Callable[[Rig], object]] = (
    lambda rig: rig.append(events(0, 40)),
    lambda rig: (rig.append(events(40, 50)), rename(rig, "app.log.1"), rig.append(events(50, 60))),
    lambda rig: rig.append(events(60, 63) + HALF),
    lambda rig: copy_truncate(rig, "app.log.2"),
    lambda rig: rig.append(event(63)[20:] + "\n" + events(64, 70)),
    lambda rig: ((rig.logs / "app.log.1").unlink(), rig.append(events(70, 71))),
)
EVERYTHING = [event(number) for number in range(71)]


def made(place: Path) -> Rig:
    rig = Rig(place)
    # Small segments, so that a batch is split between two.
    rig.bounds = {"segment_bytes": 32768, "capacity_bytes": 32768 * 64, "record_bytes_max": 20000}
    rig.keys |= {
        "paths": (str(rig.logs / "app.log*"),),
        "multiline": MultilineConfig(first_line="2026", timeout="3s"),
        "tags": {"padding": "x" * 700},
    }
    return rig


def life(rig: Rig, done: int, tell: Tell) -> None:
    async def live() -> None:
        tell("life", BEGINS)
        await rig.start()
        for number in range(done, len(STEPS)):
            STEPS[number](rig)
            tell("done", number + 1)
            await rig.look()
        await rig.look(3.0)
        await rig.look(30.0)
        await rig.stop()

    asyncio.run(live())


@pytest.mark.parametrize("room", ROOMS, ids=["fetcher", "queue"])
def test_nothing_is_lost_or_doubled_wherever_the_process_dies(tmp_path: Path, room: str) -> None:
    (tmp_path / "whole").mkdir()
    whole = made(tmp_path / "whole")
    steps = steps_of(room, lambda tell: life(whole, 0, tell))
    assert whole.texts() == EVERYTHING
    points = random.Random(SEED).sample(steps.points(), POINTS)

    def share(which: int) -> list[str]:
        wrong = []
        for point in points[which::2]:
            place = tmp_path / f"{point[1]}"
            place.mkdir()
            rig = made(place)
            death = killed_at(room, point, lambda tell, rig=rig: life(rig, 0, tell))
            life(rig, death.facts.get("done", 0), lambda name, value: None)
            if rig.texts() != EVERYTHING:
                lost = [one for one in EVERYTHING if one not in rig.texts()]
                wrong.append(f"{point}: lost {lost}, in all {rig.texts()}")
            else:
                shutil.rmtree(place)
        return wrong

    wrong = on_both_cores(share)
    assert wrong == [[], []]
