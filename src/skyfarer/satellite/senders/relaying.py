"""Passing agents' questions to the upstreams: the next one is asked when one is not there."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace

from skyfarer.base.errors import RetryableError
from skyfarer.satellite.senders.upstreams import Upstream, Upstreams
from skyfarer.wire.metadata import Metadata, Pairs
from skyfarer.wire.relay import ClientRelay, Conversation
from skyfarer.wire.rpc import Rpc
from skyfarer.wire.status import Status, StatusError


class UpstreamRelay:
    """A `Relay`. An answer is an answer, errors included; only UNAVAILABLE moves on to the next.

    `find` makes upstreams known, `credentials` are ours, for callers that bring none.
    """

    def __init__(
        self,
        upstreams: Upstreams,
        find: Callable[[], Awaitable[None]],
        credentials: Callable[[], Pairs],
        timeout_s: float,
    ) -> None:
        self._upstreams = upstreams
        self._find = find
        self._credentials = credentials
        self._timeout_s = timeout_s

    async def ask(self, rpc: Rpc, message: bytes, metadata: Metadata) -> bytes:
        loop = asyncio.get_running_loop()
        allowed_s = min(self._timeout_s, metadata.timeout_s or self._timeout_s)
        deadline = loop.time() + allowed_s
        failure = StatusError(Status.UNAVAILABLE, "no upstream is known")
        tried: set[Upstream] = set()
        try:
            await self._find()
            self._upstreams.next_turn()
            while (upstream := self._upstreams.choose(tried)) and loop.time() < deadline:
                left = replace(metadata, timeout_s=deadline - loop.time())
                tried.add(upstream)
                try:
                    return await self._ask(upstream, rpc, message, left)
                except StatusError as error:
                    failure = error
                    if error.status is not Status.UNAVAILABLE:
                        break
        except RetryableError as error:
            failure = StatusError(Status.UNAVAILABLE, str(error))
        raise failure

    async def _ask(self, upstream: Upstream, rpc: Rpc, message: bytes, metadata: Metadata) -> bytes:
        try:
            answer = await self._through(upstream).ask(rpc, message, metadata)
        except StatusError as error:
            if error.status is Status.UNAVAILABLE:
                self._upstreams.failed(upstream, error)
            raise
        self._upstreams.answered(upstream)
        return answer

    def converse(self, rpc: Rpc, metadata: Metadata) -> Conversation:
        self._upstreams.next_turn()
        upstream = self._upstreams.choose()
        if upstream is None:
            return _Nobody()
        return self._through(upstream).converse(rpc, metadata)

    def _through(self, upstream: Upstream) -> ClientRelay:
        return ClientRelay(lambda: upstream.client, self._credentials)


class _Nobody:
    """A conversation that nobody answers."""

    async def send(self, message: bytes) -> None:
        raise StatusError(Status.UNAVAILABLE, "no upstream is known")

    async def end(self) -> None:
        raise StatusError(Status.UNAVAILABLE, "no upstream is known")

    async def receive(self) -> bytes | None:
        raise StatusError(Status.UNAVAILABLE, "no upstream is known")

    def cancel(self) -> None:
        """There is nothing to cancel."""
