from __future__ import annotations

import pytest

from skyfarer.queue.checksum import crc32c
from skyfarer.queue.layout import SLOT_BYTES
from skyfarer.queue.records import crcs_of, failures, payload_views, salt_of, seal, seal_few

PAYLOADS = [b"first", b"", b"third record"]
DATA = memoryview(b"".join(PAYLOADS) + b".....")
SALT = salt_of(7, 100)


def entries(number: int = 7, first: int = 100, slot: int = 0) -> bytearray:
    salt = salt_of(number, first)
    sealed = seal(salt + slot, 0, 3, list(map(len, PAYLOADS)), crcs_of(PAYLOADS, salt))
    return bytearray(sealed.tobytes())


def failed(index: bytearray, data: memoryview = DATA) -> list[int]:
    return list(failures(SALT, 0, len(PAYLOADS), memoryview(index), data))


def test_the_checksum_is_crc32c():
    assert crc32c(b"123456789") == 0xE3069283
    assert crc32c(memoryview(b"6789"), crc32c(b"12345")) == 0xE3069283


def test_a_batch_is_sealed_as_its_records_are_one_by_one():
    start, crc, singles = 0, SALT, b""
    for slot, payload in enumerate(PAYLOADS):
        [crc] = crcs_of([payload], crc)
        singles += seal(SALT + slot, start, 3, [len(payload)], [crc]).tobytes()
        start += len(payload)
    assert entries() == singles
    assert seal_few(SALT, 0, 3, PAYLOADS, SALT) == (
        singles,
        crc,
        int.from_bytes(singles[-4:], "little"),
    )
    assert failed(entries()) == []
    assert list(map(bytes, payload_views(memoryview(entries()), DATA))) == PAYLOADS


@pytest.mark.parametrize(
    "elsewhere", [{"number": 8}, {"first": 101}, {"slot": 1}, {"number": 7 + 2**32}]
)
def test_a_record_is_valid_in_its_own_place_only(elsewhere):
    assert failed(entries(**elsewhere)) == [0, 1, 2]


def test_another_kind_makes_another_record():
    forged = entries()
    forged[8] = 4
    assert failed(forged) == [0]


@pytest.mark.parametrize("bit", range(8 * SLOT_BYTES * len(PAYLOADS)))
def test_any_bit_of_an_index_that_is_flipped_costs_its_own_record(bit):
    """The entries of a run are checked by one sum over all of them: none may go unseen in it."""
    index = entries()
    index[bit // 8] ^= 1 << bit % 8
    assert failed(index) == [bit // 8 // SLOT_BYTES]


def test_entries_that_changed_places_are_failures():
    index = entries()
    first, second = index[:SLOT_BYTES], index[SLOT_BYTES : 2 * SLOT_BYTES]
    index[: 2 * SLOT_BYTES] = second + first
    assert failed(index) == [0, 1]


def test_an_entry_that_points_outside_the_data_is_a_failure_and_not_an_error():
    wild = entries()
    wild[0:8] = b"\xff" * 8
    assert failed(wild) == [0]


def test_a_damaged_payload_costs_itself_and_the_chain_goes_on_behind_it():
    data = bytearray(DATA)
    data[2] ^= 1
    assert failed(entries(), memoryview(data)) == [0]


def test_a_damaged_entry_costs_itself_also_when_the_run_begins_behind_it():
    index = entries()
    index[SLOT_BYTES : 2 * SLOT_BYTES] = bytes(SLOT_BYTES)
    assert failed(index) == [1]
    assert list(failures(SALT, 2, 3, memoryview(index), DATA)) == []
