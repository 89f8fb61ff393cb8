"""Records written by hand, held against the generated code."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from skyfarer.satellite.fetchers.log.records import LogRecords
from skyfarer.wire.generated.log_pb2 import LogData

names = st.text(max_size=300)


def stub(text: str, timestamp_ms: int, who: tuple[str, str, str], tags: dict[str, str]) -> bytes:
    log = LogData(timestamp=timestamp_ms, service=who[0], serviceInstance=who[1], layer=who[2])
    log.body.text.text = text
    for key, value in tags.items():
        log.tags.data.add(key=key, value=value)
    return log.SerializeToString()


@given(
    st.lists(st.text(min_size=1), min_size=1, max_size=5),
    st.integers(0, 2**62),
    st.tuples(names, names, names),
    st.dictionaries(names, names, max_size=3),
)
def test_a_record_is_what_the_generated_code_would_write(texts, timestamp_ms, who, tags) -> None:
    records = LogRecords(*who, tags)

    made = records.encode(
        [text.encode() for text in texts], timestamp_ms, records.ending("/var/log/a.log")
    )

    every_tag = {"log.file.path": "/var/log/a.log", **tags}
    assert made == [stub(text, timestamp_ms, who, every_tag) for text in texts]


def test_texts_of_any_length_up_to_a_megabyte_have_the_right_lengths() -> None:
    records = LogRecords("orders", "", "", {})
    for length in (1, 100, 127, 128, 16_383, 16_384, 2**20):
        (record,) = records.encode([b"x" * length], 1, records.ending("a"))
        assert len(LogData.FromString(record).body.text.text) == length


def test_a_path_that_is_no_utf_8_is_still_a_tag() -> None:
    records = LogRecords("orders", "", "", {})

    (record,) = records.encode([b"x"], 1, records.ending("/var/\udcff.log"))

    assert LogData.FromString(record).tags.data[0].value == "/var/?.log"
