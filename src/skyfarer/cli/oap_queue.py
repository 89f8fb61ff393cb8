"""`skyfarer oap queue`: tells the analysis of an OAP which records of its queue to leave out."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from skyfarer.cli import descriptions as say
from skyfarer.cli.oap_place import add_place, directory, whole
from skyfarer.cli.parser import Parser

if TYPE_CHECKING:
    from skyfarer.queue.reader import Reader

Commands = argparse._SubParsersAction
SEQUENCE_MAX = 1 << 62
BY_AN_OPERATOR = "by an operator"


def add_ingest_queue(parts: Commands[Parser]) -> None:
    about, examples = say.INGEST_QUEUE_ABOUT, say.INGEST_QUEUE_EXAMPLES
    group = parts.add_parser(
        "queue", help="records that stop the analysis", description=about, epilog=examples
    )
    queue = group.add_subparsers(metavar="COMMAND")
    skip = queue.add_parser(
        "skip", help="leave a record out of the analysis", description=about, epilog=examples
    )
    skip.set_defaults(parser=skip, package="skyfarer[oap]", command=_skip)
    add_place(skip)
    skip.add_argument(
        "--at",
        metavar="N",
        type=whole(0, SEQUENCE_MAX),
        required=True,
        help="the record's number, as the log gives it",
    )
    skip.add_argument(
        "--reason",
        metavar="TEXT",
        default=BY_AN_OPERATOR,
        help="stored with the parked record (default: %(default)s)",
    )
    group.set_defaults(parser=group)
    group.commands = tuple(queue.choices)


def _skip(parsed: argparse.Namespace) -> int:
    from skyfarer.oap.boot.settings import INGEST_DIRECTORY

    return skip(directory(parsed) / INGEST_DIRECTORY, parsed.at, parsed.reason)


def skip(queue_directory: Path, sequence: int, reason: str) -> int:
    """Adds the record to the list; the queue itself is only read, whether its owner runs or not."""
    from skyfarer.base.errors import ConfigError
    from skyfarer.queue.errors import QueueMissing
    from skyfarer.queue.reader import Reader
    from skyfarer.queue.skips import add_skip

    reader = Reader(queue_directory)
    try:
        reader.start()
    except QueueMissing as error:
        raise ConfigError(
            f"there is no ingest queue in {queue_directory}; name the data directory of the OAP"
            " with --data-dir, or its file with --config"
        ) from error
    try:
        first = _first_not_analysed(reader, queue_directory)
        record = _described(reader, sequence, first)
    finally:
        reader.stop()
    add_skip(queue_directory, sequence, reason, first)
    print(
        f"record {sequence} ({record}) will be parked with its bytes as `skipped` when the analysis"
        " next begins: it tries again by itself, or restart the OAP;"
        f" `skyfarer oap parked show {sequence}` then shows it"
    )
    return 0


def _first_not_analysed(reader: Reader, queue_directory: Path) -> int:
    """Returns the place of the analysis; the oldest record if both copies of it are damaged."""
    from skyfarer.oap.boot.settings import ANALYSIS_CONSUMER
    from skyfarer.queue.checkpoint import peek

    place = peek(queue_directory, ANALYSIS_CONSUMER, bytes.fromhex(reader.queue_id))
    return place.committed if place is not None else reader.oldest()


def _described(reader: Reader, sequence: int, first: int) -> str:
    """Says what the record is; ConfigError for a number that no record waits under."""
    from skyfarer.base.errors import ConfigError
    from skyfarer.cli.queue_text import kind_name
    from skyfarer.queue.onlooker import pieces

    if sequence < first:
        raise ConfigError(
            f"record {sequence} was analysed already: the analysis is at record {first};"
            f" `skyfarer oap parked show {sequence}` shows it if it was parked"
        )
    writing = reader.writing()
    if sequence >= writing:
        raise ConfigError(
            f"record {sequence} is not in the queue yet: the next to come is {writing}"
        )
    [piece] = pieces(reader, sequence, sequence + 1)
    if isinstance(piece, list):
        return f"{kind_name(piece[0].kind)}, {len(piece[0].payload)} bytes"
    if piece.what == "overwritten":
        raise ConfigError(
            f"record {sequence} is no longer in the queue: the oldest is {reader.oldest()}"
        )
    return f"{piece.what} in the queue, so without its bytes"
