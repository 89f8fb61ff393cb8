from __future__ import annotations

from contracts.event_contract import EventContract, apply, event, read
from skyfarer.oap.storage.embedded import EmbeddedStorage
from skyfarer.oap.storage.parameters import PARAMETERS_CHARS_MAX


class TestEmbeddedEvents(EventContract):
    pass


def test_parameters_are_kept_as_far_as_they_go(storage: EmbeddedStorage) -> None:
    parameters = {"b": "x" * (PARAMETERS_CHARS_MAX - 2), "a": "", "c": ""}
    apply(storage, event("e", parameters=parameters))
    assert [key for key, _ in read(storage)[0].parameters] == ["a", "b"]
