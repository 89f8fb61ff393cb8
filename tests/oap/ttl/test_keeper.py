"""One keeper: its runs, what it shows of them, and what it does when something is wrong."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator

import pytest

from oap.ttl.cluster_of import DAYS, EXPIRED, LIVE, NOW, PERIOD_S, Told
from skyfarer.base.clock import SystemClock
from skyfarer.oap.core.cluster import Node
from skyfarer.oap.core.expiry import DayTable, Kept, Lease
from skyfarer.oap.core.time_bucket import days_before
from skyfarer.oap.ttl.keeper import LEASE, LEASE_S, Keeper, KeeperSettings, Run
from skyfarer.oap.ttl.sight import ALARM_PERIODS, Sight
from skyfarer.telemetry import table
from skyfarer.telemetry.health import Health
from skyfarer.telemetry.metrics import Registry
from skyfarer.testing.clock import HandClock
from skyfarer.testing.day_tables import MemoryTables
from skyfarer.testing.programs import eventually

DAY_MS = 86_400_000
WAIT_S = 240.0
OWN = Node("10.0.0.1", 11800, is_self=True)
OTHER = Node("10.0.0.0", 11800)


def old(model: str, *days: int) -> list[DayTable]:
    return [DayTable(model, day, Kept.RECORD) for day in days or (EXPIRED,)]


class Rig:
    """A keeper over tables in memory; the storage's clock is the node's unless told otherwise."""

    def __init__(self, *tables: DayTable, own_clock: bool = False, ahead_ms: int = 0) -> None:
        self.clock = HandClock(NOW + ahead_ms)
        self.tables = Tables(HandClock(NOW) if own_clock else self.clock, [*LIVE, *tables])
        self.coordinator = Told([OWN])
        self.registry, self.health = Registry(table.OAP), Health()
        self.health.started()
        sight = Sight(DAYS, PERIOD_S, self.registry, self.health, self.clock)
        sight.observe()
        self.keeper = Keeper(
            KeeperSettings(DAYS, PERIOD_S, "node-a"),
            *(self.tables, self.coordinator, sight, self.registry, self.clock),
        )

    def period(self) -> Run:
        self.clock.seconds += PERIOD_S
        return self.keeper.run()

    def shown(self, name: str) -> float:
        lines = self.registry.render().splitlines()
        return float(next(line for line in lines if line.startswith(name)).split()[-1])

    def runs(self, outcome: str) -> float:
        return self.registry.value(table.TTL_RUNS, outcome=outcome)


class Tables(MemoryTables):
    """It may be away, and something may happen just before or after a drop."""

    away = False

    def before_drop(self, drop: DayTable) -> None:
        return

    def after_drop(self, drop: DayTable) -> None:
        return

    def day_tables(self) -> list[DayTable]:
        self._be_there()
        return super().day_tables()

    def take_lease(self, name: str, holder: str, seconds: float) -> Lease | None:
        self._be_there()
        return super().take_lease(name, holder, seconds)

    def drop(self, lease: Lease, table: DayTable) -> bool:
        self.before_drop(table)
        there = super().drop(lease, table)
        self.after_drop(table)
        return there

    def _be_there(self) -> None:
        if self.away:
            raise ConnectionError("the storage is away")


def test_what_has_expired_goes_and_the_rest_stays() -> None:
    gone = [*old("log"), *old("segment", 20261110, 20261111)]
    rig = Rig(*gone)
    run = rig.period()
    assert run == Run("dropped", tuple(gone))
    assert rig.tables.present == set(LIVE)
    assert rig.period() == Run("clean")
    assert rig.registry.value(table.TTL_DROPPED, kept="record") == 3
    assert (rig.runs("dropped"), rig.runs("clean")) == (1, 1)


def test_every_node_shows_its_ages_and_what_is_left() -> None:
    rig = Rig(*old("log"))
    rig.coordinator.listed = [OTHER, OWN]
    rig.period()
    assert rig.shown("ttl_last_success_age_seconds ") == PERIOD_S
    assert rig.shown("ttl_expired_tables ") == 1
    day_s = 86_400
    age = rig.shown('oldest_data_age_seconds{kept="record"}')
    assert age == 14 * day_s + day_s / 2 + PERIOD_S
    rig.tables.present -= set(old("log"))
    rig.period()
    assert rig.shown("ttl_last_success_age_seconds ") == 0
    assert rig.shown("ttl_expired_tables ") == 0
    assert rig.shown('oldest_data_age_seconds{kept="record"}') == 2.5 * day_s + 2 * PERIOD_S


@pytest.mark.parametrize(
    ("nodes", "why"),
    [
        ([], "the list of nodes is empty"),
        ([OTHER], "this node is not among the 1 that are listed"),
    ],
)
def test_t02_nobody_deletes_and_every_node_says_so_within_three_periods(
    nodes: list[Node], why: str
) -> None:
    rig = Rig(*old("log"))
    rig.coordinator.listed = nodes
    scores = []
    for _ in range(ALARM_PERIODS):
        run = rig.period()
        assert (run.outcome, run.dropped, run.left) == ("waited", (), 1)
        scores.append(rig.health.score())
    assert scores == [0, 0, 1]
    assert f"ttl: nothing expired was deleted for 0:03:00: 1 expired tables; {why}" in (
        rig.health.details()
    )
    rig.coordinator.listed = [OWN]
    assert rig.period().dropped == tuple(old("log"))
    assert (rig.health.score(), rig.health.details()) == (0, "")


def test_t02_a_node_that_does_not_delete_sees_that_another_does() -> None:
    """Also while what a long outage has left goes by halves."""
    rig = Rig(*old("log", *range(20261001, 20261031)))
    rig.coordinator.listed = [OTHER, OWN]
    while left := sorted(rig.tables.present - set(LIVE), key=lambda one: one.day):
        rig.tables.present -= set(left[: max(1, len(left) // 2)])
        assert rig.period().outcome in ("waited", "clean")
        assert rig.health.score() == 0
        assert rig.shown("ttl_last_success_age_seconds ") <= PERIOD_S


def test_t02_the_second_node_steps_in_when_the_first_does_nothing() -> None:
    rig = Rig(*old("log"))
    rig.coordinator.listed = [OTHER, OWN]
    assert rig.period().outcome == "waited"
    assert rig.period().outcome == "dropped"
    assert rig.health.score() == 0


def test_t03_a_lease_that_another_node_holds_is_respected() -> None:
    rig = Rig(*old("log"))
    assert rig.tables.take_lease(LEASE, "node-b", PERIOD_S + 1)
    run = rig.period()
    assert (run.outcome, run.dropped) == ("waited", ())
    assert "another node holds the lease" in run.why
    assert rig.period().outcome == "dropped"


def test_c04_a_node_that_is_paused_before_a_drop_is_refused_and_leaves_the_rest() -> None:
    rig = Rig(*old("log"), *old("segment"))

    def pause(_: DayTable) -> None:
        rig.tables.before_drop = lambda _: None  # type: ignore[method-assign]
        rig.clock.seconds += LEASE_S + 1
        assert rig.tables.take_lease(LEASE, "node-b", PERIOD_S)

    rig.tables.before_drop = pause  # type: ignore[method-assign]
    run = rig.period()
    assert (run.outcome, run.failed) == ("waited", ())
    assert "no longer the newest; log of 20261101 and what follows is left" in run.why
    assert rig.tables.dropped == []
    assert rig.registry.value(table.TTL_FAILURES, model="log") == 0, "no fault of the model's"


def test_c05_a_node_that_has_lost_the_lease_between_two_models_stops_there() -> None:
    """It was another's meanwhile, and is free again: what was planned is of an older day."""
    rig = Rig(*old("log"), *old("segment"))

    def meanwhile(_: DayTable) -> None:
        rig.clock.seconds += LEASE_S + 1
        assert rig.tables.take_lease(LEASE, "node-b", 1)
        rig.clock.seconds += 2

    rig.tables.after_drop = meanwhile  # type: ignore[method-assign]
    run = rig.period()
    assert (run.failed, run.dropped, run.left) == ((), tuple(old("log")), 1)
    assert "has held it since; segment of 20261101 and what follows is left to it" in run.why


