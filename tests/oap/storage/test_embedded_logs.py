from __future__ import annotations

import pytest

from contracts.log_contract import LogContract, apply, log
from contracts.storage_contract import batch, segment
from skyfarer.oap.storage.embedded import EmbeddedStorage, tags


class TestEmbeddedLogs(LogContract):
    pass


def test_tags_of_logs_take_no_place_from_those_of_segments(
    storage: EmbeddedStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tags, "TAGS_A_DAY_MAX", 2)
    apply(storage, *(log(str(n), tags=[f"level={n}"]) for n in range(3)))
    storage.apply(batch(3, 4, [segment("a", tags=["http.method=GET", "http.method=PUT", "x=y"])]))
    noon = (20261115120000,) * 2
    assert len(storage.log_tag_values("level", noon, 9)) == 2
    proposed = [value for key in ("http.method", "x") for value in storage.tag_values(key, noon, 9)]
    assert len(proposed) == 2
