"""One run at a time, however many ask for one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable


class OneAtATime:
    """`run` is awaited again and again, and never begun before it has ended. On one event loop."""

    def __init__(self, run: Callable[[], Awaitable[object]]) -> None:
        self._run = run
        self._running = False
        self._wanted = False

    async def in_turn(self) -> None:
        """Nothing where it runs already: who asks by the clock asks again."""
        if not self._running:
            await self.anew()

    async def anew(self) -> None:
        """Where it runs already, once more after it, for all who have asked meanwhile: what it
        looks for has changed since it began."""
        self._wanted = True
        if self._running:
            return
        self._running = True
        try:
            while self._wanted:
                self._wanted = False
                await self._run()
        finally:
            self._running = False
