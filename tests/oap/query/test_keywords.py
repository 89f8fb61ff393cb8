"""Pages of logs by their words, against a list that is filtered as a whole."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skyfarer.oap.core.logs import StoredLog
from skyfarer.oap.query import keywords, limits
from skyfarer.oap.query.keywords import Keywords

contents = st.text("abAB é", max_size=4)
words = st.lists(st.text("aBé", min_size=1, max_size=2), max_size=2).map(tuple)


def stored(content: str) -> StoredLog:
    return StoredLog("s", "", "", "", 0, 5, content.encode())


def told(one: StoredLog) -> str:
    assert one.data is not None
    return one.data.decode()


class Shelf:
    """Gives a few bytes at a time, as a storage does: beyond them logs come without theirs."""

    def __init__(self, contents: Sequence[str], bytes_max: int) -> None:
        self._logs = [stored(content) for content in contents]
        self._bytes_max = bytes_max

    def read(self, offset: int, limit: int) -> list[StoredLog]:
        left, page = self._bytes_max, list[StoredLog]()
        for one in self._logs[offset : offset + limit]:
            left -= len(one.data or b"")
            page.append(one if left >= 0 else StoredLog("s", "", "", "", 0, 5, None))
        return page


@settings(max_examples=150, deadline=None)
@given(
    st.lists(contents, max_size=30),
    words,
    words,
    st.integers(0, 8),
    st.integers(1, 8),
    st.integers(1, 5),
    st.integers(8, 60),
)
def test_a_page_is_what_a_filtered_list_has_there(
    all_contents, wanted, unwanted, offset, limit, first, bytes_max
):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(limits, "LOGS_LOOKED_AT_FIRST", first)
        patch.setattr(limits, "LOG_SEARCHES_MAX", 40)
        asked = Keywords(wanted, unwanted)
        shelf = Shelf(all_contents, bytes_max)
        page = keywords.page(shelf.read, lambda one: asked.fit(told(one)), offset, limit)
    fitting = [content for content in all_contents if asked.fit(content)]
    assert [told(one) for one in page.logs] == fitting[offset : offset + limit]
    assert page.stopped_at is None


@pytest.mark.parametrize(
    ("wanted", "unwanted", "content", "fits"),
    [
        (("disk",), (), "DISK full", True),
        (("disk", "full"), (), "disk", False),
        (("é",), (), "É", False),
        ((), ("Full",), "disk full", False),
        (("disk",), ("disk",), "disk", False),
        ((), (), "", True),
    ],
)
def test_a_content_has_all_that_is_wanted_and_nothing_that_is_not(wanted, unwanted, content, fits):
    assert Keywords(wanted, unwanted).fit(content) is fits
