"""Nodes registered in etcd, each by a key under a lease.

Every round renews the lease and reads the keys. A lease that is gone, because the node was silent
for too long or etcd was emptied, is asked for anew, and the key is written again; so is a key that
somebody deleted. Changes are watched from the revision that was read, so that none is missed
between the two; a watch that ended is opened again by the next round.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from skyfarer.base.errors import ConfigError, SkyfarerError
from skyfarer.oap.cluster.etcd import layout
from skyfarer.oap.cluster.etcd.client import Etcd, LeaseGoneError, Watching
from skyfarer.oap.cluster.membership import NODES_MAX, Found
from skyfarer.oap.core.cluster import Node
from skyfarer.wire.tls import ClientTlsSettings

log = logging.getLogger(__name__)

KIND: Final = "etcd"
LEASE_S: Final = 30


@dataclass(frozen=True)
class EtcdSettings:
    """Without a `user` nobody is authenticated. etcd gives no lease below some two seconds."""

    endpoints: str = "localhost:2379"
    namespace: str = "/skywalking"
    service_name: str = "SkyWalking_OAP_Cluster"
    user: str = ""
    password: str = field(default="", repr=False)
    lease_s: int = LEASE_S
    tls: ClientTlsSettings | None = None


class EtcdRegistrar:
    """A Registrar."""

    kind = KIND

    def __init__(self, settings: EtcdSettings) -> None:
        self.where = f"etcd at {settings.endpoints}"
        self.timeout_s = float(settings.lease_s)
        self._settings = settings
        found = endpoints(settings.endpoints, settings.tls is not None)
        self._etcd = Etcd(found, settings.user, settings.password, settings.tls)
        self._prefix = layout.prefix(settings.namespace, settings.service_name)
        self._after = layout.after(self._prefix)
        self._key = b""
        self._lease = 0
        self._watching: Watching | None = None
        self._changed: Callable[[], None] = lambda: None
        self._strange: set[bytes] = set()

    def open(self, changed: Callable[[], None]) -> None:
        self._changed = changed

    def close(self, timeout_s: float) -> None:
        """The key goes with its lease."""
        if self._watching is not None:
            self._watching.end()
        lease, self._lease = self._lease, 0
        if lease and timeout_s > 0:
            try:
                self._etcd.revoke(lease, timeout_s)
            except SkyfarerError as error:
                log.warning("%s; the registration ends by itself", error)
        self._etcd.close()

    def round(self, own: Node | None) -> Found:
        anew = own is not None and not self._renewed()
        if own is not None and anew:
            self._write(own)
        answer = self._etcd.range(self._prefix, self._after, NODES_MAX + 1)
        if own is not None and self._key not in {pair.key for pair in answer.kvs}:
            self._write(own)
            answer, anew = self._etcd.range(self._prefix, self._after, NODES_MAX + 1), True
        self._watch_from(answer.header.revision + 1)
        return Found(tuple(self._nodes([(pair.key, pair.value) for pair in answer.kvs])), anew)

    def _renewed(self) -> bool:
        """Whether the lease we had is still ours."""
        if not self._lease:
            return False
        try:
            self._etcd.keep_alive(self._lease)
        except LeaseGoneError:
            self._lease = 0
        return bool(self._lease)

    def _write(self, own: Node) -> None:
        if not self._lease:
            self._lease = self._etcd.grant(self._settings.lease_s)
        if not self._key:
            self._key = layout.key(self._prefix, own)
        value = layout.written(own, self._settings.service_name)
        try:
            self._etcd.put(self._key, value, self._lease)
        except LeaseGoneError:
            self._lease = 0
            raise

    def _watch_from(self, revision: int) -> None:
        if self._watching is None or self._watching.over:
            self._watching = self._etcd.watch(self._prefix, self._after, revision, self._changed)

    def _nodes(self, pairs: Sequence[tuple[bytes, bytes]]) -> list[Node]:
        found = {key: layout.read(value) for key, value in pairs}
        strange = {key for key, node in found.items() if node is None}
        for key in strange - self._strange:
            log.warning("%s: %r is no registration of a node", self.where, key)
        self._strange = strange
        return [node for node in found.values() if node is not None]


def endpoints(written: str, secured: bool = False) -> list[str]:
    """Of host:port, host:port; ConfigError when there is none, or one that asks for what `secured`
    does not say: a scheme is no more than a promise."""
    plain, refused = ("ip", "dns", "https" if secured else "http"), "http" if secured else "https"
    found = []
    for one in filter(None, (part.strip() for part in written.split(","))):
        scheme, separator, rest = one.partition("://")
        if separator and scheme == refused:
            raise ConfigError(f"endpoints has {one!r}, but sslEnabled is {str(secured).lower()}")
        if separator and scheme not in plain:
            raise ConfigError(f"endpoints has {one!r}; etcd is spoken to as host:port")
        found.append((rest if separator else one).strip("/"))
    if not found:
        raise ConfigError("endpoints must name etcd's, as in localhost:2379")
    return found
