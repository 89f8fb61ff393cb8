"""The timer of every node: looks at the boundaries, and deletes when it is this node's turn.

One run:

    look       list the tables and plan by both clocks; nothing expired: done
    turn       this node is in the list of nodes, and first, or it had the lease last, or nothing
               goes for too long (`turns`); asked before each table
    lease      storage gives it to one at a time; renewed before each table
    drop       model by model, oldest day first; what fails is counted, and the next model follows
    look again on every node, whatever happened: ages, and the alarm

Nothing of it is trusted when it counts: `DayTables.drop` checks the lease in the transaction of
the drop, so a node that was paused anywhere above is refused there.
"""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import timedelta
from itertools import groupby
from typing import Final

from skyfarer.base.clock import Clock
from skyfarer.base.errors import SkyfarerError
from skyfarer.oap.core.cluster import Coordinator
from skyfarer.oap.core.expiry import DayTable, DayTables, Lease, LeaseLostError, Retention
from skyfarer.oap.ttl.policy import CLOCKS_DIFFER_MS_MAX, ClockError, Plan, plan
from skyfarer.oap.ttl.sight import Sight
from skyfarer.oap.ttl.turns import not_my_turn
from skyfarer.telemetry import table
from skyfarer.telemetry.metrics import Registry

LEASE: Final = "ttl"
LEASE_S: Final = 50.0
"""More than a drop may wait (`DROP_WAITS_S_MAX`), which else would be refused for it, and less than
the shortest period: whoever died with the lease is followed in the next one."""
FAILURES_MAX: Final = 2
"""Of one model in a run."""

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class KeeperSettings:
    """`holder` names this process in the lease, which no other one ever does, and `lease_s` is how
    long it lasts. Without `deletes` the timer looks, and nothing more."""

    retention: Retention
    period_s: float
    holder: str
    deletes: bool = True
    lease_s: float = LEASE_S


@dataclass(frozen=True)
class Run:
    """What came of one run. `why`: nothing, or not all, was deleted; `failed` are tables with what
    went wrong; `left` are expired and still there."""

    outcome: str
    dropped: tuple[DayTable, ...] = ()
    failed: tuple[tuple[DayTable, str], ...] = ()
    why: str = ""
    left: int = 0


@dataclass
class _Done:
    """What a run has done so far, whatever ends it."""

    dropped: list[DayTable] = field(default_factory=list)
    failed: list[tuple[DayTable, str]] = field(default_factory=list)

    def run(self, outcome: str, why: str = "") -> Run:
        return Run(outcome, tuple(self.dropped), tuple(self.failed), why)


