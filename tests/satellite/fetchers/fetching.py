"""A process of its own with a log fetcher and its queue, to be killed; until SIGTERM otherwise.

python fetching.py '{"queue": "…", "fetcher": "…", "config": {…}}'
"""

from __future__ import annotations

import asyncio
import json
import logging
import signal
import sys
from pathlib import Path

from skyfarer.base.binding import bind
from skyfarer.base.clock import SystemClock
from skyfarer.base.units import MIB
from skyfarer.queue.settings import QueueSettings
from skyfarer.queue.writer import Writer
from skyfarer.satellite.fetchers.log.config import LogFetcherConfig
from skyfarer.satellite.fetchers.log.fetcher import LogFetcher
from skyfarer.telemetry import table
from skyfarer.telemetry.health import Health
from skyfarer.telemetry.metrics import Registry


async def main(given: dict[str, object]) -> None:
    settings = QueueSettings(Path(str(given["queue"])), 4 * MIB, 128 * MIB, 1 * MIB)
    writer = Writer(settings)
    writer.start()
    config = bind(LogFetcherConfig, given["config"], "config")  # type: ignore[arg-type]
    parts = (SystemClock(), Registry(table.SATELLITE), Health())
    fetcher = LogFetcher(config, writer, Path(str(given["fetcher"])), *parts)
    ended = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
    await fetcher.start()
    await ended.wait()
    await fetcher.stop(1.0)
    writer.stop(0.0)


if __name__ == "__main__":
    logging.basicConfig()
    asyncio.run(main(json.loads(sys.argv[1])))
