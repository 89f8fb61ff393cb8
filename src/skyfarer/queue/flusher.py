"""The seed's flusher: what was appended becomes durable every so often, off the append's path.

Under "append" a record survives the end of its process at once, and a power cut from the next flush
on: `Writer.durable`, the watermark, follows `writing` by a period or by so many records, whichever
comes first. With it goes what consumers have committed by then. Nothing waits for it; a program
that must not answer before uses "fsync".

While nothing is appended the thread sleeps with no end to its wait: the writer has a word that it
looks at behind each append anyway, for readers that sleep, and calls back when that is set. While
records wait for their flush it looks a few times a period how many they are.
"""

from __future__ import annotations

import logging
import threading
from typing import Final

from skyfarer.base.errors import SkyfarerError
from skyfarer.queue.settings import QueueSettings
from skyfarer.queue.writer import Writer

LOOKS_PER_PERIOD: Final = 10

_log = logging.getLogger(__name__)


class Flusher:
    """Has one thread between `start` and `stop`; none where the settings leave it nothing to do.

    Started after its writer and stopped before it. A flush that fails is said once, and tried again
    a period later; see `durability` for what that can mean.
    """

    def __init__(self, writer: Writer, settings: QueueSettings) -> None:
        self.flushes = 0
        self._writer = writer
        self._period_s = settings.flush_period_ms / 1000
        self._count = settings.flush_count
        self._needed = settings.durability == "append" and settings.flush_period_ms > 0
        self._arrived = threading.Event()
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._failing = False

    def start(self) -> None:
        if self._thread is not None or not self._needed:
            return
        self._stopping.clear()
        self._writer.listen(self._arrived.set)
        self._thread = threading.Thread(target=self._run, name="queue flusher", daemon=True)
        self._thread.start()

    def stop(self, timeout_s: float) -> None:
        """Begins no other flush, and waits up to `timeout_s` for one that runs."""
        thread, self._thread = self._thread, None
        if thread is None:
            return
        self._stopping.set()
        self._arrived.set()
        thread.join(timeout_s)

    def _run(self) -> None:
        flushed = 0
        while not self._stopping.is_set():
            self._arrived.clear()
            self._writer.arm()
            if self._writer.writing == flushed:
                self._arrived.wait()
            self._gather(flushed)
            if not self._stopping.is_set():
                flushed = self._flush(flushed)

    def _gather(self, flushed: int) -> None:
        """Until there are enough, or the period is over."""
        for _ in range(LOOKS_PER_PERIOD):
            if self._writer.writing - flushed >= self._count:
                return
            if self._stopping.wait(self._period_s / LOOKS_PER_PERIOD):
                return

    def _flush(self, flushed: int) -> int:
        """How far it came."""
        try:
            self._writer.sync_places()
            flushed = self._writer.sync()
        except SkyfarerError as error:
            if not self._failing and not self._stopping.is_set():
                _log.error("the queue cannot be flushed, and tries again: %s", error)
            self._failing = True
            self._stopping.wait(self._period_s)
            return flushed
        if self._failing:
            _log.warning("the queue is flushed again, up to record %d", flushed)
        self._failing = False
        self.flushes += 1
        return flushed
