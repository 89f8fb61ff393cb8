"""What ten million records leave behind in the memory of a process they pass through.

A writer, a reader and a consumer in one process, as in a satellite, so that what any of them keeps
is seen. The first lap of the ring is warm-up; the peak of the second is compared with the peak of
the last. One JSON line per figure; give a directory to run elsewhere than in the temporary one.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from figures import figure
from skyfarer.base.units import MIB
from skyfarer.queue.consumer import Consumer
from skyfarer.queue.reader import Reader
from skyfarer.queue.settings import QueueSettings
from skyfarer.queue.writer import Writer

RECORDS = 10_000_000
RECORD_BYTES = 200
BATCH = 100
READ_EVERY = 20
LAP_RECORDS = 64 * MIB // RECORD_BYTES


class Use(NamedTuple):
    rss_kib: int = 0
    anonymous_kib: int = 0
    files: int = 0
    maps: int = 0

    def peak(self) -> Use:
        """Of what it was and what this process needs now."""
        process = Path("/proc/self")
        rows = dict(line.split(":", 1) for line in (process / "status").read_text().splitlines())
        kib = [int(rows[name].split()[0]) for name in ("VmRSS", "RssAnon")]
        files = len(list((process / "fd").iterdir()))
        maps = (process / "maps").read_text().count("\n")
        return Use(*map(max, self, (*kib, files, maps)))


def main() -> None:
    with tempfile.TemporaryDirectory(dir=sys.argv[1] if sys.argv[1:] else None) as place:
        began_s = time.monotonic()
        first, last = passed_through(Path(place) / "queue")
        took_s = time.monotonic() - began_s
    print(f"{took_s:.0f} s; second lap {first}, last lap {last}", file=sys.stderr)
    grown = [end - begin for begin, end in zip(first, last, strict=True)]
    figure("queue_rss_growth_10m_records", grown[0], "KiB", at_most=1024)
    figure("queue_anonymous_memory_growth_10m_records", grown[1], "KiB", at_most=1024)
    figure("queue_open_files_growth_10m_records", grown[2], "files", at_most=0)
    figure("queue_maps_growth_10m_records", grown[3], "maps", at_most=0)


def passed_through(directory: Path) -> tuple[Use, Use]:
    """What the second lap and the last one needed."""
    writer = Writer(QueueSettings(directory, 16 * MIB, 64 * MIB))
    reader, consumer = Reader(directory), Consumer(directory, "main")
    for part in (writer, reader, consumer):
        part.start()
    first, last, seen = Use(), Use(), 0
    payloads = [bytes([n]) * RECORD_BYTES for n in range(BATCH)]
    for number in range(RECORDS // BATCH):
        writer.append(1, payloads)
        if number % READ_EVERY:
            continue
        for run in reader.runs(consumer.committed(), reader.writing()):
            seen += len(run.payloads())
            consumer.commit(run.end, run.dropped)
        if LAP_RECORDS < writer.writing <= 2 * LAP_RECORDS:
            first = first.peak()
        elif writer.writing > RECORDS - LAP_RECORDS:
            last = last.peak()
    if seen < RECORDS - READ_EVERY * BATCH:
        raise SystemExit(f"{RECORDS - seen} records were not read")
    for part in (consumer, reader, writer):
        part.stop(1.0)
    return first, last


if __name__ == "__main__":
    main()
