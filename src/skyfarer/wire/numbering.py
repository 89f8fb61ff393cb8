"""Which records of which queue a call carries, as a satellite says it in the call's metadata.

    skyfarer-producer         the queue
    skyfarer-first-sequence   the batch's first record; all before it is settled, and over
    skyfarer-sequences        which records the call's messages are, relative to the first one

The last is left out when message i is record first + i. Else it lists the messages in order: `4` is
one, `4-9` are six of them, `(4,7-9)` is one message made of four records, which are the elements of
its field 1. A sender writes this (`satellite.senders.numbering`); a receiver hands it to the
`Append` of the call's path, which may know by it what it has already.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, count, islice
from typing import Final

PRODUCER_KEY: Final = "skyfarer-producer"
FIRST_SEQUENCE_KEY: Final = "skyfarer-first-sequence"
SEQUENCES_KEY: Final = "skyfarer-sequences"

# A header, and servers bound those: grpc-java at 8 KiB for all of them together.
LISTED_RECORDS_MAX: Final = 500
# A queue's id has 32; whoever else sends this may name himself.
PRODUCER_BYTES_MAX: Final = 64
# Of the first one and of what is counted from there: their sum can be listed again.
SEQUENCE_MAX: Final = 10**17

PRODUCER_HEADER: Final = PRODUCER_KEY.encode()
_FIRST_HEADER: Final = FIRST_SEQUENCE_KEY.encode()
_SEQUENCES_HEADER: Final = SEQUENCES_KEY.encode()
_PRODUCER: Final = re.compile(rb"[!-~]{1,%d}" % PRODUCER_BYTES_MAX)
_NUMBER: Final = re.compile(r"[0-9]{1,18}")
_ITEM: Final = re.compile(r"\(([0-9,-]+)\)|([0-9-]+)")

Number = int | tuple[int, ...]
"""The record that a message is, or the records it is made of; () when nobody said."""
Item = range | tuple[int, ...]
"""Messages that are one record each, or one that is made of several."""


class Numbered(list[bytes]):
    """Payloads of one call, `numbers[i]` that of payload i. An `Append` may take them for any other
    payloads; one that wants each record once looks. `producer` is empty if it could not be read."""

    __slots__ = ("first", "numbers", "producer")

    def __init__(self, producer: str, first: int) -> None:
        super().__init__()
        self.producer = producer
        self.first = first
        self.numbers: list[Number] = []

    def add(self, payload: bytes, number: Number) -> None:
        self.append(payload)
        self.numbers.append(number)


class Numbering:
    """What one call says of its messages, asked for in their order."""

    __slots__ = ("_rest", "first", "producer")

    def __init__(self, producer: str, first: int, numbers: Iterator[Number]) -> None:
        self.producer = producer
        self.first = first
        self._rest = numbers

    @classmethod
    def of_headers(cls, fields: Mapping[bytes, bytes]) -> Numbering:
        """Without a producer when they make no sense: the records are kept all the same."""
        producer = fields.get(PRODUCER_HEADER, b"")
        first = fields.get(_FIRST_HEADER, b"").decode("latin-1")
        listed = fields.get(_SEQUENCES_HEADER)
        if not _PRODUCER.fullmatch(producer) or not _NUMBER.fullmatch(first):
            return cls("", 0, iter(()))
        name, begin = producer.decode("ascii"), int(first)
        try:
            items = None if listed is None else parsed(listed.decode("latin-1"))
        except ValueError:
            return cls("", 0, iter(()))
        largest = [item[-1] if isinstance(item, range) else max(item) for item in items or ()]
        if max([begin, *largest]) > SEQUENCE_MAX:
            return cls("", 0, iter(()))
        return cls(name, begin, count(begin) if items is None else numbers_of(items, begin))

    def take(self, messages: int) -> list[Number]:
        """Of the next so many messages."""
        taken = list(islice(self._rest, messages))
        return taken + [()] * (messages - len(taken))


def parsed(text: str) -> list[Item]:
    """What `skyfarer-sequences` lists, as it stands there. ValueError when it is not like that."""
    items: list[Item] = []
    position = 0
    while position <= len(text):
        found = _ITEM.match(text, position)
        if found is None or text[found.end() : found.end() + 1] not in ("", ","):
            raise ValueError(f"{text[:80]!r} is no list of sequences")
        if found[1] is not None:
            ranges = [_range(run) for run in found[1].split(",")]
            if sum(map(len, ranges)) > LISTED_RECORDS_MAX:
                raise ValueError(f"a message of more than {LISTED_RECORDS_MAX} records")
            items.append(tuple(chain.from_iterable(ranges)))
        else:
            items.append(_range(found[2]))
        position = found.end() + 1
    return items


def _range(run: str) -> range:
    first, dash, last = run.partition("-")
    if not _NUMBER.fullmatch(first) or (dash and not _NUMBER.fullmatch(last)):
        raise ValueError(f"{run[:40]!r} is no run of sequences")
    numbers = range(int(first), int(last or first) + 1)
    if not numbers:
        raise ValueError(f"{run[:40]!r} ends before it begins")
    return numbers


def numbers_of(items: Iterable[Item], first: int) -> Iterator[Number]:
    """Message by message, no longer relative; a run of any length takes no room."""
    for item in items:
        if isinstance(item, range):
            yield from range(item.start + first, item.stop + first)
        else:
            yield tuple(number + first for number in item)


def listed(numbers: Sequence[Number], first: int) -> str:
    """What `skyfarer-sequences` says of messages with these numbers, all of them known."""
    if isinstance(numbers, range) and len(numbers) > 1:
        return f"{numbers.start - first}-{numbers.stop - 1 - first}"
    pieces: list[str] = []
    singles: list[int] = []
    for number in numbers:
        if isinstance(number, int):
            singles.append(number - first)
            continue
        pieces += runs(singles)
        singles = []
        pieces.append(f"({','.join(runs([one - first for one in number]))})")
    return ",".join([*pieces, *runs(singles)])


def runs(numbers: Sequence[int]) -> Iterator[str]:
    start = 0
    for index, number in enumerate(numbers):
        if index + 1 == len(numbers) or numbers[index + 1] != number + 1:
            first = numbers[start]
            yield str(first) if index == start else f"{first}-{number}"
            start = index + 1