def test_c05_a_node_that_is_no_longer_the_first_goes_on_until_the_first_has_deleted() -> None:
    rig = Rig(*old("event"), *old("log"))

    def another_comes(_: DayTable) -> None:
        rig.coordinator.listed = [OTHER, OWN]

    rig.tables.after_drop = another_comes  # type: ignore[method-assign]
    for model in ("profile", "segment"):
        run = rig.period()
        assert (run.outcome, run.left) == ("dropped", 0)
        rig.tables.present.update(old(model))
    rig.clock.seconds += LEASE_S + 1
    assert rig.tables.take_lease(LEASE, "node-b", LEASE_S)
    run = rig.period()
    assert (run.outcome, run.dropped) == ("waited", ())
    assert "the first node is" in run.why


@pytest.mark.parametrize("listed", [[], [OTHER]])
def test_c05_a_node_that_is_no_longer_listed_stops_before_the_next_table(
    listed: list[Node],
) -> None:
    """The lease is still its own: it is cut off from the coordinator, and not from the storage."""
    rig = Rig(*old("event"), *old("log"))

    def cut_off(_: DayTable) -> None:
        rig.coordinator.listed = listed

    rig.tables.after_drop = cut_off  # type: ignore[method-assign]
    run = rig.period()
    assert (run.outcome, run.dropped, run.left) == ("waited", tuple(old("event")), 1)
    assert run.why.endswith("; log of 20261101 and what follows is left")


