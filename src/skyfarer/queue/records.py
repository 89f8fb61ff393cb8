"""The index entry of a record, and the two checksums that bind it to its place and its bytes.

    entry, 20 bytes     | start u32 | length u32 | kind u32 | crc u32 | check u32 |

    salt  = CRC32C( segment number u64, first sequence u64 ) / 2
    crc   = CRC32C( payload ), begun with the crc of the record before, or with the salt
    check = CRC32C( the 16 bytes before it ), begun with salt + slot

`check` makes an entry good for one slot of one lap of the ring: a segment number is used twice only
in different files, so neither stale bytes nor an entry that a fault moved elsewhere can pass.

`crc` is a chain, so a whole run costs one checksum over bytes that lie back to back, at the speed
of memory, from the entry before the run to its last. Only when that fails is every record looked
at. A payload that is damaged costs itself: the next goes on from the crc its entry states. An entry
that is damaged costs its record: what it stated for the next is computed from the bytes instead.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, chain, compress, count
from operator import add, ne
from typing import Final, Protocol

from skyfarer.queue.checksum import crc32c
from skyfarer.queue.layout import SLOT_BYTES

KIND_MAX: Final = 0xFFFF_FFFF
ENTRY_WORDS: Final = SLOT_BYTES // 4

_START, _LENGTH, _KIND, _CRC, _CHECK = range(ENTRY_WORDS)
_CHECKED_BYTES: Final = 4 * _CHECK
_unpack: Final = struct.Struct("16s4x")
_FEW: Final = 16
_unpack_few: Final = struct.Struct("16s4x" * _FEW)
_unpack_many: Final = struct.Struct("16s4x" * 64)
pack_checked: Final = struct.Struct("<IIII").pack  # an entry but for its check
_pack_entry: Final = struct.Struct("<16sI").pack
pack_entry_into: Final = struct.Struct("<16sI").pack_into
_pack_place = struct.Struct("<QQ").pack


_RESIDUE: Final = crc32c(bytes(4))
_RESIDUE_BYTES: Final = _RESIDUE.to_bytes(4, "little")
_NOTHING: Final = 0xFFFF_FFFF  # begun with this, the checksum of zeros is this again


class Payloads(Protocol):
    """Those of a segment: a view of its map, or what reads them from its file."""

    def __getitem__(self, part: slice, /) -> bytes | memoryview: ...


def salt_of(number: int, first: int) -> int:
    """Of 31 bits, so that it may grow by any slot and still be a checksum's beginning."""
    return crc32c(_pack_place(number, first)) >> 1


def crcs_of(payloads: Iterable[bytes | memoryview], crc: int) -> list[int]:
    """Of payloads behind a record whose crc is `crc`."""
    return [crc := crc32c(payload, crc) for payload in payloads]


def seal(
    beginning: int, start: int, kind: int, lengths: Sequence[int], crcs: Sequence[int]
) -> array[int]:
    """Entries of payloads that lie back to back from `start`.

    `beginning` is the salt plus the slot of the first.
    """
    slots = len(lengths)
    if slots == 1:  # columns cost 7 µs however few they hold, this half a one
        entry = pack_checked(start, lengths[0], kind, crcs[0])
        return array("I", entry + crc32c(entry, beginning).to_bytes(4, "little"))
    end = slots * ENTRY_WORDS
    words = array("I", bytes(SLOT_BYTES * (slots + -slots % _FEW)))
    words[_START:end:ENTRY_WORDS] = array("I", list(accumulate(lengths[:-1], initial=start)))
    words[_LENGTH:end:ENTRY_WORDS] = array("I", lengths)
    words[_KIND:end:ENTRY_WORDS] = array("I", (kind,)) * slots
    words[_CRC:end:ENTRY_WORDS] = array("I", crcs)
    checked = chain.from_iterable(_unpack_few.iter_unpack(words))
    checks = map(crc32c, checked, range(beginning, beginning + slots))
    words[_CHECK:end:ENTRY_WORDS] = array("I", list(checks))
    return words[:end]


def seal_few(
    place: int, start: int, kind: int, payloads: Iterable[bytes | memoryview], crc: int
) -> tuple[bytes, int, int]:
    """`crcs_of` and `seal` one record after the other: the entries, the last crc and check.

    `place` is the salt plus the slot of the first.
    """
    entries, check = [], 0
    for payload in payloads:
        crc, length = crc32c(payload, crc), len(payload)
        checked = pack_checked(start, length, kind, crc)
        check = crc32c(checked, place)
        entries.append(_pack_entry(checked, check))
        place, start = place + 1, start + length
    return b"".join(entries), crc, check


