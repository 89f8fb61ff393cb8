"""The socket by which a command speaks with the OAP whose data directory it was told.

    → {"ask": "parked.list", "limit": 50}           one line, then nothing more
    ← {"entry": {…}}                                 as many as the answer has
    ← {"error": "…"}  or  {"done": true}             the last one: without it the answer is cut off

A killed OAP leaves the socket behind; nobody listens there, and the next one replaces it. It makes
it when the storage file is its own, so nobody else does.
"""

from __future__ import annotations

import json
import logging
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from skyfarer.base.errors import PermanentError, RetryableError, SkyfarerError
from skyfarer.base.units import MIB
from skyfarer.oap.receivers.inner import bind, short_name

SOCKET_NAME: Final = "oap.sock"
CLIENTS_MAX: Final = 4
QUESTION_BYTES_MAX: Final = 4 * MIB
ANSWER_BYTES_MAX: Final = 128 * MIB
"""Of one line: a record in base64, the largest that a queue can be set to hold."""
CLIENT_TIMEOUT_S: Final = 10.0
ANSWER_TIMEOUT_S: Final = 120.0
"""For one line: more than the longest step of any answer takes."""

Answers = Iterator[Mapping[str, Any]]
Verb = Callable[[Mapping[str, Any]], Answers]

log = logging.getLogger(__name__)


class Door:
    """`verbs` are called on threads of the door's own, several at once; one whose asker has gone
    away is closed where it yields. `stop` is safe twice and unstarted, and cuts askers off. What
    goes wrong with the socket is said, not raised: the OAP works without it."""

    def __init__(self, directory: Path, verbs: Mapping[str, Verb]) -> None:
        self._path = directory / SOCKET_NAME
        self._verbs = verbs
        self._listener: socket.socket | None = None
        self._accepting = threading.Thread(target=self._accept, name="admin", daemon=True)
        self._lock = threading.Lock()
        self._clients: dict[socket.socket, threading.Thread] = {}

    def start(self) -> None:
        try:
            self._listener = bind(self._path)
        except OSError as error:
            log.warning("no command can reach this OAP: %s: %s", self._path, error)
            return
        self._accepting.start()

    def stop(self, timeout_s: float) -> None:
        listener, self._listener = self._listener, None
        if listener is None:
            return
        listener.shutdown(socket.SHUT_RDWR)  # wakes the thread that accepts; closing would not
        self._accepting.join(timeout_s)
        listener.close()
        self._path.unlink(missing_ok=True)
        with self._lock:
            clients = dict(self._clients)
        for client, thread in clients.items():
            _cut(client)
            thread.join(timeout_s)

    def _accept(self) -> None:
        while (listener := self._listener) is not None:
            try:
                client, _ = listener.accept()
            except OSError:
                return  # stopped
            with self._lock:
                if len(self._clients) >= CLIENTS_MAX:
                    _refuse(client)
                    continue
                thread = threading.Thread(target=self._serve, args=(client,), daemon=True)
                self._clients[client] = thread
            thread.start()

    def _serve(self, client: socket.socket) -> None:
        try:
            client.settimeout(CLIENT_TIMEOUT_S)
            for answer in self._answers(_question(client)):
                client.sendall(json.dumps(answer).encode() + b"\n")
        except OSError:
            log.debug("a command went away", exc_info=True)
        finally:
            with self._lock:
                del self._clients[client]
            client.close()

    def _answers(self, line: bytes) -> Answers:
        try:
            question = _parsed(line)
            verb = self._verbs.get(question["ask"])
            if verb is None:
                raise PermanentError(
                    f"this OAP knows no '{question['ask']}': it is of an older day"
                )
            yield from verb(question)
        except SkyfarerError as error:
            yield {"error": str(error)}
        except OSError:
            raise
        except Exception:
            log.exception("a command cannot be answered")
            yield {"error": "internal error, see the log of the OAP"}
        else:
            yield {"done": True}


def ask(directory: Path, question: Mapping[str, Any]) -> Answers:
    """For a command: the answers of the OAP with its data there. Blocks between them.

    PermanentError when no OAP runs there, when it refuses, or when it goes away meanwhile.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(ANSWER_TIMEOUT_S)
        try:
            with short_name(directory / SOCKET_NAME) as name:
                connection.connect(name)
        except OSError as error:
            raise PermanentError(
                f"no OAP with its data in {directory} answers: {error.strerror or error};"
                " start it, or name its directory with --data-dir or its file with --config"
            ) from error
        with suppress(ConnectionError):  # it may have refused already: it is heard
            connection.sendall(json.dumps(question).encode() + b"\n")
        with connection.makefile("rb") as lines:
            yield from _heard(lines, directory)


def _heard(lines: Any, directory: Path) -> Answers:
    while True:
        try:
            line = lines.readline(ANSWER_BYTES_MAX)
        except ConnectionError:
            line = b""
        except OSError as error:
            raise RetryableError(
                f"the OAP with its data in {directory} is silent: {error}"
            ) from error
        if not line.endswith(b"\n"):
            raise RetryableError(f"the OAP with its data in {directory} went away; ask it again")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise PermanentError(f"the OAP answers: {answer['error']}")
        if answer.get("done"):
            return
        yield answer


def _question(client: socket.socket) -> bytes:
    """OSError when it does not come in time; what is too long is cut, and makes no sense then."""
    with client.makefile("rb") as lines:
        return lines.readline(QUESTION_BYTES_MAX)


def _parsed(line: bytes) -> dict[str, Any]:
    try:
        question = json.loads(line)
    except ValueError:
        question = None
    if not isinstance(question, dict) or not isinstance(question.get("ask"), str):
        raise PermanentError('a question is one line of JSON with an "ask" in it')
    return question


def _refuse(client: socket.socket) -> None:
    with client, suppress(OSError):
        client.settimeout(0.0)
        client.sendall(b'{"error": "too many commands ask at once, try again"}\n')


def _cut(client: socket.socket) -> None:
    try:
        client.shutdown(socket.SHUT_RDWR)
    except OSError:
        log.debug("a command had gone already", exc_info=True)
