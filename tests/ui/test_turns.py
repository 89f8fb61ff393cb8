"""Whoever asks for a run while there is one."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from skyfarer.ui.turns import OneAtATime


class Slow:
    """Runs until it is let go."""

    def __init__(self) -> None:
        self.begun, self.at_once, self.at_once_max = 0, 0, 0
        self._gate = asyncio.Event()
        self.failure: Exception | None = None

    async def __call__(self) -> None:
        self.begun += 1
        self.at_once += 1
        self.at_once_max = max(self.at_once, self.at_once_max)
        await self._gate.wait()
        self.at_once -= 1
        if self.failure is not None:
            raise self.failure

    def let_go(self) -> None:
        self._gate.set()


def during(first: Callable[[OneAtATime, Slow], Awaitable[None]]) -> Slow:
    """One run is under way; after what `first` does it ends, and all that it has led to."""

    async def story() -> Slow:
        slow = Slow()
        turns = OneAtATime(slow)
        running = asyncio.create_task(turns.in_turn())
        await asyncio.sleep(0)
        await first(turns, slow)
        slow.let_go()
        await running
        return slow

    return asyncio.run(story())


def test_the_clock_begins_no_second_run_beside_the_first():
    async def ticks(turns: OneAtATime, slow: Slow) -> None:
        for _ in range(5):
            await turns.in_turn()

    assert during(ticks).begun == 1


def test_another_question_is_asked_once_after_the_run_however_often_it_changed():
    async def asks(turns: OneAtATime, slow: Slow) -> None:
        for _ in range(5):
            await turns.anew()

    slow = during(asks)
    assert (slow.begun, slow.at_once_max) == (2, 1)


def test_a_run_that_fails_leaves_the_way_free_for_the_next():
    async def story() -> int:
        slow = Slow()
        slow.failure = RuntimeError("broken")
        slow.let_go()
        turns = OneAtATime(slow)
        for _ in range(2):
            with pytest.raises(RuntimeError):
                await turns.in_turn()
        return slow.begun

    assert asyncio.run(story()) == 2
