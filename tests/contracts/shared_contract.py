"""What every storage provider must do that several nodes may share, unless it lacks just that.

A provider's test file subclasses and gives `storage` and `other`: two nodes of the same tables.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, timedelta, timezone
from typing import Any, ClassVar
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest

from contracts.storage_contract import BUCKET, MINUTE, batch, delta, segment
from skyfarer.base.errors import PermanentError
from skyfarer.oap.core import ids
from skyfarer.oap.core.capabilities import Capability
from skyfarer.oap.core.parked import ParkedQuery
from skyfarer.oap.core.storage import Parked, StoredMeanwhileError
from skyfarer.oap.core.tasks import ProfileTask

TIMEOUT_S = 120


def at_once(*work: Callable[[], Any]) -> list[Any]:
    """All begin together; what they return, or raise."""
    ready = threading.Barrier(len(work))

    def run(one: Callable[[], Any]) -> Any:
        ready.wait(TIMEOUT_S)
        return one()

    with ThreadPoolExecutor(len(work)) as pool:
        return [one.result(TIMEOUT_S) for one in [pool.submit(run, each) for each in work]]


class SharedContract:
    needs: ClassVar = Capability.SEVERAL_NODES

    @pytest.mark.parametrize("install", [True, False])
    @pytest.mark.parametrize("zone", [ZoneInfo("Europe/London"), timezone(timedelta(hours=9))])
    def test_a_node_of_another_zone_is_refused_before_it_takes_days_for_others(
        self, storage: Any, other: Any, zone: Any, install: bool
    ) -> None:
        """The tables are of UTC."""
        other.stop()
        with pytest.raises(PermanentError, match=r"are of the zone UTC, .* start it with TZ=UTC,"):
            other.start(zone, install)
        for same in (ZoneInfo("Africa/Abidjan"), timezone(timedelta(0), "GMT"), UTC):
            other.start(same, install)
            assert other.day_tables() == storage.day_tables()
            other.stop()

    def test_a_batch_that_is_sent_twice_at_once_is_stored_once(
        self, storage: Any, other: Any
    ) -> None:
        def apply(node: Any) -> bool:
            try:
                node.apply(batch(0, 1, [segment("a")], [delta()]))
            except PermanentError as error:
                assert "storage has applied it up to 1" in str(error)
                return False
            return True

        assert sorted(at_once(lambda: apply(storage), lambda: apply(other))) == [False, True]
        series = storage.series("Service", ids.service_id("shop"), ["calls"], BUCKET, BUCKET)
        assert series == {BUCKET: {"calls": 1}}

    def test_of_two_batches_with_one_segment_at_once_the_later_is_told_and_leaves_nothing(
        self, storage: Any, other: Any
    ) -> None:
        """Whether the segment is stored or only known."""
        minute = pa.chunked_array([[MINUTE]])
        unsampled = pa.table({"segment_id": ["b"], "minute": [MINUTE]})
        for number, rows in enumerate(({"segments": [segment("a")]}, {"unsampled": unsampled})):

            def apply(node: Any, name: str, number: int = number, rows: Any = rows) -> str:
                one = batch(number, number + 1, deltas=[delta()], **rows)
                try:
                    node.apply(replace(one, partition=name))
                except StoredMeanwhileError as error:
                    assert "analysed again without it" in str(error)
                    return name
                return ""

            (lost,) = filter(None, at_once(lambda: apply(storage, "x"), lambda: apply(other, "y")))
            assert storage.applied(lost) == number
            assert list(storage.known_segments(pa.chunked_array([["ab"[number]]]), minute))
            storage.apply(replace(batch(number, number + 1), partition=lost))
        series = storage.series("Service", ids.service_id("shop"), ["calls"], BUCKET, BUCKET)
        assert series == {BUCKET: {"calls": 2}}

    def test_two_that_number_parked_records_at_once_give_no_number_twice(
        self, storage: Any, other: Any
    ) -> None:
        parked = [Parked(number, 1, "incomplete", b"x") for number in range(20)]
        storage.apply(batch(0, 20, parked=parked, dropped={"incomplete": 20}))

        def number(node: Any, within: range) -> set[int]:
            found = node.intend_retry(ParkedQuery("queue-a"), within, 99, 999)
            return {retry.number for retry in found}

        first, second = at_once(
            lambda: number(storage, range(10)), lambda: number(other, range(10, 20))
        )
        assert first | second == set(range(20))

    def test_of_two_profiles_of_one_service_at_once_one_is_refused(
        self, storage: Any, other: Any
    ) -> None:
        task = ProfileTask("", "shop", "/pay", 1000, 5, 0, 10, 5, 1000)

        def add(node: Any) -> bool:
            try:
                node.add_profile_task(task)
            except PermanentError:
                return False
            return True

        assert sorted(at_once(lambda: add(storage), lambda: add(other))) == [False, True]
