"""Whatever filters decide, the upstream answers and a crash interrupts: the books are exact."""

from __future__ import annotations

import asyncio
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from satellite.bench import PING, SEGMENT, Bench, Script
from skyfarer.base.errors import PermanentError, RetryableError
from skyfarer.satellite.attempts import RetrySettings
from skyfarer.satellite.backlog import Backlog
from skyfarer.satellite.contracts import AccessDenied, Batch, OnFailure, Unexplained, Unfit, Verdict
from skyfarer.satellite.delivery import TRIES_MAX
from skyfarer.satellite.processors.event import Context, Event
from skyfarer.wire.messages import InstancePingPkg

# What becomes of a record stands in it.
KEEP, DROP, FAIL, EMIT, REFUSED, BAD = "keep", "drop", "fail", "emit", "refused", "bad"
FATES = (KEEP, KEEP, KEEP, DROP, FAIL, EMIT, REFUSED, BAD)
# What the upstream does before it looks at a batch; most of the time, nothing.
MOODS = ("", "", "", "later", "unexplained", "denied", "takes, says later")


class Crash(BaseException):
    """As by SIGKILL: nothing of ours runs any more."""


class Fate:
    """A filter that does what a record says."""

    def __init__(self, on_failure: OnFailure) -> None:
        self.on_failure = on_failure

    def verdict(self, kind: int) -> Verdict:
        return Verdict.LOOK if kind == SEGMENT else Verdict.PASS

    def apply(self, event: Event, context: Context) -> bool:
        fate = fate_of(bytes(event.payload))
        if fate == FAIL:
            raise Unfit("example", "as it was told")
        if fate == EMIT:
            context.emit(PING, InstancePingPkg(service=f"made {event.sequence}"))
        return fate != DROP


def payload(number: int, fate: str) -> bytes:
    return InstancePingPkg(service=f"{number} {fate}").SerializeToString()


def fate_of(record: bytes) -> str:
    return InstancePingPkg.FromString(record).service.split()[1]


class World:
    """An upstream and a disk that outlive the process; crashes come after so many steps."""

    def __init__(self, moods: list[str], crashes: list[int]) -> None:
        self.stored: list[bytes] = []
        self._moods = moods
        self._crashes = crashes

    def step(self) -> None:
        if self._crashes:
            self._crashes[0] -= 1
            if self._crashes[0] < 0:
                del self._crashes[0]
                raise Crash

    def answer(self, batch: Batch) -> None:
        self.step()
        payloads = [bytes(one) for one in batch.payloads]
        mood = self._moods.pop() if self._moods else ""
        if mood == "later":
            raise RetryableError("not now")
        if mood == "unexplained":
            raise Unexplained("INTERNAL")
        if mood == "denied":
            raise AccessDenied("UNAUTHENTICATED")
        fates = set(map(fate_of, payloads))
        if REFUSED in fates:
            raise PermanentError("INVALID_ARGUMENT")
        if BAD in fates:
            raise Unexplained("UNKNOWN")
        self.stored += payloads
        self.step()
        if mood:
            raise RetryableError("the answer was lost")


class Fragile(Backlog):
    """A backlog whose commits are steps at which the world may end."""

    world: World

    def settle(self, end: int, *dropped: Any) -> None:
        self.world.step()
        super().settle(end, *dropped)
        self.world.step()


async def life(directory: Path, world: World, policy: OnFailure, records: list[Any]) -> bool:
    """From a start to the end of the work, or to a crash: False."""
    retry = RetrySettings(denied_pause_s=0.001)
    bench = Bench(directory, Script(world.answer), [("fate", Fate(policy))], retry, records_max=16)
    bench.backlog.__class__ = Fragile
    bench.backlog.world = world  # type: ignore[attr-defined]
    bench.backlog.start()
    for kind, one in records:
        bench.backlog.append(kind, [one])
    await bench.sender.start()
    task = bench.sender._task
    assert task is not None
    try:
        await bench.until(lambda: task.done() or bench.backlog.ledger().queued == 0)
        assert bench.backlog.ledger().balanced
        if task.done():
            assert isinstance(task.exception(), Crash)
            return False
        return True
    finally:
        task.cancel()
        bench.backlog.stop(0.0)


@given(
    fates=st.lists(st.tuples(st.sampled_from([SEGMENT, SEGMENT, PING]), st.sampled_from(FATES))),
    moods=st.lists(st.sampled_from(MOODS), max_size=12).filter(
        # More of them in a row, and the record in hand is taken for a bad one: so it is meant.
        lambda moods: moods.count("unexplained") < TRIES_MAX
    ),
    crashes=st.lists(st.integers(0, 20), max_size=4),
    policy=st.sampled_from(["pass", "drop", "park"]),
)
@settings(max_examples=100, deadline=None)
def test_every_record_is_in_one_place(
    fates: list[tuple[int, str]], moods: list[str], crashes: list[int], policy: OnFailure
) -> None:
    # The last one is good, so that a bad one before it can be told from a bad upstream.
    records = [
        (kind, payload(number, fate)) for number, (kind, fate) in enumerate([*fates, (PING, KEEP)])
    ]
    world = World(moods, crashes)
    with tempfile.TemporaryDirectory() as name:
        directory, waiting = Path(name), records
        while not asyncio.run(life(directory, world, policy, waiting)):
            waiting = []
        check(directory, world, policy, records)


def check(
    directory: Path, world: World, policy: OnFailure, records: list[tuple[int, bytes]]
) -> None:
    bench = Bench(directory, Script())
    bench.backlog.start()
    ledger = bench.backlog.ledger()
    bench.backlog.stop(0.0)
    expected: Counter[str] = Counter()
    for kind, record in records:
        expected[end_of(kind, fate_of(record), policy)] += 1

    assert ledger.balanced
    assert (ledger.accepted, ledger.queued) == (len(records), 0)
    assert ledger.delivered == expected.pop("delivered", 0)
    assert Counter(ledger.dropped) == expected
    ends = [end_of(kind, fate_of(record), policy) for kind, record in records]
    delivered = {
        record for (_, record), end in zip(records, ends, strict=True) if end == "delivered"
    }
    made = {payload for payload in world.stored if fate_of(payload).isdigit()}
    assert set(world.stored) - made == delivered
    emitting = [
        n for n, (kind, one) in enumerate(records) if (kind, fate_of(one)) == (SEGMENT, EMIT)
    ]
    assert {int(fate_of(one)) for one in made} == set(emitting)
    parked = [
        (number, record)
        for number, ((_, record), end) in enumerate(zip(records, ends, strict=True))
        if end == "rejected"
        or (end == "filter:fate" and fate_of(record) == FAIL and policy == "park")
    ]
    assert bench.parked() == parked


def end_of(kind: int, fate: str, policy: OnFailure) -> str:
    if fate in (REFUSED, BAD):
        return "rejected"
    if kind == SEGMENT and (fate == DROP or (fate == FAIL and policy != "pass")):
        return "filter:fate"
    return "delivered"
