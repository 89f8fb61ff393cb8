"""Hostile messages to every call and route of an OAP: it stays up, and loses no good one."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import grpc
import pytest

from e2e.browsing import browse
from e2e.strangers import EVERY_CALL, Caller, Poster, unclean
from e2e.test_postgresql_away import environ
from skyfarer.testing.programs import Oap
from skyfarer.testing.satellites import SatelliteProgram
from skyfarer.testing.traces import segment
from skyfarer.wire.http.endpoints import ENDPOINTS
from third_parties.postgresql import Server

pytestmark = pytest.mark.e2e

NOON = int(datetime(2026, 11, 15, 12, 0, tzinfo=UTC).timestamp() * 1000)
SEED = 20
ACCEPTED, CALL_MESSAGES, BODIES = 20_000, 400, 60
"""In all at least, to each call, and to each route. Some are refused, as are whole calls."""
BY_SATELLITE = 40
"""To each call of a satellite in front."""
GOOD = 50
"""Beside the hostile ones, in each of ROUNDS."""
ROUNDS = 4
UNPARKED = ("duplicate", "expired")
"""Reasons of records that were understood, and of which nothing is kept."""
CPM = """query ($duration: Duration!) {
  execExpression(expression: "service_cpm", entity: {serviceName: "shop", normal: true},
                 duration: $duration) { error results { values { value } } } }"""


@pytest.fixture(params=("ptars", "protobuf"))
def own_oap(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Oap]:
    oap = Oap(tmp_path, SKYFARER_DECODER=request.param, SKYFARER_REGISTRATION_HOLD_BACK_MS="0")
    oap.start()
    yield oap
    oap.kill()


class Honest:
    """An agent whose segments must all be counted."""

    def __init__(self, channel: grpc.Channel) -> None:
        self._collect = channel.stream_unary("/skywalking.v3.TraceSegmentReportService/collect")
        self._numbers = count()
        self.sent = 0

    def report(self) -> None:
        made = [
            segment("shop", "shop-1", "/pay", NOON, 10, segment_id=f"good-{next(self._numbers)}")
            for _ in range(GOOD)
        ]
        self._collect(iter([one.SerializeToString() for one in made]), timeout=120)
        self.sent += GOOD


def send_through_a_satellite(oap: Oap, random: Random, directory: Path) -> None:
    """Returns when the OAP has all that the satellite took."""
    upstream = f"127.0.0.1:{oap.grpc_port}"
    with SatelliteProgram(directory, upstream) as satellite:
        with grpc.insecure_channel(satellite.address) as channel:
            caller = Caller(channel, random, NOON)
            caller.call_each(BY_SATELLITE)
        assert unclean(caller) == []
        assert satellite.await_empty().dropped == {}
        assert satellite.stop() == 0


def withstood(oap: Oap, directory: Path) -> dict[str, Any]:
    """Sends everything, holds that every good segment is counted and every page can be read, and
    returns the ledger of the OAP, which has stopped."""
    random = Random(SEED)
    with grpc.insecure_channel(f"127.0.0.1:{oap.grpc_port}") as channel:
        honest, caller = Honest(channel), Caller(channel, random, NOON)
        poster = Poster(oap.rest_port, random, NOON)
        for _ in range(ROUNDS):
            honest.report()
            caller.call_each(CALL_MESSAGES // ROUNDS)
            honest.report()
            poster.post_each(BODIES // ROUNDS)
    assert [*unclean(caller), *poster.failures] == []
    assert {path for path, _ in caller.answers} == {rpc.path for rpc in EVERY_CALL}
    assert {path for path, _ in poster.answers} == ENDPOINTS.keys() - {"/logging"}
    send_through_a_satellite(oap, random, directory)
    ledger = oap.await_applied(honest.sent + ACCEPTED)
    assert ledger["balanced"]
    assert ledger["accepted"] == ledger["delivered"] + sum(ledger["dropped"].values())
    minute = {"start": "2026-11-15 1200", "end": "2026-11-15 1200", "step": "MINUTE"}
    (counted,) = oap.graphql(CPM, duration=minute)["execExpression"]["results"]
    assert counted == {"values": [{"value": str(honest.sent)}]}
    assert browse(oap, "2026-11-15") > 0
    assert oap.stop() == 0
    assert "ended with code" not in oap.log.read_text(), "the receiver was restarted"
    assert "analysis failed" not in oap.log.read_text(), "the query was restarted"
    return ledger


def parked_in(ledger: dict[str, Any]) -> int:
    return sum(n for why, n in ledger["dropped"].items() if why not in UNPARKED)


def test_hostile_messages_to_every_call_and_route_are_parked_and_every_good_segment_is_counted(
    own_oap: Oap, tmp_path: Path
) -> None:
    ledger = withstood(own_oap, tmp_path)
    file = own_oap.data / "storage" / "skyfarer.duckdb"
    with duckdb.connect(str(file), read_only=True) as stored:
        assert stored.execute("SELECT count(*) FROM parked_record").fetchall() == [
            (parked_in(ledger),)
        ]


def test_hostile_messages_are_parked_in_postgresql_as_well(tmp_path: Path) -> None:
    server = Server(durable=False)
    try:
        server.start()
        hold_back = {"SKYFARER_REGISTRATION_HOLD_BACK_MS": "0"}
        oap = Oap(tmp_path, **environ(server), **hold_back)
        try:
            oap.start()
            ledger = withstood(oap, tmp_path)
        finally:
            oap.kill()
        with server.connect("postgres") as stored:
            parked = stored.execute("SELECT count(*) FROM parked_record").fetchall()
        assert parked == [(parked_in(ledger),)]
    finally:
        server.close()
