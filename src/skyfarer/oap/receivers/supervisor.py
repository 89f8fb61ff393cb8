"""Keeps one receiver process running."""

from __future__ import annotations

import json
import logging
import socket
import subprocess
import sys
import threading
from random import Random

from skyfarer.base.backoff import Backoff, BackoffSettings
from skyfarer.base.errors import PermanentError
from skyfarer.oap.receivers.answering import Answering
from skyfarer.oap.receivers.process import STOP_TIMEOUT_S, ReceiverSettings
from skyfarer.oap.receivers.readmission import Readmission
from skyfarer.oap.receivers.replies import Replies
from skyfarer.telemetry.health import Health
from skyfarer.telemetry.metrics import Registry

READY_TIMEOUT_S = 120.0
"""A machine that starts everything at once has little time for an interpreter: one that ended is
told of at once, and one that hangs is rare."""
PART = "receiver"

log = logging.getLogger(__name__)


class Supervisor:
    """start() returns when the receiver serves; one that dies is started again after a pause.

    `listener`, a listening socket, is handed to each of them and closed by stop(), and so is
    `http_listener`, if HTTP has a port of its own. stop() is safe twice and unstarted: an ended
    standard input, then a kill. What agents were told is safe is on disk. `answering` is its own:
    started and stopped with it; none answers UNAVAILABLE. `readmission` is open while one serves.
    """

    def __init__(
        self,
        settings: ReceiverSettings,
        listener: socket.socket,
        registry: Registry,
        health: Health,
        *,
        http_listener: socket.socket | None = None,
        answering: Answering | None = None,
        readmission: Readmission | None = None,
    ) -> None:
        self._settings = settings
        self._answering = answering or Answering(registry)
        self._readmission = readmission or Readmission()
        self._replies: Replies | None = None
        self._listeners = [one for one in (listener, http_listener) if one is not None]
        self.port: int = listener.getsockname()[1]
        self._registry = registry
        self._health = health
        self._process: subprocess.Popen[str] | None = None
        self._stopping = threading.Event()
        self._ready = threading.Event()
        self._failure = ""
        self._launching = threading.Lock()
        self._thread = threading.Thread(target=self._keep_running, name="receiver", daemon=True)

    def start(self) -> None:
        self._answering.start()
        self._thread.start()
        if not self._ready.wait(READY_TIMEOUT_S):
            self._failure = self._failure or f"no sign of life in {READY_TIMEOUT_S:.0f} s"
        if self._failure:
            failure = self._failure
            self.stop(STOP_TIMEOUT_S)
            raise PermanentError(failure)

    def stop(self, timeout_s: float = STOP_TIMEOUT_S) -> None:
        self._stopping.set()
        with self._launching:
            for listener in self._listeners:
                listener.close()
        self._answering.stop(min(timeout_s, 1.0))
        process, replies = self._process, self._replies
        if process is None or replies is None:
            return
        replies.close(timeout_s)
        try:
            process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            log.warning("the receiver did not stop in %.0f s and is killed", timeout_s)
            process.kill()
        self._thread.join(timeout_s)

    def _keep_running(self) -> None:
        backoff = Backoff(BackoffSettings(initial_s=0.2, maximum_s=10.0), Random())
        while (replies := self._launch()) is not None:
            process = self._process
            assert process is not None and process.stdout is not None
            for line in process.stdout:
                self._hear(line, replies)
                if self._ready.is_set() and not self._failure:
                    backoff.reset()
            code = process.wait()
            self._answering.forget(replies.say)
            self._readmission.close()
            if not self._ready.is_set() and not self._stopping.is_set():
                self._failure = f"the receiver ended with code {code} before it served; see the log"
            if self._stopping.is_set() or self._failure:
                self._ready.set()
                return
            self._health.set(PART, False, f"ended with code {code}")
            log.error("the receiver ended with code %d and is started again", code)
            self._stopping.wait(backoff.next_s())

    def _launch(self) -> Replies | None:
        """None once it is stopping; a process that was started is then seen by `stop`."""
        with self._launching:
            if self._stopping.is_set():
                return None
            descriptors = [one.fileno() for one in self._listeners]
            self._process = subprocess.Popen(
                [sys.executable, "-m", "skyfarer.oap.receivers.process", *map(str, descriptors)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                pass_fds=descriptors,
            )
            assert self._process.stdin is not None
            self._replies = Replies(self._process.stdin)
        self._replies.write(self._settings.to_json())
        return self._replies

    def _hear(self, line: str, replies: Replies) -> None:
        message = json.loads(line)
        if "ask" in message:
            self._answering.hear(message, replies.say)
        elif "metrics" in message:
            self._registry.merge(message["metrics"], source=PART)
        elif "ready" in message:
            self._health.set(PART, True)
            self._readmission.open(replies.say)
            self._ready.set()
        elif "readmitted" in message:
            self._readmission.hear(message)
        elif "failed" in message and not self._ready.is_set():
            self._failure = message["failed"]
            self._ready.set()
        elif "failed" in message:
            log.error("%s", message["failed"])
