"""A program that finds the records which end the process that decodes them.

    python -m skyfarer.oap.pipeline.sources.probe DIRECTORY START END READING

A worker that died says nothing of the record it died of. So the stretch START … END is decoded
again, as a worker does it, in children of this process. A child writes down where it is before it
goes on; where it dies, another one takes the records of that place one by one; and the record at
which this one dies is decoded alone, in a third. Only a record that ends a process by itself, or
leaves it without memory, is named. Each has a line of JSON with the sequence, the reason, and
whether the other decoder can read the record.

Children are bounded in processor time and memory. A child that cannot work, or that is killed from
outside, says nothing of a record: then the program ends with an error. It ends with the process
that started it, too. `READING` is what `Reading.written` gave.
"""

from __future__ import annotations

import json
import os
import signal
import struct
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from mmap import mmap
from pathlib import Path
from typing import Final, NoReturn

import pyarrow as pa

from skyfarer.base.errors import PermanentError
from skyfarer.base.units import MIB
from skyfarer.oap.pipeline.sources.bounds import limit_memory, limited_cpu
from skyfarer.oap.pipeline.sources.rows import Reading, row_schema, rows
from skyfarer.queue.reader import Reader

STEP_RECORDS: Final = 500
"""Records that are decoded at once until a child dies."""
FOUND_MAX: Final = 1_000
"""Culprits that are looked for in one stretch; the next failure looks for the others."""
_PLACE: Final = struct.Struct("<q")
_LOOK_S: Final = 0.5
_CANNOT_WORK: Final = 97
_NO_MEMORY: Final = 98
_FROM_OUTSIDE: Final = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


@dataclass(frozen=True)
class _Death:
    """`place` is the first record of the step in which a child died."""

    place: int
    reason: str


@dataclass(frozen=True)
class Culprit:
    """A record that ends a process whose first decoder reads it; `entrusted` where the others can
    read it."""

    sequence: int
    reason: str
    entrusted: bool


def probe(
    directory: Path, start: int, end: int, reading: Reading, over: Callable[[], bool]
) -> list[Culprit]:
    """Runs the program, and returns what it has found when it ends, or when `over` says so. Blocks;
    `over` is asked every few moments."""
    stretch = str(directory), str(start), str(end), reading.written()
    with tempfile.TemporaryFile() as said:
        with subprocess.Popen(
            [sys.executable, "-m", __name__, *stretch], stdout=said, start_new_session=True
        ) as process:
            while process.poll() is None:
                if over():
                    os.killpg(process.pid, signal.SIGKILL)
                with suppress(subprocess.TimeoutExpired):
                    process.wait(_LOOK_S)
        said.seek(0)
        return [Culprit(**json.loads(line)) for line in said if line.endswith(b"\n")]


def culprits(directory: Path, start: int, end: int, reading: Reading) -> Iterator[Culprit]:
    """At most FOUND_MAX. Forks, so the calling process must have no threads; PermanentError where
    children cannot work."""
    found, parent = 0, os.getppid()
    others = reading.of_entrusted()
    while os.getppid() == parent and found < FOUND_MAX:
        death = _tried(directory, start, end, STEP_RECORDS, reading)
        if death is None:
            return
        stop = min(death.place + STEP_RECORDS, end)
        single = _tried(directory, death.place, stop, 1, reading)
        if single is None:
            start = stop
            continue
        at, start = single.place, single.place + 1
        if alone := _tried(directory, at, start, 1, reading):
            found += 1
            lives = bool(others.decoders) and _tried(directory, at, start, 1, others) is None
            yield Culprit(at, f"undecodable: its decoder {alone.reason}", lives)


def _tried(directory: Path, start: int, end: int, step: int, reading: Reading) -> _Death | None:
    """The death of a child that decodes start … end in steps; None where it lives."""
    with mmap(-1, _PLACE.size) as place:
        pid = os.fork()
        if not pid:
            _decode_and_exit(directory, start, end, step, reading, place)
        _, status = os.waitpid(pid, 0)
        (at,) = _PLACE.unpack(place[:])
    return _Death(at, _reason(status, reading, step)) if status else None


def _reason(status: int, reading: Reading, step: int) -> str:
    """The words for a child's end; PermanentError where no record can be at fault."""
    code = os.waitstatus_to_exitcode(status)
    if code == _CANNOT_WORK or -code in _FROM_OUTSIDE:
        raise PermanentError(f"the stretch cannot be decoded: a child ended with {code}")
    if code == _NO_MEMORY:
        return f"asked for more than {reading.bounds.memory_bytes // MIB} MiB"
    if code == -signal.SIGPROF:
        return f"took more than {_cpu_s(reading, step):g} s of processor time"
    return f"ended its process by {signal.Signals(-code).name if code < 0 else f'exit({code})'}"


def _cpu_s(reading: Reading, step: int) -> float:
    return reading.bounds.record_cpu_s if step == 1 else reading.bounds.run_cpu_s


def _decode_and_exit(
    directory: Path, start: int, end: int, step: int, reading: Reading, place: mmap
) -> NoReturn:
    """The life of a child: it leaves by `_exit`, so that nothing of its parent's is done twice."""
    code = _CANNOT_WORK
    try:
        limit_memory(reading.bounds)
        queue = Reader(directory)
        queue.start()
        for at in range(start, end, step):
            place[:] = _PLACE.pack(at)
            with limited_cpu(_cpu_s(reading, step)):
                _decode(queue, at, min(at + step, end), reading)
        code = 0
    except MemoryError:
        code = _NO_MEMORY
    except BaseException:
        traceback.print_exc()
        raise
    finally:
        os._exit(code)


def _decode(queue: Reader, start: int, end: int, reading: Reading) -> None:
    """Makes the rows and writes them, as to Spark."""
    with pa.ipc.new_stream(os.devnull, row_schema()) as stream:
        for run in queue.runs(start, end):
            for batch in rows(run, reading):
                stream.write_batch(batch)


def main() -> None:
    directory, start, end, reading = sys.argv[1:]
    for culprit in culprits(Path(directory), int(start), int(end), Reading.read(reading)):
        print(json.dumps(asdict(culprit)), flush=True)


if __name__ == "__main__":
    main()
