"""`meta`: what a directory was made with. Written once, whole or not at all, and never again."""

from __future__ import annotations

import os
import struct
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from skyfarer.base.errors import PermanentError
from skyfarer.queue.disk import Disk, create_whole
from skyfarer.queue.errors import QueueMissing, disk_error
from skyfarer.queue.layout import FORMAT_VERSION, PAGE_BYTES, Geometry, open_page, seal_page

QUEUE_ID_BYTES: Final = 16

_META: Final = struct.Struct("<8sI16sQI")
_MAGIC: Final = b"SKYQMETA"


@dataclass(frozen=True, slots=True)
class Meta:
    queue_id: bytes
    geometry: Geometry

    def encode(self) -> bytes:
        shape = self.geometry
        return seal_page(
            _META.pack(_MAGIC, FORMAT_VERSION, self.queue_id, shape.segment_bytes, shape.segments)
        )


def read_meta(directory: Path) -> Meta:
    """QueueMissing when there is none; PermanentError when it is not ours to read."""
    path = directory / "meta"
    try:
        page = path.read_bytes()
    except FileNotFoundError as error:
        raise QueueMissing(f"there is no queue in {directory} yet; its writer makes it") from error
    except OSError as error:
        raise disk_error(error, path, "read") from error
    body = open_page(page, _META.size)
    if body is None:
        raise PermanentError(
            f"{path} is damaged in both its copies; move the directory {directory} away to start "
            "an empty queue, the records in it stay readable to a repair"
        )
    magic, version, queue_id, segment_bytes, segments = _META.unpack(body)
    if magic != _MAGIC or version != FORMAT_VERSION or sys.byteorder != "little":
        raise PermanentError(
            f"{path} has queue format {version}, this program reads format {FORMAT_VERSION} on "
            "little-endian machines; drain the queue with the program that wrote it"
        )
    return Meta(queue_id, Geometry(segment_bytes, segments))


def open_or_create_meta(disk: Disk, directory: Path, geometry: Geometry) -> Meta:
    """The caller holds the lock. Another shape than the one on disk is refused, never converted."""
    try:
        meta = read_meta(directory)
    except QueueMissing:
        meta = _create(disk, directory, geometry)
    if meta.geometry != geometry:
        raise PermanentError(
            f"the queue in {directory} was made with {_in_words(meta.geometry)}, the settings say "
            f"{_in_words(geometry)}; start once with the old settings until it is drained and then "
            "remove the directory, or give the new settings another directory"
        )
    return meta


def _create(disk: Disk, directory: Path, geometry: Geometry) -> Meta:
    orphans = sorted(path.name for path in directory.glob("*.seg"))
    if orphans:
        raise PermanentError(
            f"{directory} holds segments ({orphans[0]} …) but no meta file; "
            "restore it, or move the directory away to start an empty queue"
        )
    meta = Meta(os.urandom(QUEUE_ID_BYTES), geometry)
    create_whole(disk, directory / "meta", meta.encode(), PAGE_BYTES, durable=True)
    return meta


def _in_words(geometry: Geometry) -> str:
    capacity = geometry.segment_bytes * geometry.segments
    return f"segment_bytes={geometry.segment_bytes} and capacity_bytes={capacity}"
