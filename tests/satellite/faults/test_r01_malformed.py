"""R1: bytes that are no message of their kind.

A satellite does not decode what it keeps, so it takes them; it is the upstream that refuses them,
and then they are parked one by one. Told so, it refuses them itself.
"""

from __future__ import annotations

from pathlib import Path
from random import Random

import grpc
from google.protobuf.message import DecodeError

from satellite.faults.agents import COLLECT, Agent, reporting
from satellite.faults.proof import QUICK, prove
from satellite.faults.recording import Call, RecordingUpstream, Refusal
from satellite.faults.siege import WAIT_S, await_served, post, status_of
from skyfarer.satellite.dead_letters import read
from skyfarer.testing.satellites import SatelliteProgram
from skyfarer.testing.traces import segment
from skyfarer.wire.messages import SegmentObject
from skyfarer.wire.rpc import RPCS, Handling, Rpc, Streaming
from skyfarer.wire.split import framed

OTLP = "/opentelemetry."
KEPT = [rpc for rpc in RPCS if rpc.handling is Handling.KEEP and not rpc.path.startswith(OTLP)]
NOISE = Random(1)
TAKEN_OR_REFUSED = {grpc.StatusCode.OK, grpc.StatusCode.INVALID_ARGUMENT}


def noise() -> list[bytes]:
    return [
        b"\xff" * 40,
        b"\x0a\xff\xff\xff\xff\x0f",
        b"\x0b" * 200,
        *(b"\xff" + NOISE.randbytes(NOISE.randrange(1, 300)) for _ in range(7)),
    ]


def one_call(channel: grpc.Channel, rpc: Rpc, message: bytes) -> object:
    if rpc.streaming is Streaming.UNARY:
        return channel.unary_unary(rpc.path)(message, timeout=WAIT_S)
    if rpc.streaming is Streaming.BIDI:
        return list(channel.stream_stream(rpc.path)(iter([message]), timeout=WAIT_S))
    return channel.stream_unary(rpc.path)(iter([message]), timeout=WAIT_S)


def test_noise_on_every_path_ends_in_a_proper_answer_and_in_exact_books(tmp_path: Path) -> None:
    """A noise is one record wherever it comes, so that all can be counted."""
    with (
        RecordingUpstream() as upstream,
        SatelliteProgram(tmp_path, upstream.address, **QUICK) as satellite,
    ):
        honest = Agent(satellite.address, "honest", 200)
        kept = 0
        with reporting(honest), grpc.insecure_channel(satellite.address) as channel:
            for rpc in KEPT:
                for message in noise():
                    status = status_of(lambda: one_call(channel, rpc, message))  # noqa: B023
                    assert status in TAKEN_OR_REFUSED, (rpc.path, message, status)
                    kept += status is grpc.StatusCode.OK
            answers = [post(f"{satellite.http_url}/v3/segments", one) for one in noise()]
            assert answers == [400] * len(answers)
            await_served(honest)
        ledger = satellite.await_empty()
        assert kept > len(KEPT)
        assert ledger.accepted == kept + len(honest.acknowledged)
        assert satellite.metric("receiver_connections_refused_total") == 0
        assert not honest.failures
        assert honest.acknowledged <= set(upstream.payloads())
        letters = list(read(satellite.data / "native" / "dead-letters"))
        assert sum(ledger.dropped.values()) == len(letters)


class Honest(Agent):
    """Its records are messages, of one field."""

    def make(self, number: int) -> bytes:
        return framed(1, super().make(number))


def test_a_strict_satellite_refuses_all_noise_and_keeps_none_of_it(tmp_path: Path) -> None:
    strictly = {**QUICK, "SKYFARER_SATELLITE_REFUSE_MALFORMED": "true"}
    with (
        RecordingUpstream() as upstream,
        SatelliteProgram(tmp_path, upstream.address, **strictly) as satellite,
    ):
        honest = Honest(satellite.address, "honest", 200)
        sent = 0
        with reporting(honest), grpc.insecure_channel(satellite.address) as channel:
            for rpc in KEPT:
                for message in noise():
                    status = status_of(lambda: one_call(channel, rpc, message))  # noqa: B023
                    assert status is grpc.StatusCode.INVALID_ARGUMENT, (rpc.path, message)
                    sent += 1
            answers = [post(f"{satellite.http_url}/logging", one) for one in noise()]
            assert answers == [400] * len(answers)
            await_served(honest)
        prove(satellite, upstream, [honest])
        assert not honest.failures
        refused = satellite.metric("receiver_messages_refused_total")
        assert refused == sent + len(answers)
        assert satellite.metric("receiver_connections_refused_total") == 0


def strict(call: Call) -> None:
    for payload in call.payloads:
        try:
            SegmentObject.FromString(payload)
        except DecodeError as error:
            raise Refusal(grpc.StatusCode.INVALID_ARGUMENT, "no segment") from error


def test_what_the_upstream_cannot_read_is_parked_alone_among_good_records(tmp_path: Path) -> None:
    good = [
        segment("order", "order-1", "GET:/", 1_700_000_000_000, 5).SerializeToString()
        for _ in range(50)
    ]
    bad = noise()
    with (
        RecordingUpstream(strict) as upstream,
        SatelliteProgram(tmp_path, upstream.address, **QUICK) as satellite,
        grpc.insecure_channel(satellite.address) as channel,
    ):
        mixed = [*good, *bad]
        NOISE.shuffle(mixed)
        channel.stream_unary(COLLECT)(iter(mixed), timeout=WAIT_S)
        ledger = satellite.await_empty()
        (reason,) = ledger.dropped
        assert ledger.dropped == {reason: len(bad)}
        assert ledger.delivered == len(good)
        assert sorted(upstream.payloads()) == sorted(good), "a good one came twice, or not at all"
        parked = [letter.payload for letter in read(satellite.data / "native" / "dead-letters")]
        assert sorted(parked) == sorted(bad)