def test_t01_what_was_dropped_before_the_storage_failed_is_told() -> None:
    rig = Rig(*old("event"), *old("log"))

    def fail(_: DayTable) -> None:
        rig.tables.away = True

    rig.tables.after_drop = fail  # type: ignore[method-assign]
    run = rig.period()
    assert (run.outcome, run.dropped) == ("failed", tuple(old("event")))
    assert run.why == "the storage is away"


@pytest.mark.parametrize("ahead_ms", [3_600_000, DAY_MS, 365 * DAY_MS])
def test_t05_a_clock_that_is_set_ahead_and_back_costs_nothing(ahead_ms: int) -> None:
    """Node and storage have one clock, as with the embedded storage: no comparison helps."""
    rig = Rig()
    rig.clock.set_ahead(ahead_ms)
    refused = rig.period()
    assert refused.outcome == "refused"
    assert "clock was set ahead by" in refused.why
    rig.clock.set_ahead(-ahead_ms)
    assert rig.period().outcome == "clean"
    assert rig.tables.present == set(LIVE)


@pytest.mark.parametrize("ahead_ms", [3_600_000, 13 * 3_600_000, DAY_MS, 365 * DAY_MS])
@pytest.mark.parametrize("restarted", [False, True])
def test_t05_a_clock_that_stays_ahead_costs_nothing(ahead_ms: int, restarted: bool) -> None:
    """Not even by a process that was started with it, and has seen no leap: no data is of the day
    that it says."""
    rig = Rig(ahead_ms=ahead_ms if restarted else 0)
    rig.clock.set_ahead(0 if restarted else ahead_ms)
    for _ in range(5):
        rig.period()
    assert rig.tables.present == set(LIVE)
    if ahead_ms > 7 * DAY_MS:
        assert "there is nothing newer than 20261115, and by the clocks it is 20271115" in (
            rig.health.details()
        )


def test_t05_data_of_the_day_that_the_clock_says_confirms_it() -> None:
    rig = Rig()
    rig.clock.set_ahead(DAY_MS)
    assert [rig.period().outcome for _ in range(2)] == ["refused", "clean"]
    rig.tables.present.add(DayTable("log", 20261116, Kept.RECORD))
    assert rig.period().dropped == tuple(LIVE[:1])


def test_t05_where_all_but_today_would_go_it_waits_for_the_next_day_and_says_so() -> None:
    """As after a month without a process, or with a clock that all senders have set ahead, too."""
    rig = Rig(ahead_ms=30 * DAY_MS)
    rig.tables.present.add(DayTable("log", 20261215, Kept.RECORD))
    for _ in range(ALARM_PERIODS):
        assert rig.period().outcome == "refused"
    assert "all data but that of 20261215, which is today by the clocks, would go" in (
        rig.health.details()
    )
    rig.clock.seconds += DAY_MS / 1000
    assert rig.period().dropped == tuple(LIVE[:2])
    assert rig.period().dropped == tuple(LIVE[2:])
    assert rig.health.score() == 0


def test_t05_what_nothing_newer_has_followed_goes_by_force_alone() -> None:
    rig = Rig(ahead_ms=30 * DAY_MS)
    assert "by ttl --now --force" in rig.period().why
    assert rig.keeper.run(force=True).dropped == tuple(LIVE)
    assert rig.period().outcome == "clean"


@pytest.mark.parametrize("ahead_ms", [3_600_000, -3_600_000, DAY_MS, -DAY_MS])
def test_t05_clocks_that_differ_are_refused_until_the_alarm_says_so(ahead_ms: int) -> None:
    rig = Rig(*old("log"), own_clock=True)
    rig.tables.clock.set_ahead(ahead_ms)  # type: ignore[attr-defined]
    outcomes = []
    for _ in range(ALARM_PERIODS):
        rig.tables.clock.seconds += PERIOD_S  # type: ignore[attr-defined]
        outcomes.append(rig.period().outcome)
    assert outcomes == ["refused"] * ALARM_PERIODS
    assert "unknown what is expired; this node's clock is" in rig.health.details()
    assert rig.tables.dropped == []


def test_t05_the_bound_of_a_run_is_lifted_by_force_alone() -> None:
    tables = old("log", *range(20261001, 20261011))
    rig = Rig(*tables)
    assert rig.period().dropped == tuple(tables[:5])
    assert rig.keeper.planned().going == tuple(tables[5:7])
    assert rig.keeper.planned(force=True).going == tuple(tables[5:])
    assert rig.keeper.run(force=True) == Run("dropped", tuple(tables[5:]))


