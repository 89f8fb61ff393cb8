"""Nodes registered in ZooKeeper, each by an ephemeral node of its session.

kazoo keeps the connection and the session, and nothing else of it is used: its recipes for watches
end for ever when the watched path is deleted. Every round lists the path and asks for a watch;
whatever the watch says, the next round finds out.

A session that was lost for its whole time is not waited for any longer: the client is thrown away
for one that remembers nothing. A server whose data was deleted refuses a client that has seen more
transactions than there are, and kazoo would come back with the same number for ever (its issue 42).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from threading import Thread
from typing import Any, Final
from uuid import uuid4

from kazoo.exceptions import (
    ConnectionClosedError,
    ConnectionLoss,
    KazooException,
    NoAuthError,
    NodeExistsError,
    NoNodeError,
    SessionExpiredError,
)
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.security import make_acl, make_digest_acl

from skyfarer.base.clock import Clock, SystemClock
from skyfarer.base.errors import PermanentError, RetryableError
from skyfarer.oap.cluster.membership import NODES_MAX, Found
from skyfarer.oap.cluster.zookeeper import layout
from skyfarer.oap.cluster.zookeeper.secured import SecuredHandler
from skyfarer.oap.cluster.zookeeper.session import Session
from skyfarer.oap.core.cluster import Node
from skyfarer.wire.tls import ClientTls, ClientTlsSettings

log = logging.getLogger(__name__)
# kazoo warns of every attempt to connect; a membership says once that there is none.
kazoo_log = log.getChild("kazoo")
kazoo_log.setLevel(logging.ERROR)

KIND: Final = "zookeeper"
CALL_TIMEOUT_S: Final = 5.0


@dataclass(frozen=True)
class ZooKeeperSettings:
    """`expression` is user:password of whoever alone may change what is written, or empty. Servers
    shorten a session to 20 of their ticks, 40 s as they come, or to what they are told."""

    hosts: str = "localhost:2181"
    namespace: str = ""
    expression: str = field(default="", repr=False)
    retry_base_s: float = 1.0
    session_timeout_s: float = 10.0
    tls: ClientTlsSettings | None = None


class ZooKeeper:
    """A Registrar. `timeout_s` is what was asked for until a server has said what it gives."""

    kind = KIND

    def __init__(self, settings: ZooKeeperSettings, clock: Clock | None = None) -> None:
        self.where = f"ZooKeeper at {settings.hosts}"
        self.timeout_s = settings.session_timeout_s
        self._settings = settings
        self._clock = clock or SystemClock()
        self._path = layout.service_path(settings.namespace)
        self._id = str(uuid4())
        self._client: Session | None = None
        self._connected_s = 0.0
        self._changed: Callable[[], None] = lambda: None
        self._known: Mapping[str, Node | None] = {}

    def open(self, changed: Callable[[], None]) -> None:
        self._changed = changed
        self._connect()

    def close(self, timeout_s: float) -> None:
        """The server ends the session with the connection, and the registration with it. One that
        is silent is waited for in the background."""
        client, self._client = self._client, None
        if client is None:
            return
        ending = Thread(target=self._discard, args=[client], name="zookeeper-end", daemon=True)
        ending.start()
        ending.join(timeout_s)
        if ending.is_alive():
            log.warning("%s does not answer: the session ends by itself", self.where)

    def round(self, own: Node | None) -> Found:
        client = self._living()
        self.timeout_s = client.lasts_s
        try:
            names = self._names(client)
            anew = own is not None and self._ensure(client, own, names)
            if anew:
                names = self._names(client)
            self._known = self._read(client, names)
        except (ConnectionLoss, ConnectionClosedError, SessionExpiredError) as error:
            raise RetryableError(f"{self.where} is lost: {type(error).__name__}") from error
        except KazooTimeoutError as error:
            raise RetryableError(f"{self.where} does not answer") from error
        except NoAuthError as error:
            raise PermanentError(self._denied()) from error
        except KazooException as error:
            raise RetryableError(f"{self.where} refuses: {error!r}") from error
        return Found(tuple(filter(None, self._known.values())), anew)

    def _connect(self) -> None:
        if self._client is not None:
            self._discard(self._client)
        self._client, self._known = None, {}
        if self._settings.tls is not None:
            ClientTls(self._settings.tls).context()  # here, where a wrong file is told of
        client = self._new_client()
        client.add_listener(lambda _state: self._changed())
        try:
            client.start(timeout=min(CALL_TIMEOUT_S, self.timeout_s))
        except KazooTimeoutError as error:
            self._discard(client)
            raise RetryableError(self._unreached(client)) from error
        self._client = client
        self._connected_s = self._clock.monotonic_s()

    def _new_client(self) -> Session:
        """kazoo tries to connect for as long as the client lives."""
        settings = self._settings
        pauses = {"delay": min(settings.retry_base_s, self.timeout_s / 4), "max_tries": -1}
        try:
            return Session(
                settings.hosts,
                timeout=settings.session_timeout_s,
                connection_retry={**pauses, "max_delay": self.timeout_s / 4},
                logger=kazoo_log,
                handler=SecuredHandler(settings.tls) if settings.tls is not None else None,
                default_acl=_acl(settings.expression),
                auth_data=[("digest", settings.expression)] if settings.expression else None,
            )
        except ValueError as error:
            raise PermanentError(
                f"hostPort is {settings.hosts!r}, which is not host:port,host:port: {error}"
            ) from error

    def _discard(self, client: Session) -> None:
        """Its threads and its files, too."""
        try:
            client.stop()
        except KazooException as error:
            log.warning("%s: the session ends by itself: %r", self.where, error)
        client.close()

    def _living(self) -> Session:
        """A connected client, or RetryableError."""
        now_s = self._clock.monotonic_s()
        if self._client is not None and self._client.connected:
            self._connected_s = now_s
        elif self._client is None or now_s - self._connected_s > self.timeout_s:
            self._connect()
        else:
            raise RetryableError(f"{self.where} is not connected")
        assert self._client is not None
        return self._client

    def _names(self, client: Session) -> Sequence[str]:
        """Of all registrations; a change to them calls `changed`, once."""
        try:
            names = _call(client.get_children_async, self._path, watch=self._on_event)
        except NoNodeError:
            _call(client.ensure_path_async, self._path)
            names = _call(client.get_children_async, self._path, watch=self._on_event)
        return sorted(names)[: NODES_MAX + 1]

    def _ensure(self, client: Session, own: Node, names: Sequence[str]) -> bool:
        """Whether it had to be made. One of an earlier session goes with that session, and so is
        no registration."""
        path = f"{self._path}/{self._id}"
        session_id = client.client_id[0] if client.client_id else None
        if self._id in names:
            found = _call(client.exists_async, path)
            if found is not None and found.ephemeralOwner == session_id:
                return False
            if found is not None:
                _call(client.delete_async, path)
        data = layout.written(own, self._id, self._clock.now_ms())
        try:
            _call(client.create_async, path, data, ephemeral=True, makepath=True)
        except NodeExistsError as error:
            raise RetryableError(f"{self.where} has {path} already; once more") from error
        return True

    def _read(self, client: Session, names: Sequence[str]) -> Mapping[str, Node | None]:
        """What is below a random id never changes. A name that is gone by now may come back: one
        that registers anew has the id that it had."""
        found: dict[str, Node | None] = {}
        for name in names:
            if name in self._known:
                found[name] = self._known[name]
                continue
            try:
                data, _ = _call(client.get_async, f"{self._path}/{name}")
            except NoNodeError:
                continue
            found[name] = layout.read(data)
            if found[name] is None:
                log.warning("%s: %s/%s is no registration of a node", self.where, self._path, name)
        return found

    def _on_event(self, _event: Any) -> None:
        self._changed()

    def _unreached(self, client: Session) -> str:
        """A server that wants TLS leaves plain text unanswered, and one that asks for a certificate
        says little or nothing."""
        said, tls = getattr(client.handler, "trouble", ""), self._settings.tls
        more = f": {said}" if said else "; see SW_CLUSTER_ZK_HOST_PORT"
        if tls is None:
            more += "; if it wants TLS: set sslEnabled"
        elif tls.certificate_file is None:
            more += "; if it asks for a certificate: set sslCertChainPath and sslKeyPath"
        return f"{self.where} cannot be reached{more}"

    def _denied(self) -> str:
        return (
            f"{self.where} does not let this node write below {self._path}: whoever made it had"
            " another user or password; see enableACL and expression (SW_ZK_EXPRESSION)"
        )


def _acl(expression: str) -> list[Any] | None:
    """None is kazoo's own: anyone may do anything."""
    if not expression:
        return None
    user, _, password = expression.partition(":")
    return [make_digest_acl(user, password, all=True), make_acl("world", "anyone", read=True)]


def _call(ask: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """kazoo's blocking calls wait for a connection without a bound."""
    return ask(*args, **kwargs).get(timeout=CALL_TIMEOUT_S)
