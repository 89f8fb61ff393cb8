"""The two ends of a question, each alone: what bounds it, and that it is answered once."""

from __future__ import annotations

import asyncio
import json
from base64 import b64encode
from collections.abc import Mapping, Sequence
from queue import Queue
from typing import Any

import pytest

from skyfarer.base.errors import PermanentError, RetryableError
from skyfarer.oap.core.inventory import Inventory, InventoryScope
from skyfarer.oap.receivers.answering import Answering
from skyfarer.oap.receivers.answers.outcome import Handler, Outcome
from skyfarer.oap.receivers.asking import (
    ASKED_BYTES_MAX,
    QUESTION_BYTES_MAX,
    QUESTIONS_MAX,
    ROUNDS_MAX,
    Asking,
)
from skyfarer.telemetry.metrics import Registry
from skyfarer.testing.programs import eventually
from skyfarer.wire.metadata import Metadata
from skyfarer.wire.rpc import BY_PATH
from skyfarer.wire.status import Status, StatusError

PATH = "/Register/doServiceRegister"
RPC = BY_PATH[PATH]
UPLOAD = BY_PATH["/skywalking.v10.PprofTask/collect"]
TIMEOUT_S = 120.0


class Parent:
    """What the main process hears, and the queue."""

    def __init__(self) -> None:
        self.heard: list[Mapping[str, Any]] = []
        self.kept: list[tuple[int, list[bytes]]] = []
        self.full = False
        self.asking = Asking(self.heard.append, self._append, Registry())

    def _append(self, kind: int, payloads: Sequence[bytes]) -> None:
        if self.full:
            raise RetryableError("the queue is full")
        self.kept.append((kind, list(payloads)))

    def ask(self, message: bytes = b"?", timeout_s: float | None = None) -> asyncio.Task[bytes]:
        metadata = Metadata(timeout_s=timeout_s)
        return asyncio.create_task(self.asking.ask(RPC, message, metadata))

    def answer(self, number: int, **answer: Any) -> None:
        self.asking.hear(json.dumps({"answer": number, **answer}).encode())

    async def question(self, number: int) -> Mapping[str, Any]:
        """The one of that number, which is asked within a few turns of the loop."""
        for _ in range(10_000):
            if len(self.heard) >= number:
                break
            await asyncio.sleep(0)
        return self.heard[number - 1]


async def refused(task: asyncio.Task[bytes]) -> Status:
    with pytest.raises(StatusError) as raised:
        await task
    return raised.value.status


def text(payload: bytes) -> str:
    return b64encode(payload).decode()


def test_what_is_to_be_kept_is_durable_before_the_question_is_asked_again() -> None:
    async def scenario() -> None:
        parent = Parent()
        asked = parent.ask()
        assert (await parent.question(1))["again"] is False
        parent.answer(1, keep=[[36, text(b"a")], [36, text(b"b")]])
        second = await parent.question(2)
        assert parent.kept == [(36, [b"a", b"b"])]
        assert (second["again"], second["payload"]) == (True, text(b"?"))
        parent.answer(2, payload=text(b"!"))
        assert await asked == b"!"

    asyncio.run(scenario())


def test_a_full_queue_is_told_to_the_caller_and_nothing_is_asked_again() -> None:
    async def scenario() -> None:
        parent = Parent()
        parent.full = True
        asked = parent.ask()
        await parent.question(1)
        parent.answer(1, keep=[[36, text(b"a")]])
        assert await refused(asked) is Status.RESOURCE_EXHAUSTED
        assert len(parent.heard) == 1

    asyncio.run(scenario())


def test_the_callers_deadline_ends_its_question() -> None:
    async def scenario() -> None:
        parent = Parent()
        assert await refused(parent.ask(timeout_s=0.05)) is Status.DEADLINE_EXCEEDED
        assert 0 < parent.heard[0]["within_s"] <= 0.05

    asyncio.run(scenario())


