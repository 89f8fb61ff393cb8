"""Parked records by the door: each comes back once, whatever is cut off where."""

from __future__ import annotations

import socket
from base64 import b64decode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from contracts.parked_contract import ALL, QUEUE, RECORDS, park
from oap.admin.rig import BEFORE, Rig
from skyfarer.base.errors import PermanentError
from skyfarer.oap.admin.door import CLIENTS_MAX, SOCKET_NAME, Door, ask
from skyfarer.oap.core.parked import RetryState
from skyfarer.oap.core.storage import Parked
from skyfarer.oap.receivers.readmission import RECORD_BYTES_MAX
from skyfarer.telemetry import table
from skyfarer.testing.programs import eventually

SOUND = [(1, b"zero"), (25, b"one"), (1, b"")]


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    rig = Rig(tmp_path)
    rig.start()
    park(rig.storage, *RECORDS)
    yield rig
    rig.stop()


def retry(rig: Rig, wait_s: int = 0, **which: Any) -> list[dict[str, Any]]:
    question = {"ask": "parked.retry", "wait_s": wait_s, **which}
    return [dict(answer) for answer in ask(rig.directory, question)]


def test_a_retried_record_is_a_new_one_with_the_same_bytes_and_the_old_one_is_marked(
    rig: Rig,
) -> None:
    assert retry(rig, sequences=[1]) == [
        {"sent": 1, "known": 0},
        {"analysed": 1, "waiting": 0, "parked": []},
    ]
    assert rig.queued() == [SOUND[1]]
    marked = rig.storage.parked_entries(ALL)[1]
    assert (marked.state, marked.retried_as) == (RetryState.RETRIED, BEFORE)
    assert rig.registry.value(table.PIPELINE_RETRIED) == 1


def test_all_are_sent_once_and_what_is_damaged_stays(rig: Rig) -> None:
    for sent in (3, 0):
        answers = retry(rig)
        assert sum(answer.get("sent", 0) for answer in answers) == sent
    assert rig.queued() == SOUND


def test_what_is_parked_again_meanwhile_is_not_sent_round_and_round(rig: Rig) -> None:
    rig.hopeless, rig.applied = True, BEFORE
    assert sum(answer.get("sent", 0) for answer in retry(rig)) == len(SOUND)
    assert rig.queued() == SOUND


def test_only_those_of_a_reason_are_sent(rig: Rig) -> None:
    retry(rig, reason="undecodable")
    assert rig.queued() == [SOUND[0], SOUND[2]]


def test_one_whose_answer_was_lost_is_in_the_queue_once_and_marked_by_the_next_retry(
    rig: Rig,
) -> None:
    rig.deaf = True
    with pytest.raises(PermanentError, match="the receiver is gone"):
        retry(rig)
    states = {entry.state for entry in rig.storage.parked_entries(ALL) if not entry.damaged}
    assert states == {RetryState.IN_DOUBT}
    rig.deaf = False
    assert retry(rig)[0] == {"sent": 0, "known": 3}
    assert rig.queued() == SOUND
    assert [entry.state for entry in rig.storage.parked_entries(ALL)][:3] == [
        RetryState.RETRIED
    ] * 3


def test_who_names_what_cannot_be_sent_is_told_why(rig: Rig) -> None:
    retry(rig, sequences=[0])
    told = {one["skipped"]: one["why"] for one in retry(rig, sequences=[0, 3, 9])[:3]}
    assert told == {
        0: f"it was sent again already, as record {BEFORE}",
        3: "its bytes were damaged in the queue",
        9: "it is not parked",
    }


def test_a_record_that_is_too_large_stops_no_other(rig: Rig) -> None:
    large = Parked(5, 1, "oversize: spans", bytes(RECORD_BYTES_MAX + 1))
    larger_than_the_queue_takes = Parked(6, 1, "oversize: spans", bytes(600_000))
    park(rig.storage, large, larger_than_the_queue_takes, Parked(7, 1, "oversize: spans", b"7"))
    answers = retry(rig, reason="oversize")
    assert [answer["skipped"] for answer in answers if "skipped" in answer] == [5, 6]
    assert rig.queued() == [(1, b"7")]


def test_a_full_queue_ends_the_retry_and_what_is_left_comes_with_the_next(rig: Rig) -> None:
    park(rig.storage, *(Parked(n, 1, "oversize: spans", bytes(500_000)) for n in range(5, 20)))
    with pytest.raises(PermanentError, match="what is not sent stays as it is"):
        retry(rig, reason="oversize")
    kept = len(rig.queued())
    states = [entry.state for entry in rig.storage.parked_entries(ALL)]
    assert 0 < kept < 15
    assert states.count(RetryState.RETRIED) == kept


