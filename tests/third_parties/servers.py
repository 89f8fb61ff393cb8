"""A server as a child of a test: its output in a file, ended by its process id."""

from __future__ import annotations

import shutil
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

from skyfarer.testing.programs import eventually, free_port

READY_TIMEOUT_S = 180.0
STOP_TIMEOUT_S = 60.0


class Server:
    """Keeps its port and, unless told otherwise, its data through `stop` and `start`."""

    def __init__(self, directory: Path, name: str) -> None:
        self.directory = directory
        self.data = directory / f"{name}-data"
        self.port = free_port()
        self._log = directory / f"{name}.log"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def runs(self) -> bool:
        return self._process is not None

    def command(self) -> Sequence[str]:
        raise NotImplementedError

    def start(self) -> None:
        """Returns when it answers; one that does not is ended."""
        self.data.mkdir(parents=True, exist_ok=True)
        self.data.chmod(0o700)
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [*self.command()], stdout=log, stderr=log, start_new_session=True
            )
        try:
            eventually(self._answers, READY_TIMEOUT_S, f"{self._log.name} says it is ready")
        except BaseException:
            self.kill()
            raise

    def stop(self) -> None:
        """As an operator does. Safe twice."""
        process, self._process = self._process, None
        if process is not None:
            process.terminate()
            try:
                process.wait(STOP_TIMEOUT_S)
            finally:
                process.kill()

    def kill(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait(STOP_TIMEOUT_S)

    def wipe(self) -> None:
        """All it ever knew, while it is stopped."""
        assert self._process is None
        shutil.rmtree(self.data)

    def pause(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        if self._process is not None:
            self._process.send_signal(signal.SIGCONT)

    def is_ready(self) -> bool:
        """Asked over and over while it starts; an OSError is a no."""
        raise NotImplementedError

    def _answers(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, self._log.read_text()[-2000:]
        try:
            return self.is_ready()
        except OSError:
            return False
