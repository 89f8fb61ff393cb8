"""`skyfarer queue`: looking into a queue from outside, and sending what it holds once more."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from skyfarer.cli import descriptions as say
from skyfarer.cli.parser import Parser

if TYPE_CHECKING:
    from skyfarer.cli.progress import Progress
    from skyfarer.queue.onlooker import Gap, Record
    from skyfarer.queue.reader import Reader

Commands = argparse._SubParsersAction
DAMAGED = 1
DUMP_MODE = 0o600
PACE_S = 1.0  # between two looks at a queue whose owner runs


def add_queue(commands: Commands[Parser]) -> None:
    group = commands.add_parser(
        "queue",
        help="look into a queue on disk",
        description=say.QUEUE_ABOUT,
        epilog=say.QUEUE_EXAMPLES,
    )
    parts = group.add_subparsers(metavar="COMMAND")
    inspect = _add(parts, "inspect", "what it is, how full, each consumer", say.INSPECT_ABOUT)
    inspect.set_defaults(command=_inspect)
    inspect.add_argument("--json", action="store_true", help="one JSON object in place of a table")
    verify = _add(parts, "verify", "check every record", say.VERIFY_ABOUT)
    verify.set_defaults(command=_verify)
    dump = _add(parts, "dump", "print records or copy them into a file", say.DUMP_ABOUT)
    dump.set_defaults(command=_dump)
    _add_range(dump, "--to")
    dump.add_argument("--out", metavar="FILE", type=Path, help="a new file for the raw records")
    replay = _add(parts, "replay", "send the records to an OAP or satellite", say.REPLAY_ABOUT)
    replay.set_defaults(command=_replay)
    replay.add_argument(
        "--to", metavar="HOST:PORT", dest="upstream", type=_address, required=True, help="gRPC"
    )
    _add_range(replay, "--until")
    group.set_defaults(parser=group)
    group.commands = tuple(parts.choices)


def _add(parts: Commands[Parser], name: str, summary: str, about: str) -> Parser:
    part = parts.add_parser(name, help=summary, description=about, epilog=say.QUEUE_EXAMPLES)
    part.set_defaults(parser=part, package="skyfarer")
    part.add_argument("directory", metavar="DIR", type=Path, help="with the file 'meta' in it")
    return part


def _add_range(part: Parser, end_flag: str) -> None:
    part.add_argument(
        "--from",
        metavar="N",
        dest="start",
        type=_sequence,
        help="first record (default: the oldest held)",
    )
    part.add_argument(
        end_flag,
        metavar="N",
        dest="end",
        type=_sequence,
        help="the record to stop before (default: the next to be written)",
    )


def _sequence(text: str) -> int:
    if not text.isascii() or not text.isdigit():
        raise argparse.ArgumentTypeError(f"'{text}' is no record number")
    return int(text)


def _address(text: str) -> tuple[str, int]:
    from skyfarer.satellite.notation import address

    try:
        return address(text, "127.0.0.1")
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _inspect(parsed: argparse.Namespace) -> int:
    from skyfarer.base.clock import SystemClock
    from skyfarer.cli.queue_text import as_json, as_table
    from skyfarer.queue.capacity import Watch
    from skyfarer.queue.inspection import inspect

    _check(parsed.directory)
    watch = Watch(parsed.directory, SystemClock())
    outlook, found = watch.look(), inspect(parsed.directory)
    if found.owner.alive:
        time.sleep(PACE_S)
        outlook, found = watch.look(), inspect(parsed.directory)
    print(as_json(found, outlook) if parsed.json else as_table(found, outlook))
    return 0


def _verify(parsed: argparse.Namespace) -> int:
    from skyfarer.cli.progress import shown
    from skyfarer.cli.queue_text import of_verdict
    from skyfarer.queue.inspection import inspect
    from skyfarer.queue.onlooker import verify

    with (
        _opened(parsed.directory) as reader,
        shown("checked", reader.writing() - reader.oldest()) as progress,
    ):
        verdict = verify(reader, progress.update)
    lines, whole = of_verdict(verdict, inspect(parsed.directory))
    print("\n".join(lines))
    return 0 if whole else DAMAGED


def _dump(parsed: argparse.Namespace) -> int:
    from skyfarer.cli.progress import shown
    from skyfarer.queue.onlooker import dump_head, pieces

    with _opened(parsed.directory) as reader:
        start, end = _range(parsed, reader)
        records = pieces(reader, start, end)
        if parsed.out is None:
            return _to_terminal(records)
        with (
            _new_file(parsed.out, parsed.directory) as file,
            shown("dumped", end - start) as progress,
        ):
            file.write(dump_head(reader.queue_id))
            missing = _to_file(records, file, progress)
    print(f"{end - start - missing} records in {parsed.out}")
    return DAMAGED if missing else 0


def _to_terminal(pieces: Iterator[list[Record] | Gap]) -> int:
    from skyfarer.cli.queue_text import of_record

    missing = 0
    try:
        for piece in pieces:
            if isinstance(piece, list):
                for record in piece:
                    print(of_record(record))
            else:
                missing += _miss(piece)
        sys.stdout.flush()
    except BrokenPipeError:
        # Whoever read the lines has enough of them; Python would complain once more at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return DAMAGED if missing else 0


def _to_file(pieces: Iterator[list[Record] | Gap], file: BinaryIO, progress: Progress) -> int:
    """How many records are missing from it."""
    written = missing = 0
    for piece in pieces:
        if isinstance(piece, list):
            for record in piece:
                file.write(record.dumped())
            written += len(piece)
        else:
            missing += _miss(piece)
        progress.update(written + missing)
    return missing


def _miss(gap: Gap) -> int:
    from skyfarer.cli.queue_text import of_gap

    print(of_gap(gap), file=sys.stderr)
    return gap.records


def _replay(parsed: argparse.Namespace) -> int:
    from skyfarer.cli.progress import shown
    from skyfarer.cli.queue_text import of_replay
    from skyfarer.cli.replay import replay
    from skyfarer.queue.onlooker import pieces

    with _opened(parsed.directory) as reader:
        start, end = _range(parsed, reader)
        with shown("replayed", end - start) as progress:
            done = replay(
                pieces(reader, start, end),
                parsed.upstream,
                lambda reached: progress.update(reached - start),
            )
    print("\n".join(of_replay(done)))
    return 0 if done.whole else DAMAGED


def _check(directory: Path) -> None:
    from skyfarer.base.errors import ConfigError

    if not (directory / "meta").is_file():
        below = directory / "queue"
        hint = f"; there is one in {below}" if (below / "meta").is_file() else ""
        raise ConfigError(f"{directory} is not a queue directory: it has no file 'meta'{hint}")


@contextmanager
def _opened(directory: Path) -> Iterator[Reader]:
    from skyfarer.queue.reader import Reader

    _check(directory)
    reader = Reader(directory)
    reader.start()
    try:
        yield reader
    finally:
        reader.stop()


def _range(parsed: argparse.Namespace, reader: Reader) -> tuple[int, int]:
    from skyfarer.base.errors import ConfigError

    writing = reader.writing()
    start = reader.oldest() if parsed.start is None else parsed.start
    end = writing if parsed.end is None else parsed.end
    if not start <= end <= writing:
        raise ConfigError(
            f"{parsed.directory} has no records {start} to {end}: "
            f"it holds {reader.oldest()} up to, not including, {writing}"
        )
    return start, end


@contextmanager
def _new_file(path: Path, directory: Path) -> Iterator[BinaryIO]:
    """As private as the queue's own files, never one that exists, never beside the segments."""
    from skyfarer.base.errors import ConfigError, PermanentError

    if directory.resolve() in path.resolve().parents:
        raise ConfigError(f"{path} lies in the queue's own directory, which is only read")
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, DUMP_MODE)
    except OSError as error:
        raise ConfigError(f"cannot create {path}: {error.strerror}") from error
    try:
        with open(fd, "wb") as file:  # noqa: PTH123 - a descriptor, not a path
            yield file
    except OSError as error:
        raise PermanentError(f"cannot write {path}: {error.strerror}") from error
