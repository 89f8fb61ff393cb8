"""`skyfarer satellite replay`: dead letters once more, by the client of the pipe that parked them.

They go under a name of their own, not with their old numbers: an OAP drops what it believes to have
already. A letter is removed when the upstream has it. What is refused again stays, and what fails
for now ends the work: both are for the next time.
"""

from __future__ import annotations

import asyncio
import uuid
from collections import Counter
from pathlib import Path
from typing import Final

from skyfarer.base.binding import nearest
from skyfarer.base.errors import ConfigError, PermanentError, RetryableError
from skyfarer.cli.tap import kind_name
from skyfarer.satellite import dead_letters
from skyfarer.satellite.assembly import DEAD_LETTERS, Assembly
from skyfarer.satellite.config import PipeConfig, SatelliteConfig
from skyfarer.satellite.contracts import Batch, Forwarder

STOP_TIMEOUT_S: Final = 5.0
REASON_CHARACTERS_MAX: Final = 200


def replay(config: SatelliteConfig, assembly: Assembly, pipe: str | None, dry_run: bool) -> int:
    """Blocks. 0 when every letter was delivered, 1 when some are left."""
    names = [one.name for one in config.pipes]
    if pipe is not None and pipe not in names:
        raise ConfigError(f"{config.file} has no pipe '{pipe}'{nearest(pipe, names)}")
    left = 0
    for one in config.pipes:
        directory = config.data_directory / one.name / DEAD_LETTERS
        if pipe in (None, one.name) and directory.is_dir():
            if dry_run:
                _list(one, directory)
            else:
                left += _send(one, assembly, directory)
    return 1 if left else 0


def _list(pipe: PipeConfig, directory: Path) -> None:
    for letter in dead_letters.read(directory):
        kind, size = kind_name(letter.kind), len(letter.payload)
        reason = letter.reason[:REASON_CHARACTERS_MAX]
        print(f"{pipe.name} {letter.sequence} {kind}, {size} B: {reason}")


def _send(pipe: PipeConfig, assembly: Assembly, directory: Path) -> int:
    name = f"replay-{uuid.uuid4().hex}"
    forwarder = assembly.forwarder(pipe.sender.client_name, lambda: name, 1)
    with dead_letters.replaying(directory):
        outcome = asyncio.run(_deliver(forwarder, directory))
    refused = outcome["refused"]
    print(f"pipe {pipe.name}: {outcome['sent']} letters sent, {refused} refused again and left")
    return refused


async def _deliver(forwarder: Forwarder, directory: Path) -> Counter[str]:
    outcome: Counter[str] = Counter()
    await forwarder.start()
    try:
        for number, letter in enumerate(dead_letters.read(directory)):
            try:
                await forwarder.send(Batch(number, letter.kind, (letter.payload,)))
            except RetryableError as failure:
                raise PermanentError(
                    f"{failure}; {outcome['sent']} letters were sent, the others are left"
                ) from failure
            except PermanentError:
                outcome["refused"] += 1
            else:
                dead_letters.remove(letter)
                outcome["sent"] += 1
    finally:
        await forwarder.stop(STOP_TIMEOUT_S)
    return outcome
