"""Each record of a satellite is kept once, whatever it sends again and whoever dies meanwhile."""

from __future__ import annotations

import logging
import tempfile
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from oap.receivers.doors import KIND, Door, message, payload
from skyfarer.base.errors import PermanentError, RetryableError
from skyfarer.base.units import KIB
from skyfarer.oap.receivers.producers import Bounds
from skyfarer.queue.reader import Reader
from skyfarer.testing.faulty_disk import Death, FaultyDisk, flip
from skyfarer.wire.numbering import Number, Numbered
from skyfarer.wire.split import split_repeated

OTHER = b"nobody's"


def kept(directory: Path) -> list[bytes]:
    """Record by record, packed ones taken apart."""
    reader = Reader(directory)
    reader.start()
    found: list[bytes] = []
    for run in reader.runs(0, reader.writing()):
        assert not run.damaged
        for one in map(bytes, run.payloads()):
            found += (split_repeated(one, 1) if one[:1] == b"\n" else None) or [one]
    reader.stop()
    return found


def numbers(directory: Path, producer: str = "sat") -> list[int]:
    prefix = producer.encode() + b":"
    return [int(one[len(prefix) :]) for one in kept(directory) if one.startswith(prefix)]


def test_what_the_queue_has_is_dropped_and_counted(tmp_path: Path) -> None:
    with Door(tmp_path) as door:
        door.send(0, 1, 2)
        door.send(0, 1, 2, 3)
        door.send(4, first=4)
        door.send(2, 3, 4, 5, first=2)
        assert numbers(tmp_path) == [0, 1, 2, 3, 4, 5]
        assert door.metric('receiver_repeats_total{reason="resent"} 4')
        assert door.metric('receiver_repeats_total{reason="settled"} 2')
        assert door.metric("receiver_producers 1")


def test_a_doubted_record_that_comes_behind_later_ones_is_kept(tmp_path: Path) -> None:
    with Door(tmp_path) as door:
        door.send(0, 1)
        door.send(5, first=5)
        door.send(3, first=3)
        door.send(3, 4, first=3)
    with Door(tmp_path) as door:
        door.send(2, first=2)
        door.send(2, 3, 4, 5, first=2)
    assert numbers(tmp_path) == [0, 1, 5, 3, 4, 2]


def test_two_producers_have_numbers_of_their_own(tmp_path: Path) -> None:
    with Door(tmp_path) as door:
        door.send(0, 1, producer="one")
        door.send(0, 1, producer="two")
        door.send(1, 2, producer="one")
    assert numbers(tmp_path, "one") == [0, 1, 2]
    assert numbers(tmp_path, "two") == [0, 1]


def test_what_says_nothing_of_itself_is_kept_as_often_as_it_comes(tmp_path: Path) -> None:
    with Door(tmp_path) as door:
        door.resends.append(KIND, [OTHER, OTHER])
        door.resends.append(KIND, [OTHER])
        nameless = message((), (), producer="")
        door.resends.append(KIND, nameless)
        assert kept(tmp_path)[:3] == [OTHER] * 3
        assert door.metric('receiver_unsure_total{reason="unreadable"} 2')
        assert door.queue.writing == 5


def test_messages_beyond_the_list_are_kept_and_counted(tmp_path: Path) -> None:
    said = message(7)
    said.add(OTHER, ())
    with Door(tmp_path) as door:
        door.resends.append(KIND, said)
        door.resends.append(KIND, said)
        assert kept(tmp_path) == [b"sat:7", OTHER, OTHER]
        assert door.metric('receiver_unsure_total{reason="unlisted"} 2')


def test_a_message_of_several_records_is_kept_without_those_that_are_there(tmp_path: Path) -> None:
    with Door(tmp_path) as door:
        door.send((4, 7, 8))
        door.send((4, 7, 8))
        door.send(5)
        door.send((4, 5, 7), (6, 9))
        assert numbers(tmp_path) == [4, 7, 8, 5, 6, 9]
        assert door.metric('receiver_repeats_total{reason="resent"} 6')
        door.send((9, 10, 4))
    with Door(tmp_path) as door:
        door.send((10,), (4, 5, 6))
    assert numbers(tmp_path) == [4, 7, 8, 5, 6, 9, 10]