def test_what_became_of_them_is_told_when_analysis_has_come_past(rig: Rig) -> None:
    rig.applied = BEFORE
    assert retry(rig, sequences=[0])[-1] == {"analysed": 0, "waiting": 1, "parked": []}
    rig.applied = BEFORE + 3
    park(rig.storage, Parked(BEFORE + 2, 1, "undecodable: still", b""))
    assert retry(rig, sequences=[1, 2])[-1] == {
        "analysed": 2,
        "waiting": 0,
        "parked": [{"sequence": BEFORE + 2, "reason": "undecodable: still"}],
    }


def test_who_waits_for_analysis_is_told_as_soon_as_it_has_come_past(rig: Rig) -> None:
    rig.applied = BEFORE
    answers = ask(rig.directory, {"ask": "parked.retry", "wait_s": 600, "sequences": [0]})
    assert next(answers) == {"sent": 1, "known": 0}
    rig.applied = BEFORE + 1
    assert next(answers) == {"analysed": 1, "waiting": 0, "parked": []}


def test_a_door_that_is_stopped_lets_nobody_wait(rig: Rig) -> None:
    rig.applied = BEFORE
    answers = ask(rig.directory, {"ask": "parked.retry", "wait_s": 600, "sequences": [0]})
    next(answers)
    rig.desk.close()
    assert next(answers) == {"analysed": 0, "waiting": 1, "parked": []}


def test_they_are_listed_and_shown(rig: Rig) -> None:
    listed = [one["entry"] for one in ask(rig.directory, {"ask": "parked.list", "limit": 2})]
    assert [entry["sequence"] for entry in listed] == [3, 4]
    (shown,) = ask(rig.directory, {"ask": "parked.show", "sequence": 1})
    assert b64decode(shown["payload"]) == b"one"
    assert shown["entry"]["queue"] == QUEUE
    with pytest.raises(PermanentError, match="has no parked record 9"):
        list(ask(rig.directory, {"ask": "parked.show", "sequence": 9}))


@pytest.mark.parametrize(
    ("question", "complaint"),
    [
        ({"ask": "parked.forget"}, "knows no 'parked.forget'"),
        ({"ask": 7}, "one line of JSON"),
        ({"ask": "parked.list", "limit": -1}, '"limit" must be a number'),
        ({"ask": "parked.list", "limit": 1, "reason": 7}, '"reason" must be text'),
        ({"ask": "parked.retry", "wait_s": 0, "sequences": ["1"]}, "must be a list of numbers"),
        ({"ask": "parked.retry", "wait_s": 0, "sequences": [1] * 1001}, "at most 1000"),
    ],
)
def test_a_question_that_makes_no_sense_is_answered_with_a_sentence(
    rig: Rig, question: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(PermanentError, match=complaint):
        list(ask(rig.directory, question))


def test_the_door_is_for_its_owner_alone_and_gone_when_it_is_stopped(rig: Rig) -> None:
    path = rig.directory / SOCKET_NAME
    assert path.stat().st_mode & 0o777 == 0o600
    for _ in range(2):
        rig.door.stop(10)
    assert not path.exists()
    with pytest.raises(PermanentError, match=r"no OAP with its data in .* answers"):
        list(ask(rig.directory, {"ask": "parked.list", "limit": 1}))


def test_a_door_that_a_killed_oap_left_is_replaced(rig: Rig, tmp_path: Path) -> None:
    there = tmp_path / ("deep" * 30)
    there.mkdir()
    (there / SOCKET_NAME).touch()
    door = Door(there, {"hello": lambda _: iter([{"hello": "you"}])})
    door.start()
    assert list(ask(there, {"ask": "hello"})) == [{"hello": "you"}]
    door.stop(10)


def test_who_says_nothing_is_cut_off_with_the_door_and_too_many_are_refused(rig: Rig) -> None:
    path = str(rig.directory / SOCKET_NAME)
    silent = [socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) for _ in range(CLIENTS_MAX)]
    for one in silent:
        one.connect(path)
    eventually(lambda: len(rig.door._clients) == CLIENTS_MAX, 240, "all are being served")
    with pytest.raises(PermanentError, match="too many commands"):
        list(ask(rig.directory, {"ask": "parked.list", "limit": 1}))
    rig.door.stop(10)
    for one in silent:
        one.settimeout(10)
        assert one.recv(1) == b""
        one.close()