def test_t02_a_run_that_hangs_is_told_of_when_health_is_asked_for() -> None:
    rig, hangs, ends = Rig(*old("log")), threading.Event(), threading.Event()

    def hang(_: DayTable) -> None:
        hangs.set()
        assert ends.wait(WAIT_S)

    rig.tables.before_drop = hang  # type: ignore[method-assign]
    run = threading.Thread(target=rig.keeper.run)
    run.start()
    try:
        assert hangs.wait(WAIT_S)
        assert rig.health.score() == 0
        rig.clock.seconds += ALARM_PERIODS * PERIOD_S
        assert rig.health.score() == 1
        assert "1 expired tables; a run has not ended for 0:03:00" in rig.health.details()
    finally:
        ends.set()
        run.join(WAIT_S)


def test_t08_one_model_that_fails_stops_no_other_and_is_named() -> None:
    days = range(20261101, 20261109)
    rig = Rig(*old("event"), *old("log", *days), *old("segment"))
    rig.tables.broken = {"log"}
    run = rig.period()
    assert run.dropped == (*old("event"), *old("segment"))
    said = "PermanentError: log is broken"
    assert run.failed == tuple((one, said) for one in old("log", *days[:2]))
    assert run.left == 8
    assert rig.registry.value(table.TTL_FAILURES, model="log") == 2
    for _ in range(ALARM_PERIODS):
        rig.period()
    assert f"8 expired tables; {said}" in rig.health.details()
    rig.tables.broken = set()
    while rig.period().left:
        continue
    assert rig.tables.present == set(LIVE)
    assert rig.health.score() == 0


def test_t08_a_day_that_cannot_be_dropped_does_not_keep_the_days_after_it() -> None:
    rig = Rig(*old("log", 20261101, 20261102))

    def fail(one: DayTable) -> None:
        if one.day == 20261101:
            raise OSError("its index is missing")

    rig.tables.before_drop = fail  # type: ignore[method-assign]
    run = rig.period()
    assert run.dropped == tuple(old("log", 20261102))
    assert run.failed == ((old("log")[0], "OSError: its index is missing"),)


def test_t08_a_storage_that_is_away_is_waited_for() -> None:
    rig = Rig(*old("log"))
    rig.tables.away = True
    outcomes = [rig.period().outcome for _ in range(ALARM_PERIODS)]
    assert outcomes == ["failed"] * ALARM_PERIODS
    assert "the storage is away" in rig.health.details()
    rig.tables.away = False
    assert rig.period().dropped == tuple(old("log"))
    assert rig.health.score() == 0


def test_a_node_that_stops_leaves_what_it_has_not_begun() -> None:
    rig = Rig(*old("event"), *old("log"))
    rig.tables.before_drop = lambda _: rig.keeper.stop(0)  # type: ignore[method-assign]
    run = rig.period()
    assert run.dropped == tuple(old("event"))
    assert run.why == "this node stops; log of 20261101 and what follows is left"


@pytest.fixture
def started() -> Iterator[tuple[Keeper, MemoryTables]]:
    clock, registry = SystemClock(), Registry()
    today = DAYS.today(clock.now_ms())
    live = [DayTable("segment", day, Kept.RECORD) for day in (days_before(today, 1), today)]
    tables = MemoryTables(clock, [*live, *old("log", 20200101, 20200102, 20200103)])
    sight = Sight(DAYS, 0.05, registry, Health(), clock)
    settings = KeeperSettings(DAYS, 0.05, "node-a")
    keeper = Keeper(settings, tables, Told([OWN]), sight, registry, clock)
    yield keeper, tables
    keeper.stop(30)


def test_t06_the_timer_says_what_it_will_drop_before_it_does(
    started: tuple[Keeper, MemoryTables], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    keeper, tables = started
    keeper.start()
    eventually(lambda: len(tables.present) == 2, WAIT_S, "all three are gone")
    said = [record.getMessage() for record in caplog.records]
    assert said[0] == "expired, and dropped next: log of 20200101 to 20200102, 2 days"
    drops = [line for line in said if line.startswith("dropped log")]
    assert drops == [
        f"dropped log of {day}, which has expired" for day in (20200101, 20200102, 20200103)
    ]
    keeper.stop(30)
    keeper.stop(30)


def test_a_keeper_that_was_never_started_can_be_stopped_and_asked() -> None:
    rig = Rig(*old("log"))
    rig.keeper.stop(0)
    assert rig.keeper.planned().going == tuple(old("log"))
