"""A client of kazoo's that tells for how long the server remembers it.

A server may shorten what was asked for, and says so once, when a connection is made. kazoo reads
it to time its pings and keeps it to itself, so what makes its connections is replaced.
"""

from __future__ import annotations

from typing import Any

from kazoo.client import KazooClient
from kazoo.protocol.connection import ConnectionHandler
from kazoo.protocol.serialization import Connect


class Session(KazooClient):  # type: ignore[misc]  # kazoo has no types
    """`lasts_s` is of the connection that was made last, and before any what is asked for."""

    def __init__(self, hosts: str, timeout: float, **more: Any) -> None:
        super().__init__(hosts, timeout=timeout, **more)
        self.lasts_s = timeout
        self._connection = _Connection(self, self._conn_retry.copy(), logger=self.logger)


class _Connection(ConnectionHandler):  # type: ignore[misc]  # kazoo has no types
    def _invoke(self, timeout: float, request: Any, xid: int | None = None) -> Any:
        answer = super()._invoke(timeout, request, xid)
        if isinstance(request, Connect) and answer[0].time_out > 0:
            self.client.lasts_s = answer[0].time_out / 1000
        return answer
