"""Hostile records of every kind through the queue and a worker's code, good ones between them."""

from __future__ import annotations

from random import Random

import pytest

from oap.pipeline.laced import Record, faults_of, outcome_of, parked, records, rows_of, specimens
from skyfarer.oap.pipeline.sources.decode import DECODERS
from skyfarer.wire.rpc import Kind

SEED = 20
BATCHES, BATCH = 5, 4_000
"""A batch fits one call of `rows`, so that each is bisected by thousands."""


@pytest.mark.parametrize("decoder", DECODERS)
def test_worker_gives_every_hostile_record_one_outcome_and_analyses_the_good_beside_them(
    decoder: str,
) -> None:
    random, bad = Random(SEED), 0
    for _ in range(BATCHES):
        sent = records(random, BATCH)
        found = outcome_of(rows_of(sent, decoder))
        assert faults_of(sent, found) == []
        bad += parked(found)
    assert BATCHES * BATCH // 5 < bad < BATCHES * BATCH, "the mutations are too mild, or too wild"


@pytest.mark.parametrize("decoder", DECODERS)
def test_every_specimen_is_analysed(decoder: str) -> None:
    sent = [Record(True, kind, payload) for kind, payload, _ in specimens(Random(SEED))]
    assert {record.kind for record in sent} == set(Kind) - {Kind.NONE}
    assert faults_of(sent, outcome_of(rows_of(sent, decoder))) == []


def test_eleven_bytes_that_make_native_code_panic_are_parked() -> None:
    (good, *_) = specimens(Random(SEED))
    poison = Record(False, Kind.SEGMENT, b"\x0a" + b"\xff" * 9 + b"\x01")
    sent = [Record(True, good.kind, good.payload), poison]
    found = outcome_of(rows_of(sent, "ptars"))
    assert faults_of(sent, found) == []
    assert parked(found) == 1
