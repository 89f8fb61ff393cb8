"""Texts as serialised `skywalking.v3.LogData`, byte for byte what the generated code would write.

timestamp 1, service 2, serviceInstance 3   the same for a whole batch
body 5 { text 2 { text 1 } }                three lengths that depend on the text's alone
tags 7 { data 1 { key 1, value 2 } }, layer 8    the same for a whole file
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

from skyfarer.wire.protobuf import delimited, head, number, text

PATH_TAG = "log.file.path"
LENGTHS_MAX = 4096


class LogRecords:
    """Makes the records of one fetcher; pure."""

    def __init__(
        self, service: str, service_instance: str, layer: str, tags: Mapping[str, str]
    ) -> None:
        self._identity = text(2, service) + text(3, service_instance)
        self._tags = tags
        self._layer = text(8, layer)

    def ending(self, path: str) -> bytes:
        """What stands behind the text in every record of a file."""
        tags = {PATH_TAG: path, **self._tags}
        pairs = (text(1, key) + text(2, value) for key, value in tags.items())
        return delimited(7, b"".join(delimited(1, pair) for pair in pairs)) + self._layer

    def encode(self, texts: Sequence[bytes], timestamp_ms: int, ending: bytes) -> list[bytes]:
        """One record for each text, which must be UTF-8 and not empty."""
        before = number(1, timestamp_ms) + self._identity
        heads = {length: before + _body_head(length) for length in set(map(len, texts))}
        return [heads[len(line)] + line + ending for line in texts]


@lru_cache(LENGTHS_MAX)
def _body_head(length: int) -> bytes:
    inner = head(1, length)
    content = head(2, len(inner) + length) + inner
    return head(5, len(content) + length) + content
