from __future__ import annotations

from contracts.event_contract import EventContract, apply, event, read
from skyfarer.oap.storage.parameters import PARAMETERS_CHARS_MAX
from skyfarer.oap.storage.postgresql import PostgresStorage


class TestPostgresEvents(EventContract):
    pass


def test_parameters_are_kept_as_far_as_they_go(storage: PostgresStorage) -> None:
    parameters = {"b": "x" * (PARAMETERS_CHARS_MAX - 2), "a": "", "c": ""}
    apply(storage, event("e", parameters=parameters))
    assert [key for key, _ in read(storage)[0].parameters] == ["a", "b"]


def test_a_parameter_is_kept_to_the_last_character(storage: PostgresStorage) -> None:
    apply(storage, event("e\x00", message="m\x00", parameters={"k": "\x00"}))
    (one,) = read(storage, uuid="e\x00")
    assert (one.uuid, one.message, one.parameters) == ("e\ufffd", "m\ufffd", (("k", "\x00"),))
