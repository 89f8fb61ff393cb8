"""The addresses a client sends to: who is there, who answers, and whose turn it is.

An upstream that fails is left out for a while, which grows with each further failure; one success
brings it back. While all are left out, the one whose time is up next is tried, and no other: an
outage of everybody costs one attempt at a time.

A key is given to the upstream with the highest score of key and address together (rendezvous
hashing): when one is left out its keys spread over the others and come back later, and no other key
moves.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Sequence
from random import Random
from zlib import crc32

from skyfarer.base.backoff import Backoff, BackoffSettings
from skyfarer.base.clock import Clock
from skyfarer.satellite.senders.finding import Endpoint
from skyfarer.telemetry import table
from skyfarer.telemetry.metrics import Registry
from skyfarer.wire.client import GrpcClient

log = logging.getLogger(__name__)

EJECTION = BackoffSettings(initial_s=1.0, maximum_s=30.0)
LEAVING_TIMEOUT_S = 20.0
_MASK = 2**64 - 1


class Upstream:
    def __init__(self, endpoint: Endpoint, client: GrpcClient, backoff: Backoff) -> None:
        self.endpoint = endpoint
        self.client = client
        self.backoff = backoff
        self.ejected_until_s: float | None = None
        self._seed = crc32(str(endpoint).encode()) << 32

    def score(self, key: bytes) -> int:
        """SplitMix64's last steps: a CRC alone prefers some addresses to others."""
        mixed = (self._seed ^ crc32(key)) * 0x9E3779B97F4A7C15 & _MASK
        mixed = (mixed ^ mixed >> 30) * 0xBF58476D1CE4E5B9 & _MASK
        mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EB & _MASK
        return mixed ^ mixed >> 31


class Upstreams:
    """One event loop. A client is started when its address becomes known, stopped when it goes."""

    def __init__(
        self,
        connect: Callable[[Endpoint], GrpcClient],
        clock: Clock,
        random: Random,
        registry: Registry,
    ) -> None:
        self._connect = connect
        self._clock = clock
        self._random = random
        self._registry = registry
        self._known: dict[Endpoint, Upstream] = {}
        self._leaving: set[asyncio.Task[None]] = set()
        self._turn = 0

    def __len__(self) -> int:
        return len(self._known)

    async def become(self, endpoints: Collection[Endpoint]) -> None:
        """From now on these and no others; calls open at one that goes have a while to end."""
        for endpoint in [one for one in self._known if one not in endpoints]:
            gone = self._known.pop(endpoint)
            self._restore(gone)
            task = asyncio.create_task(gone.client.stop(LEAVING_TIMEOUT_S))
            self._leaving.add(task)
            task.add_done_callback(self._leaving.discard)
        for endpoint in endpoints:
            if endpoint not in self._known:
                backoff = Backoff(EJECTION, self._random)
                upstream = Upstream(endpoint, self._connect(endpoint), backoff)
                await upstream.client.start()
                self._known[endpoint] = upstream

    async def stop(self, timeout_s: float) -> None:
        known, self._known = list(self._known.values()), {}
        for upstream in known:
            self._restore(upstream)
        stops = (upstream.client.stop(timeout_s) for upstream in known)
        leaving = set(self._leaving)
        for task in leaving:
            task.cancel()
        await asyncio.gather(*stops)
        if leaving:
            await asyncio.wait(leaving)

    def next_turn(self) -> None:
        self._turn += 1

    def choose(self, tried: Collection[Upstream] = (), key: bytes = b"") -> Upstream | None:
        """Of those that answer and are not `tried` yet: the key's own, or whose turn it is.

        None when there is no further one to try.
        """
        now_s = self._clock.monotonic_s()
        fit = [one for one in self._in_turn() if one not in tried and _answers(one, now_s)]
        if fit:
            return max(fit, key=lambda one: one.score(key)) if key else fit[0]
        return None if tried else self._next_back()

    def failed(self, upstream: Upstream, why: object) -> None:
        if self._known.get(upstream.endpoint) is not upstream:
            return
        if upstream.ejected_until_s is None:
            self._registry.inc(table.SENDER_UPSTREAMS_EJECTED)
            if len(self._known) > 1:
                log.warning("%s is left out for a while: %s", upstream.endpoint, why)
        self._registry.inc(table.SENDER_EJECTIONS, upstream=str(upstream.endpoint))
        upstream.ejected_until_s = self._clock.monotonic_s() + upstream.backoff.next_s()

    def answered(self, upstream: Upstream) -> None:
        if upstream.ejected_until_s is not None:
            self._restore(upstream)
            if len(self._known) > 1:
                log.info("%s answers again", upstream.endpoint)

    def _restore(self, upstream: Upstream) -> None:
        if upstream.ejected_until_s is not None:
            upstream.ejected_until_s = None
            upstream.backoff.reset()
            self._registry.inc(table.SENDER_UPSTREAMS_EJECTED, -1)

    def _in_turn(self) -> Sequence[Upstream]:
        known = list(self._known.values())
        start = self._turn % len(known) if known else 0
        return known[start:] + known[:start]

    def _next_back(self) -> Upstream | None:
        return min(self._known.values(), key=_back_at_s, default=None)


def _answers(upstream: Upstream, now_s: float) -> bool:
    return upstream.ejected_until_s is None or upstream.ejected_until_s <= now_s


def _back_at_s(upstream: Upstream) -> float:
    return upstream.ejected_until_s or 0.0