def test_a_message_of_several_records_that_cannot_be_taken_apart_is_kept_whole(
    tmp_path: Path,
) -> None:
    said = Numbered("sat", 0)
    said.add(b"\xff\xff", (1, 2))
    with Door(tmp_path) as door:
        door.send(1)
        door.resends.append(KIND, said)
        door.resends.append(KIND, said)
        assert door.queue.writing == 2
        assert door.metric('receiver_unsure_total{reason="inseparable"} 1')


def test_a_number_listed_twice_in_one_call_is_kept_once(tmp_path: Path) -> None:
    with Door(tmp_path) as door:
        door.send(4, 4, (5, 4))
    assert numbers(tmp_path) == [4, 5]


def test_what_is_forgotten_is_kept_again_and_counted(tmp_path: Path) -> None:
    with Door(tmp_path, bounds=Bounds(ranges_max=2)) as door:
        door.send(0, 2, 4, 6)
        door.send(0, 1, 4, 6)
        assert numbers(tmp_path) == [0, 2, 4, 6, 0, 1]
        assert door.metric('receiver_unsure_total{reason="forgotten"} 2')


def test_a_refused_append_leaves_nothing_behind_that_a_later_one_could_be_taken_for(
    tmp_path: Path,
) -> None:
    """Its note says what it was going to do at a number that others get."""
    large = message(0, 1)
    large[1] = bytes(5 * KIB)
    with Door(tmp_path) as door:
        with pytest.raises(PermanentError):
            door.resends.append(KIND, large)
        door.resends.append(KIND, [OTHER, OTHER])
    with Door(tmp_path) as door:
        door.send(0, 1)
    assert kept(tmp_path) == [OTHER, OTHER, b"sat:0", b"sat:1"]


def test_a_full_disk_refuses_for_now_and_nothing_is_wrong_afterwards(tmp_path: Path) -> None:
    disk = FaultyDisk()
    with Door(tmp_path, disk, notes_bytes=256) as door:
        door.send(0, 1)
        disk.full = frozenset({"allocate"})
        with pytest.raises(RetryableError):
            for number in range(2, 30):
                door.send(number)
        disk.full = frozenset()
        for number in range(30):
            door.send(number)
        assert numbers(tmp_path) == list(range(30))
    with Door(tmp_path) as door:
        door.send(*range(31))
    assert numbers(tmp_path) == list(range(31))


def test_more_than_a_file_can_hold_is_refused(tmp_path: Path) -> None:
    with Door(tmp_path, notes_bytes=256) as door:
        with pytest.raises(PermanentError, match="fewer"):
            door.send(*range(0, 300, 2))
        door.send(*range(300))
    assert numbers(tmp_path) == list(range(300))


@pytest.mark.parametrize("byte", [10, 4096 + 12])
def test_a_damaged_file_costs_nothing_while_the_one_before_is_whole(
    tmp_path: Path, byte: int, caplog: pytest.LogCaptureFixture
) -> None:
    for number in range(3):
        with Door(tmp_path) as door:
            door.send(number)
    for at in (byte, byte + 2048) if byte < 2048 else (byte,):
        flip(tmp_path / "producers", at, 3)
    with caplog.at_level(logging.WARNING), Door(tmp_path) as door:
        said = [one.message for one in caplog.records]
        assert len(said) == 1 and "producers is damaged" in said[0]
        # A header that cannot be read hides the notes behind it: the last call's.
        lost = 1 if byte < 2048 else 0
        door.send(*range(4))
    assert len(numbers(tmp_path)) == 4 + lost


def test_without_its_files_it_says_so_once_and_goes_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        with Door(tmp_path) as door:
            door.send(0)
        assert not caplog.records, "a new queue is no loss"
        for name in ("producers", "producers.old"):
            (tmp_path / name).unlink(missing_ok=True)
        with Door(tmp_path) as door:
            door.send(0, 1)
        with Door(tmp_path) as door:
            door.send(0, 1)
    assert numbers(tmp_path) == [0, 0, 1]
    assert ["is not there" in one.message for one in caplog.records] == [True]


def test_the_files_of_another_queue_are_not_believed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("one", "two"):
        with Door(tmp_path / name) as door:
            door.send(0)
    (tmp_path / "one" / "producers").replace(tmp_path / "two" / "producers")
    with caplog.at_level(logging.WARNING), Door(tmp_path / "two") as door:
        door.send(1)
    assert len(caplog.records) == 1


def test_it_may_be_stopped_twice_and_unstarted(tmp_path: Path) -> None:
    door = Door(tmp_path)
    door.resends.stop()
    with door:
        door.send(0)
        door.resends.stop()
        with pytest.raises(PermanentError):
            door.send(1)


