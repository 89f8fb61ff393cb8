"""The main process's side of `asking`: its receiver's questions, answered on a few threads.

An answer that lacks an id is held back for a bounded moment, since old agents ask again without any
pause. No thread waits for it: it stands in a list, and is tried again when storage has changed
(`applied`), and every second, since another node may have changed it. Each question is answered
once, whatever becomes of it, unless the receiver that asked is gone.

Writing to a receiver may block until it reads, and it may be waiting for us to read: so the thread
that reads its questions never writes.
"""

from __future__ import annotations

import logging
import threading
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final, Protocol

from skyfarer.base.clock import Clock, SystemClock
from skyfarer.base.errors import PermanentError, RetryableError
from skyfarer.oap.receivers.answers.outcome import Handler, Outcome
from skyfarer.oap.receivers.answers.records import KIND, record
from skyfarer.telemetry.metrics import Registry
from skyfarer.telemetry.table import REGISTRY_RECORDS

THREADS: Final = 4
HELD_MAX: Final = 2048
HOLD_BACK_S: Final = 2.0
REFRESH_S: Final = 1.0
# Of the time that a caller has: the rest is for the way back.
_SHARE_HELD: Final = 0.8

log = logging.getLogger(__name__)

Reply = Callable[[Mapping[str, Any]], None]


@dataclass(frozen=True)
class Question:
    number: int
    path: str
    payload: str  # base64
    until_s: float  # how long its answer may be held back
    reply: Reply


class Desk(Protocol):
    """Who makes the answers. Any thread."""

    handlers: Mapping[str, Handler]

    def changed(self) -> None:
        """Storage has changed, or may have, and held answers are about to be tried again. May
        block on it. Called every few seconds at least."""

    def forget(self) -> None:
        """A receiver is gone, perhaps before it kept what it was told to. Does not block."""


class Answering:
    """start() and stop() once each; stop is safe twice and unstarted, and answers nobody any more.

    Until `open` was called everything is answered UNAVAILABLE.
    """

    def __init__(
        self,
        registry: Registry,
        hold_back_s: float = HOLD_BACK_S,
        clock: Clock | None = None,
        refresh_s: float = REFRESH_S,
    ) -> None:
        self._desk: Desk | None = None
        self._registry = registry
        self._hold_back_s = hold_back_s
        self._clock = clock or SystemClock()
        self._refresh_s = refresh_s
        self._looked_s = self._clock.monotonic_s()
        self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="answering")
        self._held: list[tuple[Question, Outcome]] = []
        self._wake = threading.Condition()
        self._applied = False
        self._changes = 0
        self._stopping = False
        self._broken = self._unreadable = False
        self._waiting = threading.Thread(target=self._keep_waiting, name="held", daemon=True)

    def open(self, desk: Desk) -> None:
        """At any time, from any thread."""
        self._desk = desk

    def start(self) -> None:
        self._waiting.start()

    def stop(self, timeout_s: float) -> None:
        with self._wake:
            self._stopping = True
            self._held.clear()
            self._wake.notify()
        self._pool.shutdown(wait=False, cancel_futures=True)
        if self._waiting.is_alive():
            self._waiting.join(timeout_s)

    @property
    def held(self) -> int:
        """How many answers are held back now."""
        return len(self._held)

    def hear(self, message: Mapping[str, Any], reply: Reply) -> None:
        """A question of a receiver; `reply` may block. Does not block itself; any thread."""
        held_s = min(self._hold_back_s, message["within_s"] * _SHARE_HELD)
        question = Question(
            message["ask"],
            message["path"],
            message["payload"],
            self._clock.monotonic_s() + held_s,
            reply,
        )
        with self._wake:
            if not self._stopping:
                self._pool.submit(self._answer, question)

    def applied(self) -> None:
        """Storage has changed. Does not block; any thread."""
        with self._wake:
            self._applied = True
            self._wake.notify()

    def forget(self, reply: Reply) -> None:
        """The receiver that is answered by `reply` is gone."""
        with self._wake:
            self._held = [each for each in self._held if each[0].reply != reply]
        if self._desk is not None:
            self._desk.forget()

    def _answer(self, question: Question) -> None:
        """Or holds it back; never raises: nobody would hear it."""
        changes = self._changes
        try:
            outcome = self._outcome(question)
        except PermanentError as error:
            _refuse(question, "INVALID_ARGUMENT", str(error))
        except RetryableError as error:
            _refuse(question, "UNAVAILABLE", str(error))
        except Exception:
            if not self._broken:
                log.exception("%s cannot be answered", question.path)
            self._broken = True
            _refuse(question, "INTERNAL", "internal error")
        else:
            self._broken = False
            if outcome.keep:
                self._keep(question, outcome)
            elif outcome.complete or not self._hold(question, outcome, changes):
                _tell(question, outcome)

    def _outcome(self, question: Question) -> Outcome:
        desk = self._desk
        if desk is None:
            raise RetryableError("the OAP is starting, try again")
        handler = desk.handlers.get(question.path)
        if handler is None:
            raise RetryableError(f"{question.path} is not answered here")
        return handler(b64decode(question.payload))

    def _keep(self, question: Question, outcome: Outcome) -> None:
        for inventory in outcome.keep:
            self._registry.inc(REGISTRY_RECORDS, scope=inventory.scope.name.lower())
        records = [(KIND, _text(record(inventory))) for inventory in outcome.keep]
        question.reply({"answer": question.number, "keep": records})

    def _hold(self, question: Question, outcome: Outcome, changes: int) -> bool:
        """False when it is to be answered as it is."""
        with self._wake:
            late = self._clock.monotonic_s() >= question.until_s
            if late or self._stopping or len(self._held) >= HELD_MAX:
                return False
            self._held.append((question, outcome))
            # What changed while the outcome was made is not in it.
            self._applied = self._applied or changes != self._changes
            self._wake.notify()
        return True

    def _keep_waiting(self) -> None:
        while not self._stopping:
            with self._wake:
                if not self._applied:
                    self._wake.wait(self._pause_s())
                due = self._clock.monotonic_s() - self._looked_s >= self._refresh_s
                applied, self._applied = self._applied or due, False
            if applied and not self._stopping:
                self._try_again()
            self._release_late()

    def _pause_s(self) -> float:
        if self._stopping:
            return 0.0
        next_s = self._looked_s + self._refresh_s
        first_s = min((question.until_s for question, _ in self._held), default=next_s)
        return max(0.0, min(first_s, next_s) - self._clock.monotonic_s())

    def _try_again(self) -> None:
        self._looked_s = self._clock.monotonic_s()
        try:
            if self._desk is not None:
                self._desk.changed()
            self._unreadable = False
        except Exception:
            if not self._unreadable:
                log.exception("storage cannot be asked for new ids; who waits for one asks again")
            self._unreadable = True
        with self._wake:
            self._changes += 1
            held, self._held = self._held, []
        for question, _ in held:
            self._answer(question)

    def _release_late(self) -> None:
        now_s = self._clock.monotonic_s()
        with self._wake:
            late = [each for each in self._held if each[0].until_s <= now_s]
            self._held = [each for each in self._held if each[0].until_s > now_s]
        for question, outcome in late:
            _tell(question, outcome)


def _tell(question: Question, outcome: Outcome) -> None:
    question.reply({"answer": question.number, "payload": _text(outcome.payload)})


def _refuse(question: Question, status: str, message: str) -> None:
    question.reply({"answer": question.number, "status": status, "message": message})


def _text(payload: bytes) -> str:
    return b64encode(payload).decode("ascii")
