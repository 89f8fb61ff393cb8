"""A parked record back into the queue, by the one process that writes it: both ends of the line.

    to the receiver   {"readmit": 3, "producer": "parked-…",
                       "records": [[number, kind, <base64>], …]}
    and back          {"readmitted": 3, "kept": [[number, sequence], …],
                       "refused": [[number, why], …], "stopped": ""}

They go through the door that knows a satellite's resends (`resends`): a number that the queue has
already is acknowledged with the sequence null, and not appended twice. What is `kept` survives a
power cut, whatever the queue's policy is. `stopped` says why the rest was not tried.
"""

from __future__ import annotations

import asyncio
import json
import threading
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Final

from skyfarer.base.errors import PermanentError, RetryableError
from skyfarer.base.units import MIB
from skyfarer.oap.core.parked import Retry
from skyfarer.oap.receivers.lines import LINE_BYTES_MAX
from skyfarer.queue.errors import RecordTooLarge
from skyfarer.queue.writer import Writer
from skyfarer.wire.numbering import Numbered
from skyfarer.wire.routes import Append

TIMEOUT_S: Final = 30.0
RECORDS_MAX: Final = 256
BYTES_MAX: Final = 4 * MIB
"""Of one line's payloads; a single one may have more."""
RECORD_BYTES_MAX: Final = LINE_BYTES_MAX * 3 // 4 - MIB

_FIRST: Final = b'{"readmit"'

Say = Callable[[Mapping[str, Any]], None]


@dataclass
class Readmitted:
    """`kept`: number → sequence, None if the queue had it. `refused`: number → why it never will.
    `stopped`: why the others were not tried, if they were not."""

    kept: dict[int, int | None] = field(default_factory=dict)
    refused: dict[int, str] = field(default_factory=dict)
    stopped: str = ""


class Readmission:
    """The main process's end. Any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._say: Say | None = None
        self._numbers = count(1)
        self._asked: dict[int, Future[Mapping[str, Any]]] = {}

    def open(self, say: Say) -> None:
        """A receiver serves; `say` may block."""
        with self._lock:
            self._say = say

    def close(self) -> None:
        """It is gone, and who waits for it is told. Safe twice and unopened."""
        with self._lock:
            asked, self._asked, self._say = self._asked, {}, None
        for future in asked.values():
            future.set_exception(_away())

    def hear(self, message: Mapping[str, Any]) -> None:
        with self._lock:
            future = self._asked.pop(message["readmitted"], None)
        if future is not None:
            future.set_result(message)

    def readmit(
        self, producer: str, records: Sequence[Retry], timeout_s: float = TIMEOUT_S
    ) -> Readmitted:
        """Blocks. RetryableError when nothing is known of them: the same numbers may come again."""
        large = {
            one.number: f"{len(one.payload)} bytes are more than the {RECORD_BYTES_MAX} that a"
            " running OAP can be handed"
            for one in records
            if len(one.payload) > RECORD_BYTES_MAX
        }
        outcome = Readmitted(refused=large)
        if small := [one for one in records if one.number not in large]:
            answer = self._answer(producer, small, timeout_s)
            outcome.kept.update(dict(answer["kept"]))
            outcome.refused.update(dict(answer["refused"]))
            outcome.stopped = answer["stopped"]
        return outcome

    def _answer(
        self, producer: str, records: Sequence[Retry], timeout_s: float
    ) -> Mapping[str, Any]:
        future: Future[Mapping[str, Any]] = Future()
        with self._lock:
            say, number = self._say, next(self._numbers)
            if say is None:
                raise _away()
            self._asked[number] = future
        lines = [(one.number, one.kind, b64encode(one.payload).decode("ascii")) for one in records]
        say({"readmit": number, "producer": producer, "records": lines})
        try:
            return future.result(timeout_s)
        except FutureTimeoutError:
            raise RetryableError(f"the receiver did not answer in {timeout_s:.0f} s") from None
        finally:
            with self._lock:
                self._asked.pop(number, None)


class Readmitting:
    """The receiver's end, on its event loop. `append` is the door that knows numbers."""

    def __init__(self, say: Say, append: Append, queue: Writer) -> None:
        self._say = say
        self._append = append
        self._queue = queue

    async def hear(self, line: bytes) -> bool:
        """False if the line is for somebody else."""
        if not line.startswith(_FIRST):
            return False
        message = json.loads(line)
        outcome = Readmitted()
        for number, kind, payload in message["records"]:
            self._keep(outcome, message["producer"], number, kind, b64decode(payload))
            if outcome.stopped:
                break
        try:
            await asyncio.to_thread(self._queue.sync)
        except (RetryableError, PermanentError) as error:
            outcome.kept.clear()
            outcome.stopped = str(error)
        self._say(
            {
                "readmitted": message["readmit"],
                "kept": list(outcome.kept.items()),
                "refused": list(outcome.refused.items()),
                "stopped": outcome.stopped,
            }
        )
        return True

    def _keep(
        self, outcome: Readmitted, producer: str, number: int, kind: int, payload: bytes
    ) -> None:
        numbered = Numbered(producer, 0)
        numbered.add(payload, number)
        at = self._queue.writing
        try:
            self._append(kind, numbered)
        except RecordTooLarge as error:
            outcome.refused[number] = str(error)
        except (RetryableError, PermanentError, OSError) as error:
            outcome.stopped = str(error)
        else:
            outcome.kept[number] = at if self._queue.writing > at else None


def _away() -> RetryableError:
    return RetryableError("the receiver is not there just now, try again")
