"""The list of records that the analysis must not look at, made by an operator, kept on disk.

`skips.json` lies in the directory of the ingest queue. It names the queue by its id, so a queue
that is made anew in the same directory ignores the list of its predecessor. The command writes the
file and the analysis reads it whenever its query begins; the queue itself never opens it.

    {"version": 1, "queue": "<id, 32 hex digits>", "skipped": {"<sequence>": "<reason>", …}}

A record of the list is parked with its bytes as `skipped: <reason>`. Parking the same record again
changes nothing, so an entry may stay in the list for as long as anybody likes.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from skyfarer.base.errors import PermanentError
from skyfarer.queue.disk import FILE_MODE, Disk, sync_directory
from skyfarer.queue.errors import disk_error
from skyfarer.queue.meta import read_meta

SKIPPED: Final = "skipped"
SKIPS_MAX: Final = 10_000
REASON_CHARACTERS_MAX: Final = 200
FILE: Final = "skips.json"
_VERSION: Final = 1
_UNFINISHED: Final = FILE + ".new"  # the queue's writer removes a leftover of that ending


def read_skips(queue_directory: Path) -> dict[int, str]:
    """Returns sequence → reason in order of sequence, or nothing where this queue has no list.

    May be called from any process at any time; it sees the list before or after a change. Raises
    QueueMissing where there is no queue, and PermanentError, which names the file, for a file that
    is damaged or cannot be read.
    """
    return _read(queue_directory / FILE, _queue_id(queue_directory))


def add_skip(queue_directory: Path, sequence: int, reason: str, keep_from: int) -> None:
    """Puts a record into the list; the list survives a kill and a power cut on return.

    Entries below `keep_from`, the first number that is not analysed yet, leave the list. Adding a
    record again replaces its reason. Only the owner of the queue's files may add, since the
    analysis could not read another user's file. Raises PermanentError when the list is full.
    """
    path, queue_id = queue_directory / FILE, _queue_id(queue_directory)
    _check_owner(queue_directory)
    with _alone(queue_directory):
        known = _read(path, queue_id)
        kept = {number: text for number, text in known.items() if number >= keep_from}
        kept[sequence] = " ".join(reason.split())[:REASON_CHARACTERS_MAX]
        if len(kept) > SKIPS_MAX:
            raise PermanentError(
                f"{path} holds {SKIPS_MAX} records that are not analysed yet, and takes no more;"
                " let the analysis go past some of them first"
            )
        _replace(path, queue_id, kept)


def _queue_id(queue_directory: Path) -> str:
    return read_meta(queue_directory).queue_id.hex()


def _read(path: Path, queue_id: str) -> dict[int, str]:
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise disk_error(error, path, "read") from error
    try:
        owner, skips = _parsed(json.loads(data))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise PermanentError(
            f"{path} is damaged ({error}); mend it or remove it, and skip its records again"
        ) from error
    return dict(sorted(skips.items())) if owner == queue_id else {}


def _parsed(content: Any) -> tuple[str, dict[int, str]]:
    """Returns the queue's id and the list; raises one of the errors of a wrong shape."""
    if content["version"] != _VERSION:
        raise ValueError(f"it has version {content['version']!r}, not {_VERSION}")
    owner, skips = content["queue"], content[SKIPPED]
    if not isinstance(owner, str) or not all(isinstance(text, str) for text in skips.values()):
        raise TypeError("the queue's id or a reason is no text")
    if not all(number.isascii() and number.isdigit() for number in skips):
        raise ValueError("a sequence is no number")
    return owner, {int(number): text for number, text in skips.items()}


def _check_owner(queue_directory: Path) -> None:
    owner = (queue_directory / "meta").stat().st_uid
    if owner != os.geteuid():
        raise PermanentError(
            f"the queue in {queue_directory} belongs to user {owner}, who must be able to read the"
            f" list: run this as that user, as in sudo -u '#{owner}' …"
        )


@contextmanager
def _alone(queue_directory: Path) -> Iterator[None]:
    """Waits until no other process changes the list; the queue's own lock is another file's."""
    try:
        fd = os.open(queue_directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise disk_error(error, queue_directory, "open") from error
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)


def _replace(path: Path, queue_id: str, skips: Mapping[int, str]) -> None:
    content = {
        "version": _VERSION,
        "queue": queue_id,
        SKIPPED: {str(number): skips[number] for number in sorted(skips)},
    }
    new = path.with_name(_UNFINISHED)
    try:
        with new.open("w", encoding="utf-8") as file:
            os.fchmod(file.fileno(), FILE_MODE)
            json.dump(content, file, indent=1, ensure_ascii=False)
            file.flush()
            os.fsync(file.fileno())
        new.replace(path)
    except OSError as error:
        raise disk_error(error, path, "write") from error
    sync_directory(Disk(), path.parent)