def failures(salt: int, begin: int, stop: int, index: memoryview, data: Payloads) -> Sequence[int]:
    """Slots from `begin` up to `stop` whose record is not exactly what was appended there.

    `index` and `data` are those of the whole segment.
    """
    if begin == stop:
        return ()
    entries = index[begin * SLOT_BYTES : stop * SLOT_BYTES]
    words = entries.cast("I")
    if _all_good(entries, salt + begin):
        behind, crc, _ = chain_before(begin, salt, index)
        end = words[_START - ENTRY_WORDS] + words[_LENGTH - ENTRY_WORDS]
        if behind == begin and crc32c(data[words[_START] : end], crc) == words[_CRC - ENTRY_WORDS]:
            return ()
    stated = words[_CHECK::ENTRY_WORDS].tolist()
    wrong = set(compress(count(begin), map(ne, stated, _checks(entries, salt + begin))))
    return _walk(salt, begin, stop, index, data, wrong)


def payload_views(index: memoryview, data: memoryview) -> list[memoryview]:
    words = index.cast("I")
    starts = words[_START::ENTRY_WORDS].tolist()
    ends = map(add, starts, words[_LENGTH::ENTRY_WORDS].tolist())
    return list(map(data.__getitem__, map(slice, starts, ends)))


def kinds_of(index: memoryview) -> list[int]:
    return index.cast("I")[_KIND::ENTRY_WORDS].tolist()


def chain_before(slot: int, salt: int, index: memoryview) -> tuple[int, int, int]:
    """The nearest good entry before `slot`: the slot behind it, its crc and its payload's end."""
    words = index.cast("I")
    while slot:
        at = (slot - 1) * SLOT_BYTES
        start, length, _, crc, check = words[at // 4 : at // 4 + ENTRY_WORDS].tolist()
        if crc32c(index[at : at + _CHECKED_BYTES], salt + slot - 1) == check:
            return slot, crc, start + length
        slot -= 1
    return 0, salt, 0


def _all_good(entries: memoryview, beginning: int) -> bool:
    """Whether every entry has its check, without a call for each.

    A checksum over bytes and then over itself is `_RESIDUE`, whatever the bytes and however it was
    begun. So the checksum of all entries in a row would be that as well, if each began where the
    one before it ends, with `_RESIDUE`, and not with its own place. What it begins with counts as
    if it were added to its first word, and checksums of equal lengths add up bit by bit; hence the
    difference that the places make is the checksum of the places alone. An entry that is wrong
    changes the sum, and only another wrong one could change it back, one time in 2**32.
    """
    slots = len(entries) // SLOT_BYTES
    places = array("I", bytes(len(entries)))
    places[::ENTRY_WORDS] = array("I", range(beginning, beginning + slots))
    ends = (_RESIDUE_BYTES + bytes(_CHECKED_BYTES)) * slots
    difference = crc32c(places, _NOTHING) ^ crc32c(ends, _NOTHING)
    return crc32c(entries, _RESIDUE) ^ difference == _RESIDUE


def _checks(entries: memoryview, beginning: int) -> Iterator[int]:
    """What the `check` of each entry should be."""
    many = len(entries) - len(entries) % _unpack_many.size
    checked = chain(_unpack_many.iter_unpack(entries[:many]), _unpack.iter_unpack(entries[many:]))
    return map(crc32c, chain.from_iterable(checked), count(beginning))


def _walk(
    salt: int, begin: int, stop: int, index: memoryview, data: Payloads, wrong: set[int]
) -> list[int]:
    words = index.cast("I")
    _, crc, end = chain_before(begin, salt, index)
    failed = []
    for slot in range(begin, stop):
        if slot in wrong:
            failed.append(slot)
            continue
        at = slot * ENTRY_WORDS
        start, length, _, stated = words[at : at + _CHECK].tolist()
        crc = crc32c(data[end:start], crc)  # payloads whose entries are damaged
        end = start + length
        if crc32c(data[start:end], crc) != stated:
            failed.append(slot)
        crc = stated
    return failed
