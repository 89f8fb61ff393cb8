from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from skyfarer.base.errors import PermanentError
from skyfarer.base.units import KIB
from skyfarer.satellite.dead_letters import DeadLetters, read, remove, replaying
from skyfarer.testing.clock import HandClock

PARKS_FOR_EVER = """
import sys; from pathlib import Path
from skyfarer.base.clock import SystemClock
from skyfarer.satellite.dead_letters import DeadLetters
letters = DeadLetters(Path(sys.argv[1]), SystemClock())
number = 0
while True:
    letters.park(number, 1, "refused", b"payload %d" % number)
    print(number, flush=True)
    number += 1
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "pipe" / "dead-letters"


def letters(path: Path, bytes_max: int = 1024 * KIB) -> DeadLetters:
    return DeadLetters(path, HandClock(1_700_000_000_000), bytes_max)


def test_a_letter_is_read_as_it_was_parked(path: Path) -> None:
    payload = bytes(range(256))
    letters(path).park(4711, 5, "INVALID_ARGUMENT: no", memoryview(payload))
    (letter,) = read(path)
    assert (letter.sequence, letter.kind, letter.reason) == (4711, 5, "INVALID_ARGUMENT: no")
    assert letter.payload == payload
    assert letter.time_ms == 1_700_000_000_000


def test_a_letter_is_a_file_that_a_person_can_look_into(path: Path) -> None:
    letters(path).park(1, 5, "refused", b"payload")
    (file,) = path.iterdir()
    assert json.loads(file.read_text())["reason"] == "refused"
    assert file.parent.stat().st_mode & 0o077 == 0


def test_nothing_is_created_before_the_first_letter(path: Path) -> None:
    letters(path)
    assert not path.parent.exists()
    assert list(read(path)) == []


def test_letters_come_in_the_order_of_the_queue(path: Path) -> None:
    parked = letters(path)
    for sequence in (10, 9, 100, 1):
        parked.park(sequence, 1, "refused", b"")
    assert [letter.sequence for letter in read(path)] == [1, 9, 10, 100]


def test_a_record_parked_again_is_one_letter_and_a_namesake_is_another(path: Path) -> None:
    letters(path).park(7, 1, "first", b"payload")
    letters(path).park(7, 1, "again", b"payload")
    letters(path).park(7, 1, "of a queue made anew", b"another payload")
    assert sorted(letter.reason for letter in read(path)) == ["again", "of a queue made anew"]


def test_a_letter_goes_when_it_is_removed_and_not_before(path: Path) -> None:
    parked = letters(path)
    for sequence in range(3):
        parked.park(sequence, 1, "refused", b"")
    reading = read(path)
    first = next(reading)
    assert len(list(read(path))) == 3
    remove(first)
    remove(first)
    assert [letter.sequence for letter in reading] == [1, 2]
    assert [letter.sequence for letter in read(path)] == [1, 2]


def test_when_the_directory_is_full_the_oldest_letters_go(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    parked = letters(path, bytes_max=10 * 4 * KIB)
    for sequence in range(50):
        parked.park(sequence, 1, "refused", b"")
    assert [letter.sequence for letter in read(path)] == list(range(40, 50))
    assert parked.given_up == 40
    assert len(caplog.messages) == 1
    again = letters(path, bytes_max=10 * 4 * KIB)
    again.park(50, 1, "refused", b"")
    assert [letter.sequence for letter in read(path)] == list(range(41, 51))


def test_what_a_replay_took_away_makes_room_and_is_not_counted_as_given_up(path: Path) -> None:
    parked = letters(path, bytes_max=4 * 4 * KIB)
    for sequence in range(4):
        parked.park(sequence, 1, "refused", b"")
    for letter in read(path):
        remove(letter)
    for sequence in range(4, 8):
        parked.park(sequence, 1, "refused", b"")
    assert parked.given_up == 0
    assert [letter.sequence for letter in read(path)] == [4, 5, 6, 7]


def test_a_letter_over_the_bound_is_refused_and_costs_no_other(path: Path) -> None:
    parked = letters(path, bytes_max=16 * KIB)
    parked.park(1, 1, "refused", b"small")
    with pytest.raises(OSError, match="over the bound"):
        parked.park(2, 1, "refused", bytes(16 * KIB))
    assert [letter.sequence for letter in read(path)] == [1]


def test_what_is_no_letter_is_left_and_told(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    letters(path).park(5, 1, "refused", b"payload")
    (path / "00000000000000000001-00000000.json").write_text('{"time_ms": 1}')
    (path / "00000000000000000002-00000000.json").write_text('{"payload": "?"}')
    (path / "00000000000000000003-00000000.json").write_bytes(b"\xff\x00")
    (path / "notes.txt").write_text("not ours")
    assert [letter.sequence for letter in read(path)] == [5]
    assert len(list(path.iterdir())) == 5
    assert len(caplog.messages) == 3


def test_a_second_replay_is_refused_while_the_first_runs(path: Path) -> None:
    letters(path).park(1, 1, "refused", b"")
    with replaying(path):
        with pytest.raises(PermanentError, match="another"), replaying(path):
            pass
        letters(path).park(2, 1, "refused", b"")
    with replaying(path):
        assert len(list(read(path))) == 2


def test_after_a_kill_in_the_middle_of_parking_every_letter_that_was_parked_is_whole(
    path: Path,
) -> None:
    for _ in range(3):
        child = subprocess.Popen(
            [sys.executable, "-c", PARKS_FOR_EVER, str(path)], stdout=subprocess.PIPE, text=True
        )
        assert child.stdout is not None
        for _ in range(40):
            last = int(child.stdout.readline())
        os.kill(child.pid, signal.SIGKILL)
        last = max([last, *map(int, child.stdout.read().split())])
        child.wait()
        child.stdout.close()
        found = {letter.sequence: letter.payload for letter in read(path)}
        assert all(found[number] == b"payload %d" % number for number in range(last + 1))