class Keeper:
    """`run` and `planned` from any thread; runs follow each other. They block on storage, and raise
    nothing but what is our own mistake. `stop` ends a run between two tables."""

    def __init__(
        self,
        settings: KeeperSettings,
        tables: DayTables,
        coordinator: Coordinator,
        sight: Sight,
        registry: Registry,
        clock: Clock,
    ) -> None:
        self._settings = settings
        self._tables = tables
        self._coordinator = coordinator
        self._sight = sight
        self._registry = registry
        self._clock = clock
        self._running = threading.Lock()
        self._stopping = threading.Event()
        self._looked_at = self._moment()
        self._thread = threading.Thread(target=self._keep, name="ttl", daemon=True)

    def start(self) -> None:
        self._sight.observe(alarm=self._settings.deletes)
        self._thread.start()

    def stop(self, timeout_s: float) -> None:
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(timeout_s)

    def planned(self, force: bool = False) -> Plan:
        """What the next run would find. SkyfarerError when a clock forbids one."""
        moved_ms = self._moment() - self._looked_at
        if moved_ms > CLOCKS_DIFFER_MS_MAX:
            raise ClockError(
                f"this node's clock was set ahead by {timedelta(seconds=moved_ms // 1000)} since"
                " the last run: nothing is deleted until the next one, in case it is set back"
            )
        local_ms, storage_ms = self._clock.now_ms(), self._tables.now_ms()
        retention = self._settings.retention
        return plan(self._tables.day_tables(), retention, local_ms, storage_ms, force)

    def not_my_turn(self) -> str:
        """Why another node would delete, in a sentence; empty when it is this one."""
        last = self._tables.last_lease(LEASE)
        had_lease_last = last is not None and last.holder == self._settings.holder
        overdue = self._sight.periods_overdue()
        return not_my_turn(self._coordinator.nodes(), overdue, had_lease_last)

    def run(self, force: bool = False) -> Run:
        """Once, under all the rules. `force` lifts the bound of one run, and that data must confirm
        the clocks (`policy`); nothing else."""
        with self._running:
            self._sight.began()
            done = _Done()
            try:
                run = self._run(force, done)
            except ClockError as refused:
                run = done.run("refused", str(refused))
            except Exception as error:
                if not isinstance(error, SkyfarerError):
                    log.exception("expired data cannot be deleted")
                run = done.run("failed", str(error))
            self._looked_at = self._moment()
            run = self._looked(run)
        self._registry.inc(table.TTL_RUNS, outcome=run.outcome)
        self._say(run)
        return run

    def _run(self, force: bool, done: _Done) -> Run:
        found = self.planned(force)
        self._sight.saw(found)
        if not found.going:
            return Run("clean")
        if why := self.not_my_turn():
            return Run("waited", why=why)
        return self._delete(found, done)

    def _delete(self, found: Plan, done: _Done) -> Run:
        """Of a model that fails twice the rest is left, and the next model follows."""
        failures, epoch, why, settings = Counter[str](), 0, "", self._settings
        for one in found.going:
            if failures[one.model] == FAILURES_MAX:
                continue
            lease = self._tables.take_lease(LEASE, settings.holder, settings.lease_s)
            if why := self._left_to(lease, epoch, one):
                break
            assert lease is not None
            epoch = lease.epoch
            try:
                failures[one.model] += not self._dropped(lease, one, done)
            except LeaseLostError as lost:
                why = f"{lost}; {_from(one)}"
                break
        return done.run("failed" if done.failed else "waited" if why else "dropped", why)

    def _left_to(self, lease: Lease | None, epoch: int, one: DayTable) -> str:
        """Why this node must not go on with that table; empty when it may."""
        if self._stopping.is_set():
            return f"this node stops; {_from(one)}"
        if lease is None or epoch not in (0, lease.epoch):
            return f"another node holds the lease, or has held it since; {_from(one)} to it"
        why = self.not_my_turn()
        return f"{why}; {_from(one)}" if why else ""

    def _dropped(self, lease: Lease, one: DayTable, done: _Done) -> bool:
        """Whether nothing went wrong. LeaseLostError is no fault of that table's."""
        try:
            gone = self._tables.drop(lease, one)
        except LeaseLostError:
            raise
        except Exception as error:
            log.warning("%s of %d cannot be dropped", one.model, one.day, exc_info=True)
            self._registry.inc(table.TTL_FAILURES, model=one.model)
            done.failed.append((one, f"{type(error).__name__}: {error}"))
            return False
        if gone:
            log.info("dropped %s of %d, which has expired", one.model, one.day)
            self._registry.inc(table.TTL_DROPPED, kept=one.kept.value)
            done.dropped.append(one)
        return True

    def _looked(self, run: Run) -> Run:
        """Looks again, so that what is seen is what is there; a failure was told before."""
        found = self._seen()
        self._sight.ended(run.why or "; ".join(problem for _, problem in run.failed))
        return replace(run, left=found.expired if found is not None else run.left)

    def _look(self) -> None:
        """A run of a node that deletes nothing."""
        with self._running:
            self._seen()
            self._looked_at = self._moment()

    def _seen(self) -> Plan | None:
        """What there is; None, and a line in the log, when it cannot be told."""
        try:
            found = self.planned()
        except ClockError as error:
            log.warning("it cannot be told which data has expired: %s", error)
        except Exception:
            log.warning("it cannot be seen which data has expired", exc_info=True)
        else:
            self._sight.saw(found)
            return found
        return None

    def _say(self, run: Run) -> None:
        if run.outcome in ("refused", "failed"):
            named = ", ".join(f"{one.model} of {one.day}" for one, _ in run.failed)
            log.warning("expired data is not all deleted: %s", run.why or f"failed: {named}")
        elif run.outcome == "waited":
            log.info("the remove stage is skipped: %s", run.why)
        elif run.dropped:
            log.info("%d expired tables dropped, %d left", len(run.dropped), run.left)

    def _keep(self) -> None:
        self._foretell()
        while not self._stopping.wait(self._settings.period_s):
            try:
                self.run() if self._settings.deletes else self._look()
            except Exception:
                log.exception("the keeper of expired data failed; it goes on")

    def _foretell(self) -> None:
        """What the first run will drop, a period before it: time to stop a mistake."""
        found = self._seen()
        going = found.going if found is not None and self._settings.deletes else ()
        for model, days in groupby(going, lambda one: one.model):
            log.info("expired, and dropped next: %s of %s", model, _span(days))

    def _moment(self) -> int:
        """Stays the same as long as nobody sets the clock."""
        return self._clock.now_ms() - int(self._clock.monotonic_s() * 1000)


def _from(one: DayTable) -> str:
    return f"{one.model} of {one.day} and what follows is left"


def _span(tables: Iterable[DayTable]) -> str:
    days = [table.day for table in tables]
    return f"{days[0]} to {days[-1]}, {len(days)} days" if len(days) > 1 else str(days[0])
