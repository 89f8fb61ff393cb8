from __future__ import annotations

import gc

from skyfarer.oap.boot.settling import settled


def test_what_was_there_is_left_out_of_collections_until_the_end() -> None:
    with settled():
        assert gc.get_freeze_count() > 10_000
        assert len(gc.get_objects()) < gc.get_freeze_count()
    assert gc.get_freeze_count() == 0
