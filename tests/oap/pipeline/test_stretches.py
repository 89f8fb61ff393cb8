from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from skyfarer.oap.pipeline.stretches import STRETCHES_MAX, rows_at

COUNT = 4 * STRETCHES_MAX
ROWS = pa.concat_tables(
    pa.table(
        {"number": range(at, at + 7), "texts": [[f"{n}"] * (n % 3) for n in range(at, at + 7)]}
    )
    for at in range(0, COUNT, 7)
)
EACH = np.arange(COUNT)
ORDERS = {
    "as they are": EACH,
    "but one": np.delete(EACH, 77),
    "the last one earlier": np.insert(EACH[:-1], 50, COUNT - 1),
    "every other one": EACH[::2],
    "backwards": EACH[::-1],
    "one": EACH[:1],
    "none": EACH[:0],
}


@pytest.mark.parametrize("order", ORDERS.values(), ids=ORDERS)
def test_rows_are_those_at_the_places_in_their_order(order: np.ndarray) -> None:
    assert rows_at(ROWS, order).equals(ROWS.take(pa.array(order)))


def test_rows_side_by_side_are_not_copied() -> None:
    first = rows_at(ROWS, ORDERS["but one"])["number"].chunk(0)
    assert first.buffers()[1].address == ROWS["number"].chunk(0).buffers()[1].address
