from __future__ import annotations

import pytest

from skyfarer.queue.checksum import crc32c
from skyfarer.queue.records import failures, payload_views, seal

PAYLOADS = [b"first", b"", b"third record"]
DATA = memoryview(b"....." + b"".join(PAYLOADS) + b".....")


def entries(**changes: int) -> memoryview:
    place = {"number": 7, "sequence": 100, "start": 5, "kind": 3} | changes
    return memoryview(seal(**place, lengths=list(map(len, PAYLOADS)), payloads=PAYLOADS))


def test_the_checksum_is_crc32c():
    assert crc32c(b"123456789") == 0xE3069283
    assert crc32c(memoryview(b"6789"), crc32c(b"12345")) == 0xE3069283


def test_a_batch_is_sealed_as_its_records_are_one_by_one():
    start, singles = 5, b""
    for n, payload in enumerate(PAYLOADS):
        singles += seal(7, 100 + n, start, 3, [len(payload)], [payload])
        start += len(payload)
    assert bytes(entries()) == singles
    assert failures(7, 100, entries(), DATA) == []
    assert list(map(bytes, payload_views(entries(), DATA))) == PAYLOADS


@pytest.mark.parametrize("elsewhere", [{"number": 8}, {"sequence": 101}, {"number": 7 + 2**32}])
def test_a_record_is_valid_in_its_own_place_only(elsewhere):
    assert failures(7, 100, entries(**elsewhere), DATA) == [0, 1, 2]


def test_another_kind_makes_another_record():
    forged = bytearray(entries())
    forged[8] = 4
    assert failures(7, 100, memoryview(forged), DATA) == [0]


def test_an_entry_that_points_outside_the_data_is_a_failure_and_not_an_error():
    wild = bytearray(entries())
    wild[0:8] = b"\xff" * 8
    assert failures(7, 100, memoryview(wild), DATA) == [0]