def test_questions_of_callers_who_left_count_until_they_are_answered() -> None:
    async def scenario() -> None:
        parent = Parent()
        asked = [parent.ask() for _ in range(QUESTIONS_MAX)]
        await parent.question(QUESTIONS_MAX)
        for one in asked:
            one.cancel()
        await asyncio.gather(*asked, return_exceptions=True)
        assert await refused(parent.ask()) is Status.RESOURCE_EXHAUSTED
        parent.answer(1, payload="")
        again = parent.ask()
        await parent.question(QUESTIONS_MAX + 1)
        parent.answer(QUESTIONS_MAX + 1, payload=text(b"!"))
        assert await again == b"!"

    asyncio.run(scenario())


def test_the_bytes_of_all_questions_together_are_bounded() -> None:
    async def scenario() -> None:
        parent = Parent()
        large = bytes(QUESTION_BYTES_MAX)
        asked = [parent.ask(large) for _ in range(ASKED_BYTES_MAX // QUESTION_BYTES_MAX)]
        await parent.question(len(asked))
        assert await refused(parent.ask(b"one more")) is Status.RESOURCE_EXHAUSTED
        parent.answer(1, payload="")
        assert await asked.pop(0) == b""
        asked.append(parent.ask(b"one more"))
        await parent.question(len(asked) + 1)
        parent.asking.close()
        for one in asked:
            assert await refused(one) is Status.UNAVAILABLE

    asyncio.run(scenario())


def test_a_question_that_is_kept_for_ever_ends() -> None:
    async def scenario() -> None:
        parent = Parent()
        asked = parent.ask()
        for number in range(1, ROUNDS_MAX + 1):
            await parent.question(number)
            parent.answer(number, keep=[])
        assert await refused(asked) is Status.INTERNAL

    asyncio.run(scenario())


def test_after_the_end_nobody_waits_and_nobody_asks() -> None:
    async def scenario() -> None:
        parent = Parent()
        asked = parent.ask()
        await parent.question(1)
        parent.asking.close()
        parent.asking.close()
        assert await refused(asked) is Status.UNAVAILABLE
        assert await refused(parent.ask()) is Status.UNAVAILABLE
        parent.answer(1, payload="")

    asyncio.run(scenario())


def test_a_piece_that_cannot_be_kept_fails_the_upload() -> None:
    async def scenario() -> None:
        parent = Parent()
        upload = parent.asking.converse(UPLOAD, Metadata())
        await upload.send(b"\x0a\x01a")
        assert await upload.receive() == b""
        parent.full = True
        with pytest.raises(StatusError):
            await upload.send(b"\x1a\x01b")
        with pytest.raises(StatusError) as raised:
            await upload.receive()
        assert raised.value.status is Status.RESOURCE_EXHAUSTED

    asyncio.run(scenario())


class Changing:
    """A desk whose one handler does as the test says."""

    def __init__(self, handler: Handler) -> None:
        self.handlers = {PATH: handler}
        self.changes = 0
        self.forgotten = 0
        self.failure: Exception | None = None

    def changed(self) -> None:
        self.changes += 1
        if self.failure is not None:
            raise self.failure

    def forget(self) -> None:
        self.forgotten += 1


class Child:
    """With a desk that is not looked at but for a reason, unless a test says otherwise."""

    def __init__(
        self, handler: Handler, hold_back_s: float = TIMEOUT_S, refresh_s: float = 3600.0
    ) -> None:
        self.desk = Changing(handler)
        self.answers: Queue[Mapping[str, Any]] = Queue()
        self.registry = Registry()
        self.answering = Answering(self.registry, hold_back_s, refresh_s=refresh_s)
        self.answering.open(self.desk)
        self.answering.start()

    def ask(self, number: int, path: str = PATH, within_s: float = 60.0) -> None:
        question = {"ask": number, "path": path, "payload": "", "within_s": within_s}
        self.answering.hear(question, self.answers.put)

    def heard(self) -> Mapping[str, Any]:
        return self.answers.get(timeout=TIMEOUT_S)


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (PermanentError("no request"), "INVALID_ARGUMENT"),
        (RetryableError("storage is away"), "UNAVAILABLE"),
        (KeyError("defect"), "INTERNAL"),
    ],
)
def test_what_a_handler_raises_is_told_as_a_status(error: Exception, status: str) -> None:
    def handler(_request: bytes) -> Outcome:
        raise error

    child = Child(handler)
    child.ask(1)
    assert child.heard()["status"] == status
    child.answering.stop(TIMEOUT_S)


