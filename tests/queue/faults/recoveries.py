"""Recoveries of a wrecked queue, killed at every step, and the recoveries of those."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import Any

from skyfarer.queue.layout import PAGE_BYTES, SLOT_BYTES, decode_segment_header
from skyfarer.queue.meta import read_meta
from skyfarer.testing.kill_points import BEGINS, PROCESSES, Tell, on_both_cores, steps_of

from ..bench import Bench
from .deaths import ROOM, Facts, Line, copied, files, killed_apart, share_of
from .lives import EVERYTHING, life

AGAIN_EVERY = 5


def make_wreck(bench: Bench) -> None:
    """A torn tail, a damaged file and a leftover, so that recovery has everything to do."""
    life("reject", bench, lambda name, value: None)
    bench.close()
    meta = read_meta(bench.directory)
    pages = {path: path.read_bytes()[:PAGE_BYTES] for path in bench.segment_paths()}
    headers = {path: decode_segment_header(page, meta.queue_id) for path, page in pages.items()}
    _, second, *_, last = sorted(headers, key=lambda path: headers[path].number)
    with last.open("r+b") as file:
        file.seek(PAGE_BYTES + 20 * SLOT_BYTES)
        file.write(b"torn" * 30)
    second.write_bytes(b"garbage")
    (bench.directory / "00009.seg.new").write_bytes(b"leftover")


def recover(bench: Bench, tell: Tell) -> None:
    tell("recovery", BEGINS)
    bench.writer()


def outcome(bench: Bench) -> tuple[int, int, list[bytes], dict[str, bytes]]:
    writer = bench.writer()
    found = (writer.writing, writer.oldest, bench.records(writer.oldest), files(bench.directory))
    bench.close()
    return found


def kill_again(line: Line, directory: Path, first: int) -> None:
    bench = copied(directory, line.bench.directory)
    steps = steps_of(ROOM, partial(recover, bench)).points()
    bench.close()
    copied(directory, line.bench.directory)
    line.killed(steps[first::AGAIN_EVERY], recover)


def kill_recoveries(place: str) -> dict[str, Any]:
    """Every step of a recovery; then the recovery of whatever that left, at every AGAIN_EVERYth
    step, each time beginning with another."""
    os.urandom = bytes
    wreck, bench = Bench(Path(place) / "wreck"), Bench(Path(place) / "whole")
    make_wreck(wreck)
    copied(wreck.directory, bench.directory)
    points = steps_of(ROOM, partial(recover, bench)).points()
    bench.close()
    undisturbed = outcome(bench)
    assert undisturbed[0] == len(EVERYTHING)

    def check(bench: Bench, _: Facts) -> None:
        assert outcome(bench) == outcome(bench) == undisturbed

    def work(share: int) -> list[int]:
        kept: list[Path] = []

        def check_and_keep(bench: Bench, facts: Facts) -> None:
            kept.append(Path(place) / f"kept-{share}-{len(kept)}")
            copied(bench.directory, kept[-1])
            check(bench, facts)

        mine, line = share_of(points, share), Line(Path(place) / f"line-{share}", check_and_keep)
        copied(wreck.directory, line.bench.directory)
        line.killed(mine, recover)
        new = partial(copied, wreck.directory, Path(place) / f"apart-{share}")
        apart = killed_apart(new, mine, line.left, recover, check)
        again = Line(Path(place) / f"again-{share}", check)
        for number, directory in enumerate(kept):
            kill_again(again, directory, number * PROCESSES + share)
        return [len(line.left), len(again.left), apart]

    hits = [sum(shares) for shares in zip(*on_both_cores(work), strict=True)]
    return {"points": len(points), "hits": hits[:-1], "apart": hits[-1]}
