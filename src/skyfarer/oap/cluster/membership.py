"""The coordinator contract over any registry that forgets whoever is silent for too long.

One thread asks the registry in rounds: three within the time after which it would forget us, and
one at once when it says that something changed. A round makes or renews the registration and reads
the list. After a failure rounds come sooner, then ever later, for as long as the program lives.

A process cannot see that it was stopped; it can see the time. A registration is believed in until
the registry's timeout after the moment at which the last successful round *began*: the registry
heard from us no earlier than that. So whoever asks for the list right after a long pause finds this
node missing from it, before any thread has noticed anything.

A second registration of the own address is that of an earlier life, which the registry forgets
soon after its timeout. One that is there for longer is another node that was given the same
address, and is shown as such.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random
from threading import Condition, Event, Thread
from typing import Final, Protocol

from skyfarer.base.backoff import Backoff, BackoffSettings
from skyfarer.base.clock import Clock, SystemClock
from skyfarer.base.errors import PermanentError, RetryableError, SkyfarerError
from skyfarer.oap.core.cluster import Node, Standing

log = logging.getLogger(__name__)

NODES_MAX: Final = 1_000
ROUNDS_IN_TIMEOUT: Final = 3
TWIN_TIMEOUTS: Final = 2
CLOSE_TIMEOUT_S: Final = 5.0
SETTLE_S: Final = 0.05
"""Between two rounds at least: several changes at once are one, and a watch that ends whenever it
is opened does not make rounds chase each other."""
NEVER_S: Final = float("-inf")

Told = Callable[[list[Node]], None]


@dataclass(frozen=True)
class Found:
    """What a round brought: all registrations, and whether the own one was not there before."""

    nodes: tuple[Node, ...]
    registered_anew: bool = False


class Registrar(Protocol):
    """One kind of registry. Calls come from one thread at a time, may block for seconds, and raise
    SkyfarerError; the next call then begins anew. `timeout_s` is how long a registration outlives
    its last renewal at least, as the last round has found; `where` names the registry in a
    sentence."""

    kind: str
    where: str
    timeout_s: float

    def open(self, changed: Callable[[], None]) -> None:
        """Connects. `changed` may be called from any thread, and too often."""

    def round(self, own: Node | None) -> Found:
        """Registers `own`, if there is one, or keeps it registered; reads all there are."""

    def close(self, timeout_s: float) -> None:
        """Takes the registration back, as far as the registry can be reached."""


@dataclass(frozen=True)
class RetrySettings:
    """`attempts_max` is of the start alone: a node that runs never gives up."""

    base_s: float = 1.0
    attempts_max: int = 4


class Membership:
    def __init__(
        self,
        registrar: Registrar,
        retries: RetrySettings | None = None,
        clock: Clock | None = None,
        random: Random | None = None,
    ) -> None:
        self._registrar = registrar
        self._retries = retries or RetrySettings()
        self._clock = clock or SystemClock()
        self._random = random or Random()
        self._wake = Event()
        self._stopping = Event()
        self._thread: Thread | None = None
        self._changed = Condition()  # guards all that follows
        self._own: Node | None = None
        self._heard: tuple[Node, ...] = ()
        self._believed_until_s = NEVER_S
        self._standing = Standing(registrar.kind, reachable=False)
        self._refused = False
        self._twin_since_s: float | None = None
        self._has_twin = False
        self._watchers: list[Told] = []
        self._told: list[tuple[str, bool]] = []

    def start(self) -> None:
        backoff = self._backoff()
        for attempt in range(1, self._retries.attempts_max + 1):
            try:
                self._registrar.open(self._wake.set)
                self._round()
                break
            except SkyfarerError as error:
                if attempt == self._retries.attempts_max or isinstance(error, PermanentError):
                    self._registrar.close(0)
                    raise
                log.warning("%s; attempt %s", error, attempt)
                self._stopping.wait(backoff.next_s())
        self._thread = Thread(target=self._run, name=self._registrar.kind, daemon=True)
        self._thread.start()

    def stop(self, timeout_s: float) -> None:
        thread, self._thread = self._thread, None
        self._stopping.set()
        self._wake.set()
        if thread is None:
            return
        thread.join(timeout_s)
        if thread.is_alive():
            log.warning(
                "%s does not answer: the registration there ends by itself, within %g s",
                *(self._registrar.where, self._registrar.timeout_s),
            )

    def register(self, node: Node) -> None:
        with self._changed:
            if self._own is not None and self._own != node:
                raise PermanentError(f"{self._own.name} is registered, {node.name} cannot be too")
            self._own, self._refused = replace(node, is_self=True), False
            self._wake.set()
            self._changed.wait_for(
                lambda: self._is_known() or self._refused, self._registrar.timeout_s
            )
            if self._is_known():
                return
            kind = PermanentError if self._refused else RetryableError
            trouble = self._standing.trouble or "there was no answer"
        raise kind(f"{node.name} could not be registered: {trouble}")

    def nodes(self) -> list[Node]:
        with self._changed:
            if self._own is None:
                return list(self._heard)
            others = [node for node in self._heard if node != self._own]
            if self._has_twin:
                others.append(replace(self._own, is_self=False))
            return [self._own, *others] if self._is_known() else others

    def watch(self, told: Told) -> None:
        with self._changed:
            self._watchers.append(told)

    def standing(self) -> Standing:
        with self._changed:
            return self._standing

    def _is_known(self) -> bool:
        return self._clock.monotonic_s() < self._believed_until_s

    def _run(self) -> None:
        backoff = self._backoff()
        while not self._stopping.is_set():
            self._tell()
            trouble = self._attempt()
            if not trouble:
                backoff.reset()
            self._tell()
            self._wake.wait(backoff.next_s() if trouble else self._pause_s())
            self._stopping.wait(SETTLE_S)
            self._wake.clear()
        with self._changed:
            self._believed_until_s = NEVER_S
        self._registrar.close(CLOSE_TIMEOUT_S)

    def _attempt(self) -> str:
        """The sentence of a failure, which is logged when it is another than the last one."""
        try:
            self._round()
            return ""
        except SkyfarerError as error:
            refused, trouble = isinstance(error, PermanentError), str(error)
        except Exception as error:  # a defect of ours: the next round may well go through
            log.exception("a round failed")
            refused, trouble = False, f"{self._registrar.where}: {error!r}"
        with self._changed:
            known, self._refused = self._standing.trouble, refused
            self._standing = replace(self._standing, reachable=False, trouble=trouble)
            self._changed.notify_all()
        if known != trouble:
            log.warning("%s; the list of nodes may be out of date", trouble)
        return trouble

    def _round(self) -> None:
        began_s, own = self._clock.monotonic_s(), self._own
        found = self._registrar.round(own)
        with self._changed:
            before, was_known = self._standing, self._believed_until_s > NEVER_S
            anew = found.registered_anew and was_known
            if own is not None:
                self._believed_until_s = began_s + self._registrar.timeout_s
            self._look_for_twin(found.nodes.count(own) > 1 if own else False, began_s)
            self._heard = found.nodes[:NODES_MAX]
            self._standing = Standing(before.kind, True, before.renewals + anew)
            self._changed.notify_all()
        if anew:
            log.warning("%s had lost this node, which is registered anew", self._registrar.where)
        elif not before.reachable:
            log.info("%s answers", self._registrar.where)
        if len(found.nodes) > NODES_MAX:
            log.warning("%s has %s nodes, too many", self._registrar.where, len(found.nodes))

    def _look_for_twin(self, seen: bool, now_s: float) -> None:
        if not seen:
            self._twin_since_s = None
        elif self._twin_since_s is None:
            self._twin_since_s = now_s
        since_s = now_s if self._twin_since_s is None else self._twin_since_s
        self._has_twin = now_s - since_s > TWIN_TIMEOUTS * self._registrar.timeout_s

    def _tell(self) -> None:
        nodes = self.nodes()
        shown = sorted((node.name, node.is_self) for node in nodes)
        with self._changed:
            if shown == self._told:
                return
            self._told, watchers = shown, list(self._watchers)
        log.info("nodes: %s", ", ".join(name for name, _ in shown) or "none")
        for told in watchers:
            try:
                told(list(nodes))
            except Exception:
                log.exception("a watcher of the nodes failed")

    def _backoff(self) -> Backoff:
        initial_s = min(self._retries.base_s, self._pause_s())
        return Backoff(BackoffSettings(initial_s, self._pause_s()), self._random)

    def _pause_s(self) -> float:
        return self._registrar.timeout_s / ROUNDS_IN_TIMEOUT
