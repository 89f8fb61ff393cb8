"""Files that are not in UTF-8: cut into lines as they are, turned into UTF-8, then cut as such."""

from __future__ import annotations

from itertools import accumulate, count, pairwise
from operator import add

from skyfarer.satellite.fetchers.log.charset import Charset
from skyfarer.satellite.fetchers.log.lines import NEWLINE, NO_TEXTS, Cut, Flush, Splitter

# A byte of any encoding becomes three of UTF-8 at most.
GROWTH_MAX = 3


class TranscodingSplitter:
    """A `Splitter` whose `ends` are places in the file's own bytes."""

    def __init__(self, charset: Charset, inner: Splitter, bytes_max: int) -> None:
        self._charset = charset
        self._inner = inner
        width = len(charset.newline)
        self._line_bytes_max = (bytes_max - 1) // GROWTH_MAX // width * width

    def split(self, block: bytes, flush: Flush) -> Cut:
        ends, cuts = self._line_ends(block, flush)
        if not ends:
            return NO_TEXTS
        newline = self._charset.newline
        lines = [block[a:b].removesuffix(newline) for a, b in pairwise((0, *ends))]
        texts, undecodable = self._decoded(lines)
        cut = self._inner.split(NEWLINE.join(texts) + NEWLINE, flush)
        place = dict(zip(map(add, accumulate(map(len, texts)), count(1)), ends, strict=True))
        own = [place[end] for end in cut.ends]
        return Cut(cut.texts, own, place.get(cut.used, 0), cut.cuts + cuts, undecodable)

    def _line_ends(self, block: bytes, flush: Flush) -> tuple[list[int], int]:
        """Those of whole lines, and of the parts that a line above the bound is cut into."""
        ends = self._charset.line_ends(block)
        whole = ends[-1] if ends else 0
        if flush is Flush.ALL and whole < len(block):
            ends.append(len(block))
        bounded: list[int] = []
        start = 0
        for end in [*ends, len(block)]:
            while end - start > self._line_bytes_max + len(self._charset.newline):
                part = block[start : start + self._line_bytes_max]
                start += self._charset.whole_characters(part) or len(part)
                bounded.append(start)
            bounded.append(end)
            start = end
        bounded.pop()
        return bounded, len(bounded) - len(ends)

    def _decoded(self, lines: list[bytes]) -> tuple[list[bytes], int]:
        codec = self._charset.codec
        try:
            return [line.decode(codec).encode() for line in lines], 0
        except UnicodeError:
            return self._replaced(lines)

    def _replaced(self, lines: list[bytes]) -> tuple[list[bytes], int]:
        codec, undecodable = self._charset.codec, 0
        texts = []
        for line in lines:
            try:
                text = line.decode(codec)
            except UnicodeError:
                text = line.decode(codec, "replace")
                undecodable += 1
            texts.append(text.encode("utf-8", "replace").replace(NEWLINE, b" "))
        return texts, undecodable
