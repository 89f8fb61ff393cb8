"""A parked record on its way back into the queue of a real receiver process."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from oap.receivers.test_supervisor import received, receiver_of, settings
from skyfarer.base.errors import RetryableError
from skyfarer.oap.core.parked import Retry
from skyfarer.oap.receivers.readmission import Readmission, Readmitted
from skyfarer.oap.receivers.supervisor import Supervisor
from skyfarer.telemetry.health import Health
from skyfarer.telemetry.metrics import Registry
from skyfarer.testing.programs import eventually

PRODUCER = "parked-1"


@pytest.fixture
def readmission(tmp_path: Path) -> Iterator[Readmission]:
    listener = socket.create_server(("127.0.0.1", 0))
    readmission = Readmission()
    supervisor = Supervisor(
        settings(tmp_path), listener, Registry(), Health(), readmission=readmission
    )
    supervisor.start()
    yield readmission
    supervisor.stop()


def readmitted(readmission: Readmission, *records: Retry) -> Readmitted:
    found: list[Readmitted] = []

    def answered() -> bool:
        try:
            found.append(readmission.readmit(PRODUCER, records))
        except RetryableError as error:
            assert "not there just now" in str(error), "nobody told it that the receiver is gone"
            return False
        return True

    eventually(answered, 240, "a receiver is there")
    return found[0]


def test_a_number_is_in_the_queue_once_though_the_receiver_is_killed_between(
    readmission: Readmission, tmp_path: Path
) -> None:
    one, two = Retry(0, 40, 1, b"one"), Retry(1, 41, 25, b"\x00\xff")
    assert readmitted(readmission, one).kept == {0: 0}
    first = receiver_of(os.getpid())
    first.kill()
    eventually(lambda: not first.is_running(), 240, "the first receiver is gone")
    assert readmitted(readmission, one, two).kept == {0: None, 1: 1}
    assert received(tmp_path) == [(1, b"one"), (25, b"\x00\xff")]


def test_without_a_receiver_nobody_waits() -> None:
    with pytest.raises(RetryableError, match="not there just now"):
        Readmission().readmit(PRODUCER, [Retry(0, 1, 1, b"")])


def test_who_waits_when_the_receiver_ends_is_told(tmp_path: Path) -> None:
    readmission = Readmission()
    readmission.open(lambda _: readmission.close())
    with pytest.raises(RetryableError, match="not there just now"):
        readmission.readmit(PRODUCER, [Retry(0, 1, 1, b"")])


def test_a_receiver_that_does_not_answer_is_waited_for_no_longer_than_told() -> None:
    readmission = Readmission()
    readmission.open(lambda _: None)
    with pytest.raises(RetryableError, match="did not answer in 0 s"):
        readmission.readmit(PRODUCER, [Retry(0, 1, 1, b"")], timeout_s=0.01)
