"""Programs run as children: own process groups, logs in files, stopped in the parent's order."""

from __future__ import annotations

import asyncio
import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from skyfarer.base.errors import PermanentError
from skyfarer.cli.demo.http import answers

STOP_TIMEOUT_S = 120.0
READY_TIMEOUT_S = 480.0
PROGRESS_INTERVAL_S = 5.0
POLL_S = 0.2
TAIL_LINES = 20
PR_SET_PDEATHSIG = 1


class ChildError(PermanentError):
    """A program ended by itself; the text has the tail of its log."""


class Child:
    """A Skyfarer command as a process. `ready_url` answers 200 once it serves."""

    def __init__(
        self,
        name: str,
        arguments: Sequence[str],
        environ: Mapping[str, str],
        log_file: Path,
        ready_url: str,
    ) -> None:
        self.name = name
        self._arguments = arguments
        self._environ = environ
        self._log_file = log_file
        self._ready_url = ready_url
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        command = [sys.executable, "-m", "skyfarer.cli", *self._arguments]
        with self._log_file.open("ab") as log:
            # A group of its own: Ctrl-C reaches the parent alone, which then stops us in its order.
            self._process = subprocess.Popen(
                command,
                env={**os.environ, **self._environ},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=_die_with_parent,
            )

    async def ready(self, say: Callable[[str], None]) -> None:
        """Returns when it serves; PermanentError when it ended or takes too long."""
        loop = asyncio.get_running_loop()
        begun = told = loop.time()
        while not await answers(self._ready_url):
            self.check()
            now = loop.time()
            if now - begun > READY_TIMEOUT_S:
                raise PermanentError(
                    f"{self.name} does not serve after {READY_TIMEOUT_S:.0f} seconds;"
                    f" its log is {self._log_file}"
                )
            if now - told >= PROGRESS_INTERVAL_S:
                told = now
                say(f"{self.name} is still starting")
            await asyncio.sleep(POLL_S)
        self.check()

    def check(self) -> None:
        if self._process is None:
            return
        code = self._process.poll()
        if code is not None:
            raise ChildError(
                f"{self.name} ended by itself with code {code}; the end of {self._log_file}:\n"
                + self._tail()
            )

    async def stop(self) -> None:
        """SIGTERM, and SIGKILL to its whole group if that is not heard. Safe twice, unstarted."""
        process, self._process = self._process, None
        if process is None:
            return
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            try:
                await asyncio.to_thread(process.wait, STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                print(f"{self.name} did not stop in time and is killed", file=sys.stderr)
        try:
            # Whatever it left behind in its group, and itself if it did not listen.
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            return
        await asyncio.to_thread(process.wait)

    def _tail(self) -> str:
        lines = self._log_file.read_text(errors="replace").splitlines()
        return "\n".join(f"    {line}" for line in lines[-TAIL_LINES:])


def _die_with_parent() -> None:
    """If the demo is killed outright, its children are told to stop too."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
