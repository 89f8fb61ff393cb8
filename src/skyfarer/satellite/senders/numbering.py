"""How an upstream learns which records of which queue it is sent, so that it can know a resend.

`wire.numbering` says what the metadata means. An upstream that wants each record once keeps the
numbers it has; the calls of a batch may come in any order, and to several upstreams. Any other
upstream ignores this.
"""

from __future__ import annotations

from collections.abc import Sequence

from skyfarer.satellite.contracts import Batch
from skyfarer.wire.numbering import FIRST_SEQUENCE_KEY as FIRST_SEQUENCE_KEY
from skyfarer.wire.numbering import LISTED_RECORDS_MAX as LISTED_RECORDS_MAX
from skyfarer.wire.numbering import PRODUCER_KEY as PRODUCER_KEY
from skyfarer.wire.numbering import SEQUENCES_KEY as SEQUENCES_KEY
from skyfarer.wire.numbering import Number, listed

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
    numbers = relative(batch, messages)
    plain = "0" if len(batch.payloads) == 1 else f"0-{len(batch.payloads) - 1}"
    return base if numbers == plain else (*base, (SEQUENCES_KEY, numbers))


def relative(batch: Batch, messages: Sequence[Indexes] | None) -> str:
    """What `skyfarer-sequences` says of a call with these messages."""
    numbers = batch.numbers
    if messages is None:
        return listed(numbers, batch.first)
    said: list[Number] = [
        numbers[indexes[0]] if len(indexes) == 1 else tuple(numbers[index] for index in indexes)
        for indexes in messages
    ]
    return listed(said, batch.first)
