"""etcd's own gRPC, as much of it as membership takes.

One of several endpoints is spoken to until it fails, then the next. A channel is closed after a
failure and never used again: gRPC would make whoever comes back to it wait for up to two minutes.

Where etcd asks who we are, a token is asked for with user and password and sent with every call. It
is forgotten by etcd at a restart, and when users or roles change; then a new one is asked for, and
the call is made once more.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from threading import Event, Thread
from typing import Any, Final, TypeVar

# gRPC would close its own descriptors around every fork of this process, Spark's JVM being one, in
# the middle of a call. Whoever is forked here becomes another program at once and needs no gRPC.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")

import grpc
from google.protobuf.message import Message

from skyfarer.base.errors import PermanentError, RetryableError
from skyfarer.oap.cluster.etcd.channels import Channels
from skyfarer.wire.generated import etcd_pb2 as wire
from skyfarer.wire.tls import ClientTlsSettings

log = logging.getLogger(__name__)

T = TypeVar("T")
M = TypeVar("M", bound=Message)

PACKAGE: Final = "/etcdserverpb"

CALL_TIMEOUT_S: Final = 3.0
OLD_TOKEN: Final = "revision of auth store is old"
REFUSALS: Final = (
    grpc.StatusCode.PERMISSION_DENIED,
    grpc.StatusCode.UNAUTHENTICATED,
    grpc.StatusCode.INVALID_ARGUMENT,
    grpc.StatusCode.FAILED_PRECONDITION,
    grpc.StatusCode.UNIMPLEMENTED,
)


class LeaseGoneError(RetryableError):
    """etcd has no such lease any more."""


class Etcd:
    """One thread at a time; each call is bounded by CALL_TIMEOUT_S. RetryableError: another
    endpoint may answer, and is asked next time. PermanentError: etcd will not do it."""

    def __init__(
        self,
        endpoints: Sequence[str],
        user: str = "",
        password: str = "",
        tls: ClientTlsSettings | None = None,
    ) -> None:
        self._endpoints = tuple(endpoints)
        self._channels = Channels(tls)
        self._user, self._password = user, password
        self._turn = 0
        self._channel: grpc.Channel | None = None
        self._token = ""

    @property
    def endpoint(self) -> str:
        return self._endpoints[self._turn % len(self._endpoints)]

    def range(self, key: bytes, range_end: bytes, limit: int) -> wire.RangeResponse:
        request = wire.RangeRequest(key=key, range_end=range_end, limit=limit)
        return self._unary("KV/Range", request, wire.RangeResponse)

    def put(self, key: bytes, value: bytes, lease: int) -> None:
        request = wire.PutRequest(key=key, value=value, lease=lease)
        self._unary("KV/Put", request, wire.PutResponse)

    def grant(self, ttl_s: int) -> int:
        request = wire.LeaseGrantRequest(TTL=ttl_s)
        return self._unary("Lease/LeaseGrant", request, wire.LeaseGrantResponse).ID

    def keep_alive(self, lease: int) -> None:
        """Once. LeaseGoneError when it was too late. The stream that etcd offers is asked as a
        plain call, question and answer: it ends by its deadline whatever other threads do."""
        request = wire.LeaseKeepAliveRequest(ID=lease)
        renewed = self._unary("Lease/LeaseKeepAlive", request, wire.LeaseKeepAliveResponse)
        if renewed.TTL <= 0:
            raise LeaseGoneError(f"etcd at {self.endpoint} has no lease {lease:x}")

    def revoke(self, lease: int, timeout_s: float) -> None:
        request = wire.LeaseRevokeRequest(ID=lease)
        self._unary("Lease/LeaseRevoke", request, wire.LeaseRevokeResponse, timeout_s)

    def watch(
        self, key: bytes, range_end: bytes, revision: int, changed: Callable[[], None]
    ) -> Watching:
        """Of all that happens from this revision on."""
        create = wire.WatchCreateRequest(key=key, range_end=range_end, start_revision=revision)
        stream = self._open().stream_stream(
            f"{PACKAGE}.Watch/Watch",
            wire.WatchRequest.SerializeToString,
            wire.WatchResponse.FromString,
        )
        return Watching(
            partial(stream, metadata=self._metadata()),
            wire.WatchRequest(create_request=create),
            changed,
        )

    def close(self) -> None:
        """Ends streams, too. A later call opens a channel again.

        gRPC waits for the end of each stream with no bound of its own, and a node must go on.
        """
        channel, self._channel, self._token = self._channel, None, ""
        if channel is not None:
            closing = Thread(target=channel.close, name="etcd-close", daemon=True)
            closing.start()
            closing.join(CALL_TIMEOUT_S)

    def _unary(
        self, path: str, request: Message, answer: type[M], timeout_s: float = CALL_TIMEOUT_S
    ) -> M:
        def ask(channel: grpc.Channel, **more: Any) -> M:
            return _asked(channel, path, request, answer, **more)

        return self._call(ask, timeout_s)

    def _call(self, make: Callable[..., T], timeout_s: float = CALL_TIMEOUT_S) -> T:
        try:
            return self._authenticated(make, timeout_s)
        except grpc.RpcError as error:
            raise self._failure(error) from error

    def _authenticated(self, make: Callable[..., T], timeout_s: float) -> T:
        channel = self._open()
        if self._user and not self._token:
            self._token = self._authenticate(channel)
        try:
            return make(channel, timeout=timeout_s, metadata=self._metadata())
        except grpc.RpcError as error:
            if not self._user or not _of_token(error):
                raise
        self._token = self._authenticate(channel)
        return make(channel, timeout=timeout_s, metadata=self._metadata())

    def _authenticate(self, channel: grpc.Channel) -> str:
        request = wire.AuthenticateRequest(name=self._user, password=self._password)
        answer = wire.AuthenticateResponse
        more = {"timeout": CALL_TIMEOUT_S}
        return _asked(channel, "Auth/Authenticate", request, answer, **more).token

    def _metadata(self) -> tuple[tuple[str, str], ...]:
        return (("token", self._token),) if self._token else ()

    def _open(self) -> grpc.Channel:
        if self._channel is None:
            self._channel = self._channels.open(self.endpoint)
        return self._channel

    def _failure(self, error: grpc.RpcError) -> Exception:
        code, details = error.code(), error.details()
        if code is grpc.StatusCode.NOT_FOUND:
            return LeaseGoneError(f"etcd at {self.endpoint}: {details}")
        if code in REFUSALS and not _of_token(error):
            return PermanentError(f"etcd at {self.endpoint} refuses: {details}")
        failed, advice = self.endpoint, self._channels.advice
        self.close()
        self._turn += 1
        return RetryableError(f"etcd at {failed} does not answer: {details} ({code.name}){advice}")


class Watching:
    """A stream of changes. `changed` is called for each, and at its end, on a thread of its own."""

    def __init__(
        self,
        open_stream: Callable[[Iterator[wire.WatchRequest]], Any],
        create: wire.WatchRequest,
        changed: Callable[[], None],
    ) -> None:
        self._create = create
        self._changed = changed
        self._over = Event()
        self._stream = open_stream(self._requests())
        Thread(target=self._listen, name="etcd-watch", daemon=True).start()

    @property
    def over(self) -> bool:
        return self._over.is_set()

    def end(self) -> None:
        self._over.set()
        self._stream.cancel()

    def _requests(self) -> Iterator[wire.WatchRequest]:
        """etcd ends a watch whose requests have ended."""
        yield self._create
        self._over.wait()

    def _listen(self) -> None:
        try:
            for response in self._stream:
                if response.canceled:
                    break
                if response.events:
                    self._changed()
        except grpc.RpcError as error:
            log.debug("the watch has ended: %s", error)
        self._over.set()
        self._changed()


def _asked(channel: grpc.Channel, path: str, request: Message, answer: type[M], **more: Any) -> M:
    ask = channel.unary_unary(
        f"{PACKAGE}.{path}", type(request).SerializeToString, answer.FromString
    )
    answered: M = ask(request, **more)
    return answered


def _of_token(error: grpc.RpcError) -> bool:
    """Whether a new token may help."""
    return error.code() is grpc.StatusCode.UNAUTHENTICATED or OLD_TOKEN in (error.details() or "")
