"""`log-fetcher`: looks at its files once a second, and reads what is there block by block."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import ClassVar, Final

from skyfarer.base.clock import Clock
from skyfarer.base.errors import PermanentError, RetryableError, SkyfarerError
from skyfarer.queue.disk import Disk
from skyfarer.queue.errors import RecordTooLarge
from skyfarer.satellite.contracts import Inlet
from skyfarer.satellite.fetchers.log.collector import Collector, Haul, Rewritten
from skyfarer.satellite.fetchers.log.config import LogFetcherConfig
from skyfarer.satellite.fetchers.log.intent import Intent
from skyfarer.satellite.fetchers.log.place import UNKNOWN
from skyfarer.satellite.fetchers.log.positions import Positions
from skyfarer.satellite.fetchers.log.records import LogRecords
from skyfarer.satellite.fetchers.log.roster import Roster
from skyfarer.satellite.notation import seconds
from skyfarer.telemetry import table
from skyfarer.telemetry.health import Health
from skyfarer.telemetry.metrics import Registry
from skyfarer.wire.rpc import Kind

log = logging.getLogger(__name__)

TURN_BLOCKS: Final = 16  # of one file before the next has its turn
APPEND_RECORDS_MAX: Final = 1024  # what the kernel takes in one call
PAUSE_MIN_S: Final = 0.05
PAUSE_MAX_S: Final = 1.0
SILENCE_S: Final = 60.0  # a full queue is said once, not each time


class LogFetcher:
    """A `Fetcher`. Every line of the files once, in the order of its file, across SIGKILL.

    A block is read, written down, appended and settled before the next is looked at, so the most it
    holds is one block. Between two blocks others have their turn on the loop. `stop` leaves at
    once: what is not read stays in the files. It may be started again after it.
    """

    config_type: ClassVar = LogFetcherConfig

    def __init__(
        self,
        config: LogFetcherConfig,
        inlet: Inlet,
        directory: Path,
        clock: Clock,
        registry: Registry,
        health: Health,
        disk: Disk | None = None,
    ) -> None:
        self._config = config
        self._inlet = inlet
        self._directory = directory
        self._clock = clock
        self._registry = registry
        self._health = health
        self._disk = disk
        self._interval_s = seconds(config.interval)
        self._records = LogRecords(
            config.service, config.service_instance, config.layer, config.tags
        )
        self._part = f"log-fetcher {config.service}"
        self._positions = Positions(directory, inlet, disk)
        self._roster = Roster(config, self._positions, registry)
        self._task: asyncio.Task[None] | None = None
        self._looking = asyncio.Lock()
        self._next_survey_s = 0.0
        self._pause_s = PAUSE_MIN_S
        self._silent_until_s = 0.0

    async def start(self) -> None:
        """After the queue. PermanentError or RetryableError if its directory cannot be used."""
        if self._task is not None:
            return
        self._positions = Positions(self._directory, self._inlet, self._disk)
        self._roster = Roster(self._config, self._positions, self._registry)
        self._positions.start()
        self._roster.start(self._clock.monotonic_s())
        self._observe()
        self._task = asyncio.create_task(self._run(), name=self._part)

    async def stop(self, timeout_s: float) -> None:
        if self._task is None:
            return
        task, self._task = self._task, None
        task.cancel()
        await asyncio.wait({task})
        self._roster.stop()
        try:
            self._positions.stop()
        except SkyfarerError as error:
            log.warning("%s: %s; the next start makes up for it", self._part, error)

    async def look(self) -> None:
        """Everything there is to read now is in the queue on return, and what is wrong has been
        waited for. Only once it is started; the fetcher does this by itself, time and again."""
        async with self._looking:
            self._survey()
            while due := self._roster.due(self._clock.monotonic_s()):
                for collector in due:
                    await self._turn(collector)
                if self._clock.monotonic_s() >= self._next_survey_s:
                    self._survey()

    async def _run(self) -> None:
        while True:
            try:
                await self.look()
                await asyncio.sleep(max(0.0, self._next_survey_s - self._clock.monotonic_s()))
            except SkyfarerError as failure:
                await self._wait(failure)
            except Exception as failure:
                log.exception("%s cannot go on", self._part)
                await self._wait(PermanentError(str(failure)))

    def _survey(self) -> None:
        now_s = self._clock.monotonic_s()
        self._next_survey_s = now_s + self._interval_s
        self._roster.survey(now_s)

    async def _turn(self, collector: Collector) -> None:
        for _ in range(TURN_BLOCKS):
            now_s = self._clock.monotonic_s()
            haul = self._read(collector, now_s)
            if haul is None or not await self._keep(haul):
                return
            await asyncio.sleep(0)
            if now_s >= self._next_survey_s:
                return

    def _read(self, collector: Collector, now_s: float) -> Haul | None:
        try:
            if not self._roster.ready(collector):
                return None
            haul = collector.read(now_s)
            self._roster.learn(collector)
            return haul
        except Rewritten as event:
            self._roster.rewritten(event.collector, now_s)
        except OSError as error:
            self._roster.failed(collector, error)
        return None

    async def _keep(self, haul: Haul) -> bool:
        """Until the queue has all of it. False if it has a part only: the rest is read again."""
        self._roster.write_down()
        cut = haul.cut
        if not cut.texts:
            self._pass_over(haul, cut.used)
            return True
        ending = self._records.ending(haul.origin)
        payloads = self._records.encode(cut.texts, self._clock.now_ms(), ending)
        ends = range(len(payloads), 0, -APPEND_RECORDS_MAX)
        ranges = [(max(0, end - APPEND_RECORDS_MAX), end) for end in ends]
        while ranges:
            begin, end = ranges.pop()
            try:
                if not await self._append(payloads[begin:end], self._intent(haul, begin, end)):
                    return False
            except RecordTooLarge as refusal:
                ranges += self._smaller(haul, begin, end, refusal)
        self._count(haul)
        return True

    def _intent(self, haul: Haul, begin: int, end: int) -> Intent:
        ends = haul.cut.ends
        before_crc = haul.before_crc if end == len(ends) else UNKNOWN
        return Intent(self._inlet.writing, haul.pieces, ends[begin:end], before_crc)

    async def _append(self, payloads: list[bytes], intent: Intent) -> bool:
        self._positions.intend(intent)
        while True:
            try:
                self._inlet.append(Kind.LOG, payloads)
            except RecordTooLarge:
                raise
            except SkyfarerError as failure:
                if self._positions.settle(intent):
                    return False
                await self._wait(failure)
            else:
                self._goes_well()
                return self._positions.settle(intent) == len(payloads)

    def _smaller(
        self, haul: Haul, begin: int, end: int, refusal: RecordTooLarge
    ) -> list[tuple[int, int]]:
        """The two halves, the first last; a single record is given up."""
        if end - begin > 1:
            middle = (begin + end) // 2
            return [(middle, end), (begin, middle)]
        log.error("%s gives up a record of %s: %s", self._part, haul.origin, refusal)
        self._registry.inc(table.GATHERER_LOG_REFUSED, service=self._config.service)
        self._pass_over(haul, haul.cut.ends[begin])
        return []

    def _pass_over(self, haul: Haul, end: int) -> None:
        """Without a record: what comes before `end` of the block is done with."""
        places = self._positions.places
        Intent(0, haul.pieces, [end], UNKNOWN).apply(1, places)
        self._positions.note([places[piece.key] for piece in haul.pieces])

    def _count(self, haul: Haul) -> None:
        cut, service = haul.cut, self._config.service
        self._registry.inc(table.GATHERER_LOG_BYTES, cut.used, service=service)
        if cut.cuts:
            self._registry.inc(table.GATHERER_LOG_CUT, cut.cuts, service=service)
        if cut.undecodable:
            self._registry.inc(table.GATHERER_LOG_UNDECODABLE, cut.undecodable, service=service)

    def _goes_well(self) -> None:
        if self._pause_s > PAUSE_MIN_S:
            self._pause_s = PAUSE_MIN_S
            self._health.set(self._part, True)

    async def _wait(self, failure: SkyfarerError) -> None:
        """The queue is full, or the disk; or it is broken, which an operator must see to."""
        self._registry.inc(table.GATHERER_LOG_WAITS, service=self._config.service)
        now_s = self._clock.monotonic_s()
        if now_s >= self._silent_until_s:
            self._silent_until_s = now_s + SILENCE_S
            log.warning("%s waits: %s", self._part, failure)
        if isinstance(failure, PermanentError):
            self._health.set(self._part, False, str(failure))
        after_s = failure.after_s if isinstance(failure, RetryableError) else PAUSE_MAX_S
        await asyncio.sleep(max(self._pause_s, after_s or 0.0))
        self._pause_s = min(self._pause_s * 2, PAUSE_MAX_S)

    def _observe(self) -> None:
        observe, service, roster = self._registry.observe_with, self._config.service, self._roster
        observe(table.GATHERER_LOG_FILES, lambda: len(roster.collectors), service=service)
        observe(table.GATHERER_LOG_UNREAD, roster.unread_bytes, service=service)