def test_a_kill_in_any_step_of_a_call_loses_nothing_and_keeps_nothing_twice(
    tmp_path: Path,
) -> None:
    """Every changing call to the disk and every store, done not at all or in part."""
    calls = 0
    for notes_bytes in (96, 8 * KIB):
        for part in (0, 7, 30):
            at = 1
            while True:
                directory = tmp_path / f"{notes_bytes}-{part}-{at}"
                disk = FaultyDisk()
                survived = _killed(directory, disk, notes_bytes, at, part)
                with Door(directory, notes_bytes=notes_bytes) as door:
                    door.resends.append(KIND, [OTHER] * 3)
                    door.send(2, (3, 4), 6, 5, 7, first=2)
                with Door(directory) as door:
                    door.send(*range(8))
                assert sorted(numbers(directory)) == list(range(8)), (notes_bytes, part, at)
                calls += 1
                if survived:
                    break
                at += 1
    assert calls > 20


def _killed(directory: Path, disk: FaultyDisk, notes_bytes: int, at: int, part: int) -> bool:
    """Whether it came through the call, there being fewer steps."""
    door = Door(directory, disk, notes_bytes)
    door.__enter__()
    door.send(0, 1)
    disk.die_at(at, part)
    try:
        door.send(2, (3, 4), 6, 5, first=2)
    except Death:
        return False
    disk.die()
    return True


class Satellites(RuleBasedStateMachine):
    """Against a set: all that was acknowledged is there, and nothing twice."""

    def __init__(self) -> None:
        super().__init__()
        self._temporary = tempfile.TemporaryDirectory()
        self.directory = Path(self._temporary.name) / "queue"
        self.acknowledged: set[tuple[str, int]] = set()
        self.others = 0
        self.begin()

    def begin(self) -> None:
        self.disk = FaultyDisk()
        self.door = Door(self.directory, self.disk, notes_bytes=320)
        self.door.__enter__()

    def teardown(self) -> None:
        self.door.__exit__()
        self._temporary.cleanup()

    @rule(
        producer=st.sampled_from(["one", "two"]),
        said=st.lists(
            st.one_of(
                st.integers(0, 25),
                st.lists(st.integers(0, 25), min_size=1, max_size=4, unique=True).map(tuple),
            ),
            min_size=1,
            max_size=6,
        ),
        first=st.integers(0, 30),
        dies_at=st.sampled_from([0, 0, 0, 1, 2, 3, 4, 5, 8, 12]),
        part=st.integers(0, 40),
    )
    def send(self, producer: str, said: list[Number], first: int, dies_at: int, part: int) -> None:
        if dies_at:
            self.disk.die_at(dies_at, part)
        try:
            self.door.send(*said, producer=producer, first=first)
        except Death:
            self.begin()
            return
        self.disk.die_at(0)
        flat = [one for number in said for one in ([number] if isinstance(number, int) else number)]
        self.acknowledged.update((producer, one) for one in flat)

    @rule(count=st.integers(1, 3))
    def somebody_else_sends(self, count: int) -> None:
        self.door.resends.append(KIND, [OTHER] * count)
        self.others += count

    @rule()
    def the_process_is_killed(self) -> None:
        self.disk.die()
        self.begin()

    @rule(dies_at=st.integers(1, 12), part=st.integers(0, 40))
    def the_process_is_killed_and_killed_while_it_starts(self, dies_at: int, part: int) -> None:
        self.disk.die()
        disk = FaultyDisk()
        disk.die_at(dies_at, part)
        with suppress(Death):
            Door(self.directory, disk, notes_bytes=320).__enter__()
        disk.die()
        self.begin()

    @rule()
    def the_snapshot_rots(self) -> None:
        self.disk.die()
        if (self.directory / "producers.old").exists():
            flip(self.directory / "producers", 4096, 0)
        self.begin()

    @invariant()
    def all_is_there_once(self) -> None:
        found = Counter(kept(self.directory))
        assert found.pop(OTHER, 0) == self.others
        twice = {one: times for one, times in found.items() if times > 1}
        assert not twice
        wanted = {payload(producer, one) for producer, one in self.acknowledged}
        assert wanted <= set(found)


TestSatellites = Satellites.TestCase
TestSatellites.settings = settings(
    max_examples=40,
    stateful_step_count=25,
    derandomize=True,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
