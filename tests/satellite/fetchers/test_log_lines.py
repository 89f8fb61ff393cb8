"""Blocks of bytes cut into texts."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skyfarer.satellite.fetchers.log.charset import Charset, charset_of, check_encoding
from skyfarer.satellite.fetchers.log.config import LogFetcherConfig, MultilineConfig
from skyfarer.satellite.fetchers.log.lines import Bounds, Cut, Flush, Splitter
from skyfarer.satellite.fetchers.log.splitting import Splitting
from skyfarer.satellite.fetchers.log.transcode import TranscodingSplitter

LINES = Splitter(Bounds(1000))
STARTS = re.compile(rb"\n(?=E)", re.MULTILINE)
EVENTS = Splitter(Bounds(1000, 4), STARTS)


def texts(splitter, block: bytes, flush: Flush = Flush.NOTHING) -> list[bytes]:
    return splitter.split(block, flush).texts


def in_blocks(splitter, data: bytes, size: int) -> list[bytes]:
    """As a collector reads: again and again from where the last cut ended, then to the end."""
    found, at = [], 0
    for flush in (Flush.NOTHING, Flush.ALL):
        while (cut := splitter.split(data[at : at + size], flush)).used:
            found += cut.texts
            at += cut.used
    assert at == len(data)
    return found


def test_whole_lines_are_taken_and_the_rest_is_left() -> None:
    assert LINES.split(b"a\nbc\nrest", Flush.NOTHING) == Cut([b"a", b"bc"], [2, 5], 5)
    assert texts(LINES, b"rest") == []
    assert texts(LINES, b"") == []


def test_the_rest_is_taken_when_nothing_will_follow_it() -> None:
    assert LINES.split(b"a\nrest", Flush.ALL) == Cut([b"a", b"rest"], [2, 6], 6)
    assert LINES.split(b"a\nrest", Flush.LINES) == Cut([b"a"], [2], 2)


def test_blank_lines_are_passed_over_with_the_record_before_them() -> None:
    assert LINES.split(b"\na\n\n\r\nb\n\n", Flush.NOTHING) == Cut([b"a", b"b"], [3, 9], 9)
    assert LINES.split(b"\n\r\n", Flush.NOTHING) == Cut([], [], 3)


def test_carriage_returns_at_line_ends_are_no_part_of_the_line() -> None:
    assert texts(LINES, b"a\r\nb\rc\r\n") == [b"a", b"b\rc"]
    assert texts(EVENTS, b"E1\r\n at\r\nE2\r\n") == [b"E1\r\n at"]


def test_an_event_ends_where_the_next_begins() -> None:
    block = b"E1\n at x\n at y\nE2\nE3\n at"
    assert EVENTS.split(block, Flush.NOTHING) == Cut([b"E1\n at x\n at y", b"E2"], [15, 18], 18)


def test_an_event_that_may_go_on_is_taken_when_time_is_up() -> None:
    assert texts(EVENTS, b"E1\n at x\n a", Flush.LINES) == [b"E1\n at x"]
    assert texts(EVENTS, b"E1\n at x\n a", Flush.ALL) == [b"E1\n at x\n a"]
    assert texts(EVENTS, b"E1\n at x\nE2", Flush.ALL) == [b"E1\n at x", b"E2"]


def test_a_line_that_is_not_whole_is_not_held_against_the_pattern() -> None:
    continued = Splitter(Bounds(1000, 9), MultilineConfig(continuation="java|at ").boundary())

    assert texts(continued, b"A\nja") == []
    assert texts(continued, b"A\njava\nB\n") == [b"A\njava"]


def test_lines_that_continue_an_event_may_be_named_instead_of_those_that_begin_one() -> None:
    continued = Splitter(Bounds(1000, 9), MultilineConfig(continuation=r"\s|Caused by").boundary())

    block = b"A\n at x\n\nCaused by: y\nB\n\n"
    assert texts(continued, block) == [b"A\n at x\n\nCaused by: y"]
    assert texts(continued, block, Flush.LINES) == [b"A\n at x\n\nCaused by: y", b"B"]


def test_a_pattern_may_have_groups() -> None:
    grouped = Splitter(Bounds(1000, 9), MultilineConfig(first_line=r"(E)(\d)").boundary())

    assert texts(grouped, b"E1\n at\nE2\nE3\n") == [b"E1\n at", b"E2"]


def test_a_line_above_the_bound_is_cut_into_parts_and_the_cuts_are_counted() -> None:
    cut = LINES.split(b"s\n" + b"x" * 2500 + b"\nt\n", Flush.NOTHING)

    assert cut.texts == [b"s", b"x" * 1000, b"x" * 1000, b"x" * 500, b"t"]
    assert (cut.cuts, cut.used) == (2, 2505)
    assert texts(LINES, b"x" * 1000) == []
    assert texts(LINES, b"x" * 1001) == [b"x" * 1000]


def test_an_event_above_the_bound_is_cut_between_lines() -> None:
    cut = EVENTS.split(b"E1\n" + b" at\n" * 6 + b"E2\n", Flush.NOTHING)

    assert cut.texts == [b"E1\n at\n at\n at", b" at\n at\n at"]
    assert cut.cuts == 1
    wide = EVENTS.split(b"E1\n" + b" " * 900 + b"\n" + b"-" * 900 + b"\nE", Flush.NOTHING)
    assert wide.texts == [b"E1\n" + b" " * 900]


def test_a_cut_does_not_go_through_a_character() -> None:
    cut = Splitter(Bounds(1024)).split("日".encode() * 1000, Flush.ALL)

    assert [text.decode() for text in cut.texts] == ["日" * 341, "日" * 341, "日" * 318]
    assert cut.undecodable == 0


def test_bytes_that_are_no_utf_8_are_replaced_and_their_records_counted() -> None:
    cut = LINES.split(b"fine\n\xffbad\nf\xc3\xbcr\n\xe6\x97\n", Flush.NOTHING)

    assert [text.decode() for text in cut.texts] == ["fine", "�bad", "für", "�"]
    assert cut.undecodable == 2


@given(
    st.lists(st.sampled_from([b"E", b" at", b"\n", b"\n", b"\r\n", b"xyz" * 99, "日本".encode()])),
    st.integers(1001, 3000),
)
def test_the_size_of_blocks_changes_nothing(parts: list[bytes], size: int) -> None:
    data = b"".join(parts)

    for splitter in (LINES, EVENTS):
        found = in_blocks(splitter, data, 1001)
        assert all(found) and max(map(len, found), default=0) <= 1000
    whole = [line.rstrip(b"\r") for line in data.split(b"\n")]
    if max(map(len, whole)) < 1000:
        assert in_blocks(LINES, data, size) == [line for line in whole if line]


@given(st.binary(max_size=4000), st.sampled_from(list(Flush)))
def test_every_byte_belongs_to_one_text_at_most(data: bytes, flush: Flush) -> None:
    for splitter in (LINES, EVENTS, TranscodingSplitter(Charset("utf-16-le"), EVENTS, 1000)):
        cut = splitter.split(data, flush)

        assert len(cut.ends) == len(cut.texts)
        assert all(start < end for start, end in pairwise((0, *cut.ends)))
        assert cut.used <= len(data) and (not cut.ends or cut.ends[-1] == cut.used)
        for text in cut.texts:
            text.decode()


def splitting(encoding: str, **keys) -> Splitting:
    return Splitting(LogFetcherConfig(("*",), "orders", encoding=encoding, max_bytes=2048, **keys))


@pytest.mark.parametrize(
    "encoding", ["latin-1", "gbk", "gb18030", "big5", "shift_jis", "utf-16", "utf-16-be", "utf-32"]
)
def test_other_encodings_become_utf_8(encoding: str) -> None:
    lines = ["plain", "grüße" if encoding == "latin-1" else "日本", "third"]
    data = "".join(f"{line}\n" for line in lines).encode(encoding)
    splitter, _ = splitting(encoding).of(data[:4])

    cut = splitter.split(data, Flush.NOTHING)

    found = [text.decode().removeprefix("\ufeff") for text in cut.texts]
    assert (found, cut.used, cut.undecodable) == (lines, len(data), 0)


@pytest.mark.parametrize("encoding", ["gbk", "utf-16-le"])
def test_events_and_bounds_hold_in_other_encodings_too(encoding: str) -> None:
    multiline = MultilineConfig(first_line="事", max_lines=3)
    splitter, _ = splitting(encoding, multiline=multiline).of(b"")
    events = ["事1\n 在 x\n 在 y", "事2", "事3\n" + "长" * 700]
    data = "".join(f"{event}\n" for event in [*events, "事4"]).encode(encoding)

    cut = splitter.split(data, Flush.NOTHING)

    found = [text.decode() for text in cut.texts]
    assert found[:2] == events[:2]
    assert "".join(found[2:]).replace("\n", "") == events[2].replace("\n", "")
    assert max(map(len, cut.texts)) <= 2048
    assert data[cut.used :] == "事4\n".encode(encoding)


def test_a_newline_of_utf_16_is_found_only_where_a_character_begins() -> None:
    # U+0A00 is the bytes 00 0A, and a character such as U+0041 after it 41 00.
    data = "ab\u000ac\u0a00\u0100d\n".encode("utf-16-le")
    splitter = TranscodingSplitter(Charset("utf-16-le"), LINES, 1000)

    assert [text.decode() for text in texts(splitter, data)] == ["ab", "c\u0a00\u0100d"]


def test_bad_bytes_of_another_encoding_are_replaced_and_counted() -> None:
    splitter = TranscodingSplitter(Charset("gbk"), LINES, 1000)

    cut = splitter.split(b"fine\n\xff\xff bad\nfine\n", Flush.NOTHING)

    assert cut.texts[0] == cut.texts[2] == b"fine"
    assert (len(cut.texts), cut.undecodable) == (3, 1)


def test_the_files_own_mark_tells_its_byte_order() -> None:
    assert charset_of("utf-16", b"\xfe\xff\0a").codec == "utf-16-be"
    assert charset_of("utf-16", b"a\0b\0").codec == "utf-16-le"
    assert charset_of("utf-32", b"\xff\xfe\0\0").codec == "utf-32-le"


@pytest.mark.parametrize("encoding", ["no-such", "utf-7", "base64", "cp037", "hz"])
def test_an_encoding_that_has_no_lines_is_refused(encoding: str) -> None:
    with pytest.raises(ValueError, match=encoding):
        check_encoding(encoding)