def test_a_held_answer_is_given_when_storage_has_changed() -> None:
    known = False
    child = Child(lambda _request: Outcome(b"id", complete=known))
    child.ask(1)
    child.answering.applied()
    known = True
    child.answering.applied()
    assert child.heard() == {"answer": 1, "payload": text(b"id")}
    assert child.desk.changes >= 1
    child.answering.stop(TIMEOUT_S)


def test_a_held_answer_is_given_soon_when_another_node_has_changed_storage() -> None:
    known = False
    child = Child(lambda _request: Outcome(b"id" * known, complete=known), refresh_s=0.05)
    child.ask(1)
    eventually(lambda: child.answering.held == 1, TIMEOUT_S, "the answer is held back")
    known = True
    assert child.heard() == {"answer": 1, "payload": text(b"id")}
    child.answering.stop(TIMEOUT_S)


def test_storage_that_cannot_be_read_is_logged_once_and_asked_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    known = False
    child = Child(lambda _request: Outcome(b"id" * known, complete=known), refresh_s=0.01)
    child.desk.failure = RetryableError("the database is away")
    child.ask(1)
    eventually(lambda: child.desk.changes >= 3, TIMEOUT_S, "it is asked again and again")
    child.desk.failure = None
    known = True
    assert child.heard()["payload"] == text(b"id")
    child.answering.stop(TIMEOUT_S)
    assert caplog.text.count("storage cannot be asked for new ids") == 1


def test_a_change_that_comes_while_a_question_is_looked_at_is_not_missed() -> None:
    child: Child
    outcomes = [Outcome(b"", complete=False), Outcome(b"id")]

    def handler(_request: bytes) -> Outcome:
        outcome = outcomes.pop(0)
        if outcomes:
            child.answering.applied()
            eventually(lambda: child.desk.changes == 1, TIMEOUT_S, "storage was looked at")
        return outcome

    child = Child(handler)
    child.ask(1)
    assert child.heard() == {"answer": 1, "payload": text(b"id")}
    child.answering.stop(TIMEOUT_S)


def test_a_held_answer_is_given_as_it_is_when_its_time_is_over() -> None:
    child = Child(lambda _request: Outcome(b"partly", complete=False), hold_back_s=0.05)
    child.ask(1)
    child.ask(2)
    assert {child.heard()["answer"], child.heard()["answer"]} == {1, 2}
    child.answering.stop(TIMEOUT_S)


def test_nothing_is_held_longer_than_its_caller_waits() -> None:
    child = Child(lambda _request: Outcome(b"partly", complete=False), hold_back_s=3600)
    child.ask(1, within_s=0.1)
    assert child.heard()["payload"] == text(b"partly")
    child.answering.stop(TIMEOUT_S)


def test_a_receiver_that_is_gone_is_not_answered_and_its_claims_are_void() -> None:
    known = False
    child = Child(lambda _request: Outcome(b"id", complete=known))
    child.ask(1)
    eventually(lambda: child.answering.held == 1, TIMEOUT_S, "the answer is held back")
    child.answering.forget(child.answers.put)
    known = True
    child.answering.applied()
    child.ask(2)
    assert child.heard()["answer"] == 2
    assert child.desk.forgotten == 1
    child.answering.stop(TIMEOUT_S)


def test_what_is_kept_is_counted_by_scope() -> None:
    kept = (Inventory(InventoryScope.SERVICE, "shop"), Inventory(InventoryScope.SERVICE, "cart"))
    child = Child(lambda _request: Outcome(keep=kept))
    child.ask(1)
    assert [kind for kind, _ in child.heard()["keep"]] == [36, 36]
    assert 'registry_records_total{scope="service"} 2' in child.registry.render()
    child.answering.stop(TIMEOUT_S)


def test_stop_is_safe_twice_and_unstarted() -> None:
    answering = Answering(Registry())
    answering.stop(TIMEOUT_S)
    answering.stop(TIMEOUT_S)
    answering.hear({"ask": 1, "path": PATH, "payload": "", "within_s": 1.0}, lambda _answer: None)
