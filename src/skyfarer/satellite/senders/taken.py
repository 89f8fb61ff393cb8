"""What the upstream has taken of a batch that failed in part.

A batch may leave as several calls or Kafka records. When some of them fail, the sender comes back
with the same batch, or with a half of it; what was taken the first time must not go out again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from skyfarer.satellite.contracts import Batch


class Taken:
    """Record numbers, of one batch at most. Records a filter emitted have none: they go again."""

    def __init__(self) -> None:
        self._numbers: set[int] = set()

    def left(self, batch: Batch) -> Sequence[int]:
        """The indexes of the batch's payloads that are still to be sent."""
        everything = range(len(batch.payloads))
        if not self._numbers or batch.emitted:
            return everything
        self._numbers = {number for number in self._numbers if number >= batch.first}
        numbers = batch.numbers
        return [index for index in everything if numbers[index] not in self._numbers]

    def add(self, batch: Batch, indexes: Iterable[int]) -> None:
        if not batch.emitted:
            numbers = batch.numbers
            self._numbers.update(numbers[index] for index in indexes)

    def forget(self, batch: Batch) -> None:
        """The whole of it is taken, and will not come again."""
        if self._numbers and not batch.emitted:
            self._numbers.difference_update(batch.numbers)
