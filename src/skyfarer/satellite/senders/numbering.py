"""How an upstream learns which records of which queue it is sent, so that it can know a resend.

    skyfarer-producer         the queue
    skyfarer-first-sequence   the batch's first record; all before it is settled, and over
    skyfarer-sequences        which records the call's messages are, relative to the first one

The last is left out when message i is record first + i. Else it lists the messages in order: `4` is
one, `4-9` are six of them, `(4,7-9)` is one message made of four records. So an upstream that wants
each record once keeps the numbers it has from `first-sequence` on, and forgets those before it; the
calls of a batch may come in any order, and to several upstreams. Any other upstream ignores this.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from skyfarer.satellite.contracts import Batch

PRODUCER_KEY = "skyfarer-producer"
FIRST_SEQUENCE_KEY = "skyfarer-first-sequence"
SEQUENCES_KEY = "skyfarer-sequences"

# A header, and servers bound those: grpc-java at 8 KiB for all of them together.
LISTED_RECORDS_MAX = 500

Indexes = Sequence[int]


def numbered(
    producer: str, batch: Batch, messages: Sequence[Indexes] | None
) -> tuple[tuple[str, str], ...]:
    """The metadata of a call whose message i is made of the batch's payloads `messages[i]`, or
    which carries the batch as it stands."""
    if batch.emitted:
        return ()
    base = ((PRODUCER_KEY, producer), (FIRST_SEQUENCE_KEY, str(batch.first)))
    if messages is None and not batch.kept:
        return base
    listed = relative(batch, messages)
    plain = "0" if len(batch.payloads) == 1 else f"0-{len(batch.payloads) - 1}"
    return base if listed == plain else (*base, (SEQUENCES_KEY, listed))


def relative(batch: Batch, messages: Sequence[Indexes] | None) -> str:
    """What `skyfarer-sequences` says of a call with these messages."""
    numbers, first = batch.numbers, batch.first
    if messages is None:
        return ",".join(_runs([number - first for number in numbers]))
    pieces: list[str] = []
    singles: list[int] = []
    for indexes in messages:
        if len(indexes) == 1:
            singles.append(numbers[indexes[0]] - first)
            continue
        pieces += _runs(singles)
        singles = []
        pieces.append(f"({','.join(_runs([numbers[index] - first for index in indexes]))})")
    return ",".join([*pieces, *_runs(singles)])


def _runs(numbers: list[int]) -> Iterator[str]:
    start = 0
    for index, number in enumerate(numbers):
        if index + 1 == len(numbers) or numbers[index + 1] != number + 1:
            first = numbers[start]
            yield str(first) if index == start else f"{first}-{number}"
            start = index + 1
