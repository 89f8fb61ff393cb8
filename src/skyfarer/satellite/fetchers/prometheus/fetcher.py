"""`prometheus-fetcher`: asks its targets for their metrics, each at its time in the interval."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import ClassVar, Final

from skyfarer.base.clock import Clock
from skyfarer.base.errors import PermanentError, RetryableError
from skyfarer.satellite.contracts import Inlet
from skyfarer.satellite.fetchers.prometheus.config import PrometheusFetcherConfig
from skyfarer.satellite.fetchers.prometheus.exposition import Type, parse
from skyfarer.satellite.fetchers.prometheus.meters import Meters
from skyfarer.satellite.fetchers.prometheus.relabel import Relabel
from skyfarer.satellite.fetchers.prometheus.scrape import ScrapeFailed, ScrapeSettings, scrape
from skyfarer.satellite.fetchers.prometheus.target import Target
from skyfarer.satellite.notation import seconds
from skyfarer.telemetry import table
from skyfarer.telemetry.health import Health
from skyfarer.telemetry.metrics import Registry
from skyfarer.wire.rpc import Kind

log = logging.getLogger(__name__)

LINES_PER_TURN: Final = 500
PAUSE_MIN_S: Final = 0.05
PAUSE_MAX_S: Final = 1.0


class PrometheusFetcher:
    """A `Fetcher`. A target's failure is counted and told by `up`, and is nobody else's.

    `stop` leaves at once: a scrape under way, or one that waits for room in the queue, is given up.
    """

    config_type: ClassVar = PrometheusFetcherConfig

    def __init__(
        self,
        config: PrometheusFetcherConfig,
        inlet: Inlet,
        directory: Path,
        clock: Clock,
        registry: Registry,
        health: Health,
    ) -> None:
        self._config = config
        self._inlet = inlet
        self._clock = clock
        self._registry = registry
        self._health = health
        self._relabel = Relabel(config.relabel)
        self._settings = ScrapeSettings(
            seconds(config.timeout),
            config.max_body_bytes,
            config.authorization,
            config.bearer_token_file,
            config.tls(),
        )
        self._part = f"prometheus-fetcher {config.service}"
        self._down: set[str] = set()
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        if self._tasks:
            return
        targets, interval_s = self._config.addresses(), seconds(self._config.interval)
        for place, target in enumerate(targets):
            first_s = interval_s * place / len(targets)
            task = asyncio.create_task(self._run(target, first_s), name=f"scrape {target.address}")
            self._tasks.append(task)

    async def stop(self, timeout_s: float) -> None:
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _run(self, target: Target, first_s: float) -> None:
        interval_s = seconds(self._config.interval)
        next_s = self._clock.monotonic_s() + first_s
        while True:
            await asyncio.sleep(max(0.0, next_s - self._clock.monotonic_s()))
            try:
                await self.fetch(target)
            except Exception:
                log.exception("%s: %s could not be fetched", self._part, target.address)
            # What was missed meanwhile is not made up for.
            late = max(0.0, self._clock.monotonic_s() - next_s) // interval_s
            next_s += (late + 1) * interval_s

    async def fetch(self, target: Target) -> None:
        """One scrape, in the queue on return, be it only that the target is down."""
        began_s, now_ms = self._clock.monotonic_s(), self._clock.now_ms()
        config = self._config
        own = {
            b"job": (config.job or config.service).encode(),
            b"instance": target.instance.encode(),
            **{name.encode(): value.encode() for name, value in config.labels.items()},
        }
        instance = config.service_instance or target.instance
        meters, up, samples = Meters(config.service, instance, now_ms), 1.0, 0
        try:
            body = await scrape(target, self._settings)
            samples = await self._gather(body, meters, own)
            self._tell(target, None)
        except ScrapeFailed as failure:
            meters, up = Meters(config.service, instance, now_ms), 0.0
            self._tell(target, failure)
        took_s = self._clock.monotonic_s() - began_s
        meters.add_value(b"up", own, up)
        meters.add_value(b"scrape_duration_seconds", own, took_s)
        meters.add_value(b"scrape_samples_scraped", own, samples)
        await self._keep(meters.collections())

    async def _gather(self, body: bytes, meters: Meters, own: dict[bytes, bytes]) -> int:
        samples = malformed = dropped = 0
        for lines, row in enumerate(parse(body), 1):
            if row is None:
                malformed += 1
            elif isinstance(row, Type):
                meters.declare(row)
            else:
                samples += 1
                kept = self._relabel.apply(row, own)
                if kept is None:
                    dropped += 1
                else:
                    meters.add(kept, row.name)
            if samples > self._config.max_samples:
                raise ScrapeFailed("too_large", f"has more than {samples - 1} samples")
            if lines % LINES_PER_TURN == 0:
                await asyncio.sleep(0)
        if malformed and not samples:
            raise ScrapeFailed("malformed", "answers no metrics in the text format")
        counts = {"kept": meters.kept, "dropped": dropped, "malformed": malformed}
        for outcome, count in {**counts, "not_finite": meters.skipped}.items():
            if count:
                self._registry.inc(table.GATHERER_SCRAPE_SAMPLES, count, outcome=outcome)
        return samples

    def _tell(self, target: Target, failure: ScrapeFailed | None) -> None:
        outcome = failure.reason if failure is not None else "ok"
        self._registry.inc(table.GATHERER_SCRAPES, target=target.instance, outcome=outcome)
        if failure is not None and target.address not in self._down:
            self._down.add(target.address)
            log.warning("%s: %s %s", self._part, target.address, failure)
        elif failure is None and target.address in self._down:
            self._down.discard(target.address)
            log.info("%s: %s answers again", self._part, target.address)

    async def _keep(self, collections: list[bytes]) -> None:
        for collection in collections:
            pause_s = PAUSE_MIN_S
            while True:
                try:
                    self._inlet.append(Kind.METER_COLLECTION, [collection])
                    self._health.set(self._part, True)
                    break
                except RetryableError as failure:
                    await asyncio.sleep(max(pause_s, failure.after_s or 0.0))
                    pause_s = min(pause_s * 2, PAUSE_MAX_S)
                except PermanentError as failure:
                    log.error("%s loses a scrape: %s", self._part, failure)
                    self._health.set(self._part, False, str(failure))
                    break
