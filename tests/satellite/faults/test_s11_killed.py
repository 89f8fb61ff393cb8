"""S11, and the satellite's own end: killed between an answer and its commit, at random moments
under load, and told to stop while the upstream is away."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from random import Random

from satellite.faults.agents import Agent, acknowledged, reporting
from satellite.faults.proof import QUICK, prove, resent
from satellite.faults.recording import Call, RecordingUpstream, told_apart, welcome
from skyfarer.queue.inspection import inspect
from skyfarer.testing.programs import eventually
from skyfarer.testing.satellites import SatelliteProgram

WAIT_S = 120.0
SATELLITES = 2
KILLS = 50
STARTING_S, LIFE_S = 0.5, 0.35
JUDGING_S = 0.02
"""A batch is on its way for most of a life, so that many a kill hits one that is answered."""


def test_a_batch_acknowledged_upstream_and_not_yet_committed_comes_again_and_is_known(
    tmp_path: Path,
) -> None:
    with (
        RecordingUpstream() as upstream,
        SatelliteProgram(tmp_path, upstream.address, **QUICK) as satellite,
    ):
        answered: list[Call] = []

        def kill(call: Call) -> None:
            if not answered:
                answered.append(call)
                os.kill(satellite.pid, signal.SIGKILL)

        upstream.judge = kill
        agent = Agent(satellite.address, "agent", 500)
        with reporting(agent):
            eventually(satellite.has_ended, WAIT_S, "the kill")
            satellite.kill()
            satellite.start()
            eventually(lambda: len(upstream.calls) > 3, WAIT_S, "deliveries after the restart")
        prove(satellite, upstream, [agent])
        assert resent(upstream) == len(answered[0].payloads) > 0
        again = [call for call in upstream.calls if call.first == answered[0].first]
        assert len(again) == 2
        assert again[0].producer == again[1].producer


def die_again_and_again(satellite: SatelliteProgram, times: int, random: Random) -> None:
    """Every fourth time while it still starts, and so recovers from the time before."""
    for number in range(times):
        if number % 4 == 3:
            satellite.spawn()
            time.sleep(random.uniform(0.0, STARTING_S))
        else:
            satellite.start()
            time.sleep(random.uniform(0.0, LIFE_S))
        assert not satellite.has_ended(), "it ended by itself"
        satellite.kill()
    satellite.start()


def test_two_satellites_killed_50_times_under_load_lose_nothing_they_acknowledged(
    tmp_path: Path,
) -> None:
    with ExitStack() as stack:
        upstream = stack.enter_context(RecordingUpstream(lambda call: time.sleep(JUDGING_S)))
        satellites = [
            SatelliteProgram(tmp_path / str(one), upstream.address, **QUICK)
            for one in range(SATELLITES)
        ]
        for one in satellites:
            stack.callback(one.kill)
        agents = [Agent(one.address, f"{one.grpc_port}-{n}") for one in satellites for n in "ab"]
        deaths = [
            threading.Thread(
                target=die_again_and_again, args=(one, KILLS // SATELLITES, Random(number))
            )
            for number, one in enumerate(satellites)
        ]
        with reporting(*agents):
            for death in deaths:
                death.start()
            for death in deaths:
                death.join(10 * WAIT_S)
                assert not death.is_alive()
        assert all(not one.has_ended() for one in satellites)
        upstream.judge = welcome
        accepted = sum(one.await_empty().accepted for one in satellites)
        for number, one in enumerate(satellites):
            prove_apart(one, upstream, agents[2 * number : 2 * number + 2])
        assert accepted == len(upstream.records())
        assert all(sum(agent.failures.values()) > KILLS // 10 for agent in agents), "no load"
        assert resent(upstream) > 0, "no kill hit a batch between its answer and its commit"


def prove_apart(
    satellite: SatelliteProgram, upstream: RecordingUpstream, agents: Sequence[Agent]
) -> None:
    """`prove`, for what this satellite sent."""
    producer = inspect(satellite.data / "native" / "queue").queue_id
    own = RecordingUpstream()
    own.calls = [call for call in upstream.calls if call.producer.startswith(f"{producer}-")]
    assert own.calls, f"{producer} is not the producer of any call"
    prove(satellite, own, agents)


def test_a_stop_during_an_outage_under_load_leaves_everything_for_the_next_start(
    tmp_path: Path,
) -> None:
    upstream = RecordingUpstream()
    soon = {"SATELLITE_SHUTDOWN_HOOK_TIME": "500ms"}
    with SatelliteProgram(tmp_path, upstream.address, **QUICK, **soon) as satellite:
        agents = [Agent(satellite.address, f"agent-{one}", 500) for one in range(2)]
        with reporting(*agents):
            eventually(lambda: satellite.ledger().queued > 500, WAIT_S, "a backlog")
            assert satellite.stop() == 0
            kept = len(acknowledged(agents))
        left = inspect(satellite.data / "native" / "queue").consumers[0].ledger
        assert left is not None
        assert left.delivered == 0
        assert left.queued == left.accepted >= kept > 500
        assert f"{left.queued} records wait on disk for the next start" in satellite.log.read_text()
        with upstream:
            satellite.start()
            prove(satellite, upstream, agents)
            assert told_apart(upstream.calls)
            assert satellite.stop() == 0
