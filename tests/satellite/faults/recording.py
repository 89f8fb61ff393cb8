"""An upstream made of grpcio that writes down every call it acknowledged, and how to read that.

`Upstream` is our own server on the test's event loop; this one is somebody else's, on threads, and
knows what our sender says about resends.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, NoReturn

import grpc

from skyfarer.testing.programs import free_port
from skyfarer.wire.rpc import BY_PATH, Streaming

STOP_S = 60.0
THREADS = 8


@dataclass(frozen=True)
class Call:
    path: str
    producer: str
    first: int
    payloads: tuple[bytes, ...]
    metadata: Mapping[str, str] = field(default_factory=dict)


class Refusal(Exception):  # noqa: N818 - an answer, not an error of ours
    def __init__(self, code: grpc.StatusCode, details: str) -> None:
        super().__init__(details)
        self.code = code
        self.details = details


Judge = Callable[[Call], None]


def welcome(call: Call) -> None:
    """Everything is."""


class RecordingUpstream:
    """`start` and `stop` as often as one likes, at one port; a stop cuts open calls off.

    `judge` sees a call when all of it is there, on one of several threads, and may wait, or refuse
    it with a `Refusal`. What it lets pass is in `calls`, even if the answer is lost on its way.
    """

    def __init__(self, judge: Judge = welcome, message_bytes_max: int | None = None) -> None:
        self.judge = judge
        self.port = free_port()
        self.calls: list[Call] = []
        self.refused: list[Call] = []
        self.starts = 0
        # grpcio ends the stream there as if it were whole: its handler has what came before.
        self._cuts = message_bytes_max is not None
        self._options: list[tuple[str, int]] = [("grpc.so_reuseport", 0)]
        if message_bytes_max is not None:
            self._options.append(("grpc.max_receive_message_length", message_bytes_max))
        self._writing = threading.Lock()
        self._server: grpc.Server | None = None

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def __enter__(self) -> RecordingUpstream:
        self.start()
        return self

    def __exit__(self, *failure: object) -> None:
        self.stop()

    def start(self) -> None:
        handler = _Handler(self._judged)
        pool = ThreadPoolExecutor(THREADS)
        self._server = grpc.server(pool, handlers=[handler], options=self._options)
        assert self._server.add_insecure_port(self.address) == self.port
        self._server.start()
        self.starts += 1

    def stop(self) -> None:
        server, self._server = self._server, None
        if server is not None:
            server.stop(None).wait(STOP_S)

    def payloads(self) -> list[bytes]:
        return [payload for call in self.calls for payload in call.payloads]

    def records(self) -> dict[tuple[str, int], bytes]:
        """Each record once, by producer and sequence, as `told_apart` does it."""
        with self._writing:
            return told_apart(self.calls, cut=self._cuts)

    def _judged(self, path: str, payloads: Sequence[bytes], context: grpc.ServicerContext) -> bytes:
        metadata = {key: str(value) for key, value in context.invocation_metadata()}
        producer = metadata.get("skyfarer-producer", "")
        first = int(metadata.get("skyfarer-first-sequence", -1))
        call = Call(path, producer, first, tuple(payloads), metadata)
        try:
            self.judge(call)
        except Refusal as refusal:
            with self._writing:
                self.refused.append(call)
            _abort(context, refusal)
        with self._writing:
            self.calls.append(call)
        return b""


def told_apart(calls: Iterable[Call], cut: bool = False) -> dict[tuple[str, int], bytes]:
    """Each record once, though some came twice. AssertionError unless all that came again was the
    whole of an earlier call, known by what it says of itself, with the same bytes. Of calls that
    were perhaps `cut` off only the bytes are looked at."""
    known: dict[tuple[str, int], bytes] = {}
    begun: dict[tuple[str, int, str], int] = {}
    for call in calls:
        assert call.producer and call.first >= 0, "a call that does not say what it carries"
        listed = call.metadata.get("skyfarer-sequences", "")
        name, count = (call.producer, call.first, listed), len(call.payloads)
        for number, payload in zip(numbers(call, listed), call.payloads, strict=True):
            key = call.producer, number
            if key in known:
                assert cut or name in begun, (
                    f"record {key} came again in a call that began elsewhere"
                )
                assert known[key] == payload, f"record {key} is not the same as before"
            known[key] = payload
        whole = begun.get(name, 0) <= count
        assert cut or whole, f"{name} came again with a part of its records only"
        begun[name] = count
    return known


def numbers(call: Call, listed: str) -> list[int]:
    """Of each message; one that is made of several records stands for its first."""
    if not listed:
        return list(range(call.first, call.first + len(call.payloads)))
    found: list[int] = []
    for item in re.findall(r"\([^)]*\)|[^,()]+", listed):
        first, _, last = item.strip("()").partition("-")
        first = first.partition(",")[0]
        alone = item.startswith("(") or not last
        found += [int(first)] if alone else range(int(first), int(last) + 1)
    return [call.first + number for number in found]


def _abort(context: grpc.ServicerContext, refusal: Refusal) -> NoReturn:
    context.abort(refusal.code, refusal.details)
    raise AssertionError("abort raises")


class _Handler(grpc.GenericRpcHandler):
    def __init__(self, judged: Callable[[str, Sequence[bytes], Any], bytes]) -> None:
        self._judged = judged

    def service(self, details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler | None:
        rpc = BY_PATH.get(details.method)
        if rpc is None:
            return None
        if rpc.streaming is Streaming.UNARY:
            return grpc.unary_unary_rpc_method_handler(
                lambda message, context: self._judged(rpc.path, (message,), context)
            )

        def collect(messages: Iterator[bytes], context: grpc.ServicerContext) -> bytes:
            return self._judged(rpc.path, tuple(messages), context)

        return grpc.stream_unary_rpc_method_handler(collect)
