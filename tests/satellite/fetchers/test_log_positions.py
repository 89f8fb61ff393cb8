"""What is written down about files, and what is made of it after a crash."""

from __future__ import annotations

from pathlib import Path

import pytest

from skyfarer.base.errors import RetryableError
from skyfarer.satellite.fetchers.log import positions as room
from skyfarer.satellite.fetchers.log.intent import Intent, Piece
from skyfarer.satellite.fetchers.log.journal import Journal
from skyfarer.satellite.fetchers.log.place import UNKNOWN, Place
from skyfarer.satellite.fetchers.log.positions import Positions
from skyfarer.testing.faulty_disk import FaultyDisk


class Queue:
    """An inlet that has what the test says."""

    def __init__(self) -> None:
        self.queue_id = "first"
        self.writing = 100

    def append(self, kind: int, payloads: object) -> object:
        raise AssertionError("nobody appends here")


@pytest.fixture
def queue() -> Queue:
    return Queue()


def opened(directory: Path, queue: Queue) -> Positions:
    made = Positions(directory, queue)
    made.start()
    return made


def with_a_file(directory: Path, queue: Queue) -> tuple[Positions, Place]:
    positions = opened(directory, queue)
    place = positions.enroll("/var/log/a.log", 1, 2)
    positions.note([place])
    return positions, place


def intent(place: Place, sequence: int, *ends: int, before_crc: int = 77) -> Intent:
    pieces = (Piece(place.key, place.offset, ends[-1], ends[-1]),)
    return Intent(sequence, pieces, ends, before_crc)


@pytest.mark.parametrize(
    ("records", "offset", "before_crc"),
    [(0, 0, UNKNOWN), (1, 10, UNKNOWN), (2, 25, UNKNOWN), (3, 30, 77)],
)
def test_the_queue_tells_how_far_an_append_got(
    tmp_path: Path, queue: Queue, records: int, offset: int, before_crc: int
) -> None:
    positions, place = with_a_file(tmp_path, queue)
    positions.intend(intent(place, 100, 10, 25, 30))
    queue.writing += records

    after = opened(tmp_path, queue).places[place.key]

    assert (after.offset, after.before_crc) == (offset, before_crc)


def test_an_intent_is_done_when_the_next_begins_behind_it(tmp_path: Path, queue: Queue) -> None:
    positions, place = with_a_file(tmp_path, queue)
    positions.intend(intent(place, 100, 10, 20))
    place.offset = 20
    positions.intend(intent(place, 102, 5))

    assert opened(tmp_path, queue).places[place.key].offset == 20


def test_an_intent_that_came_to_nothing_is_overruled_by_the_next(
    tmp_path: Path, queue: Queue
) -> None:
    positions, place = with_a_file(tmp_path, queue)
    positions.intend(intent(place, 100, 10, 20))
    positions.intend(intent(place, 100, 7))
    queue.writing = 101

    assert opened(tmp_path, queue).places[place.key].offset == 7


def test_a_change_written_after_an_append_stands(tmp_path: Path, queue: Queue) -> None:
    positions, place = with_a_file(tmp_path, queue)
    positions.intend(intent(place, 100, 10, 20))
    queue.writing = 102
    place.restart()
    positions.note([place])

    assert opened(tmp_path, queue).places[place.key].offset == 0


def test_an_event_of_two_files_moves_both(tmp_path: Path, queue: Queue) -> None:
    positions, old = with_a_file(tmp_path, queue)
    heir = positions.enroll("/var/log/b.log", 1, 3)
    positions.note([heir])
    # Four bytes and a newline that the file lacked, then twenty of the heir.
    pieces = (Piece(old.key, 50, 4, 5), Piece(heir.key, 0, 20, 20))
    positions.intend(Intent(100, pieces, [11, 25], UNKNOWN))
    queue.writing = 101

    places = opened(tmp_path, queue).places

    assert (places[old.key].offset, places[heir.key].offset) == (54, 6)


def test_a_frame_cut_off_by_the_end_is_as_if_it_had_not_been(tmp_path: Path, queue: Queue) -> None:
    positions, place = with_a_file(tmp_path, queue)
    positions.intend(intent(place, 100, 10))
    size = (tmp_path / "positions").stat().st_size
    place.offset = 10
    positions.intend(intent(place, 101, 10))
    whole = (tmp_path / "positions").read_bytes()
    queue.writing = 101

    for end in range(size, len(whole)):
        (tmp_path / "positions").write_bytes(whole[:end])
        assert opened(tmp_path, queue).places[place.key].offset == 10


def test_bytes_left_of_a_longer_frame_do_not_continue_a_shorter_one(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal")
    journal.begin(b"begin")
    journal.add(b"a longer one")
    journal.add(b"behind it")
    old = journal.path.read_bytes()
    journal.begin(b"begin")
    journal.add(b"short")
    new = journal.path.read_bytes()
    journal.path.write_bytes(new + old[len(new) :])

    assert journal.read() == [b"begin", b"short"]
    journal.close()


def test_of_another_queue_the_last_lines_come_again_and_none_is_missing(
    tmp_path: Path, queue: Queue, caplog
) -> None:
    positions, place = with_a_file(tmp_path, queue)
    positions.intend(intent(place, 100, 10, 20))
    place.offset = 20
    positions.intend(intent(place, 102, 5))
    queue.queue_id, queue.writing = "second", 0

    assert opened(tmp_path, queue).places[place.key].offset == 20
    assert "may come twice" in caplog.text


def test_the_file_stays_small_and_forgets_nothing(
    tmp_path: Path, queue: Queue, monkeypatch
) -> None:
    monkeypatch.setattr(room, "JOURNAL_BYTES_MAX", 4096)
    positions, place = with_a_file(tmp_path, queue)
    for _ in range(1000):
        step = intent(place, queue.writing, 10, 20, 30)
        positions.intend(step)
        queue.writing += 3
        positions.settle(step)
        assert (tmp_path / "positions").stat().st_size < 8192

    assert opened(tmp_path, queue).places[place.key].offset == 30_000


def test_a_key_is_never_used_twice(tmp_path: Path, queue: Queue) -> None:
    positions, place = with_a_file(tmp_path, queue)
    positions.note(forgotten=[place])

    assert opened(tmp_path, queue).enroll("/var/log/b.log", 1, 3).key == place.key + 1
    assert opened(tmp_path, queue).enroll("/var/log/b.log", 1, 3).key == place.key + 1


def test_a_full_disk_is_told_and_the_call_may_be_repeated(tmp_path: Path, queue: Queue) -> None:
    disk = FaultyDisk()
    positions = Positions(tmp_path, queue, disk)
    positions.start()
    place = positions.enroll("/var/log/a.log", 1, 2)
    disk.full = frozenset({"pwrite"})
    with pytest.raises(RetryableError, match="free space"):
        positions.note([place])
    disk.full = frozenset()
    positions.note([place])

    assert opened(tmp_path, queue).places == {1: place}


def test_stopping_leaves_the_places_and_is_safe_twice_and_unstarted(
    tmp_path: Path, queue: Queue
) -> None:
    Positions(tmp_path / "none", queue).stop()
    assert not (tmp_path / "none").exists()
    positions, place = with_a_file(tmp_path, queue)
    place.offset = 5
    positions.stop()
    positions.stop()

    assert [path.name for path in tmp_path.iterdir()] == ["positions"]
    assert opened(tmp_path, queue).places[place.key].offset == 5
