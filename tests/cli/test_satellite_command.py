"""`skyfarer satellite …` besides `start`: checking, printing, drawing, watching, replaying."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest
import yaml

from skyfarer.base.clock import SystemClock
from skyfarer.base.errors import PermanentError
from skyfarer.cli.main import main
from skyfarer.cli.samples import Samples
from skyfarer.cli.top import rows, table
from skyfarer.satellite import dead_letters
from skyfarer.satellite.app import Satellite
from skyfarer.satellite.config import DEFAULT_FILE, load
from skyfarer.satellite.dead_letters import DeadLetters
from skyfarer.testing.programs import free_port
from skyfarer.testing.upstream import Upstream
from skyfarer.wire.rpc import Kind

STOCK = Path(__file__).parents[1] / "satellite" / "stock" / "satellite_config.yaml"


@pytest.fixture(autouse=True)
def environ(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SATELLITE_CONFIG", raising=False)
    monkeypatch.setenv("SKYFARER_SATELLITE_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("SATELLITE_GRPC_CLIENT", "oap:11800")


def run(*arguments: str) -> int:
    return main(["satellite", *arguments])


def test_a_valid_configuration_is_said_to_be_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("validate") == 0

    assert capsys.readouterr().out.startswith("satellite.yaml is valid: ")


def test_validating_the_originals_file_says_what_is_read_differently(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run("validate", "--config", str(STOCK)) == 0

    said = capsys.readouterr()
    assert said.out == "satellite_config.yaml is valid: 18 pipes, 1 servers\n"
    assert "none-fallbacker would lose a batch that fails" in said.err
    assert all(line.startswith("warning: ") for line in said.err.splitlines())


@pytest.mark.parametrize("command", ["validate", "print-config", "graph", "replay"])
def test_a_wrong_configuration_is_one_sentence_and_code_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(DEFAULT_FILE.read_text().replace("server_addr:", "server_adr:"))

    assert run(command, "-c", str(file)) == 2

    said = capsys.readouterr()
    assert said.out == ""
    assert said.err == (
        "skyfarer: mine.yaml: sharing.clients[0] has no key 'server_adr';"
        " did you mean 'server_addr'?\n"
    )


def test_validating_warns_of_queues_that_the_disk_has_no_room_for(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SKYFARER_SATELLITE_QUEUE_CAPACITY_BYTES", str(1000 << 30))
    monkeypatch.setenv("SKYFARER_SATELLITE_QUEUE_SEGMENT_BYTES", str(64 << 20))

    assert run("validate") == 0

    assert "and the queues may take" in capsys.readouterr().err


def test_the_printed_configuration_is_whole_masked_and_can_be_read_back(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SATELLITE_GRPC_AUTHENTICATION", "a-secret")
    monkeypatch.setenv("SATELLITE_TRACINGPIPE_SENDER_FLUSH_TIME", "123")

    assert run("print-config") == 0

    text = capsys.readouterr().out
    printed = yaml.safe_load(text)
    assert "a-secret" not in text
    assert printed["sharing"]["clients"][0]["authentication"] == "***"
    assert printed["sharing"]["clients"][0]["finder_type"] == "static"
    assert printed["pipes"][0]["sender"]["flush_time"] == 123
    again = tmp_path / "again.yaml"
    again.write_text(text)
    config = load(again, {})
    Satellite(config, SystemClock(), Random(1))
    assert config.pipes == load(None, {**_environ(tmp_path), "X": ""}).pipes


def _environ(tmp_path: Path) -> dict[str, str]:
    return {
        "SKYFARER_SATELLITE_DATA_DIR": str(tmp_path / "data"),
        "SATELLITE_TRACINGPIPE_SENDER_FLUSH_TIME": "123",
    }


def test_the_printed_file_of_the_original_is_ours(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("print-config", "-c", str(STOCK)) == 0

    again = tmp_path / "again.yaml"
    again.write_text(capsys.readouterr().out)
    config = load(again, {})
    Satellite(config, SystemClock(), Random(1))
    assert len(config.pipes) == 18
    assert config.notes.lines() == []


def test_the_graph_names_every_part(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "mine.yaml"
    filters = "filters: [{plugin_name: sampler}, {plugin_name: sampler}]"
    file.write_text(DEFAULT_FILE.read_text().replace("filters: []", filters, 1))

    assert run("graph", "-c", str(file)) == 0

    drawn = capsys.readouterr().out
    assert drawn.startswith("flowchart LR\n")
    for part in (
        'server0["grpc-server<br/>127.0.0.1:11801"]',
        'subgraph pipe0["native"]',
        'pipe0queue[("queue<br/>512 MiB, drop_oldest")]',
        '--> pipe0filter0["sampler"] --> pipe0filter1["sampler"] --> pipe0sender',
        'server0 -->|"grpc-native-receiver"| pipe0queue',
        "pipe0sender --> client0",
        'client0["grpc-client<br/>oap:11800"]',
    ):
        assert part in drawn, part


METRICS = """\
# HELP sender_committed_offset Sequence.
# TYPE sender_committed_offset gauge
gatherer_receive_count{pipe="native",status="all"} %d
gatherer_receive_count{pipe="native",status="abandoned"} 5
gatherer_writing_offset{pipe="native"} %d
sender_committed_offset{pipe="native"} %d
sender_abandoned_count{pipe="native",reason="rejected"} 2
sender_retry_count{pipe="native"} 7
pipeline_queue_total_capacity{pipeline="native"} 1000
pipeline_queue_partition_size{pipeline="native",partition="0"} 250
gatherer_receive_count{pipe="asks",status="all"} 0
"""


def test_the_table_has_rates_between_two_looks_and_totals() -> None:
    before = rows(Samples(METRICS % (105, 100, 60)))
    now = rows(Samples(METRICS % (305, 300, 160)))

    lines = table(now, before, elapsed_s=2.0)

    assert [" ".join(line.split()) for line in lines] == [
        "pipe in/s out/s accepted queued dropped refused retries queue",
        "asks 0.0 0.0 0 0 0 0 0 -",
        "native 100.0 50.0 300 140 2 5 7 25 %",
    ]
    assert len({len(line) for line in lines}) == 1


def test_the_first_look_has_no_rates() -> None:
    line = table(rows(Samples(METRICS % (105, 100, 60))), [], elapsed_s=0.0)[2]

    assert line.split()[1:3] == ["-", "-"]


def test_top_says_when_there_is_no_satellite(capsys: pytest.CaptureFixture[str]) -> None:
    url = f"http://127.0.0.1:{free_port()}/metrics"

    assert run("top", "--once", "--url", url) == 1

    assert f"no satellite shows its metrics at {url}" in capsys.readouterr().err


class Letters:
    """Parked letters of the pipe `native`, and an upstream to send them to."""

    def __init__(self, directory: Path, payloads: Sequence[bytes]) -> None:
        self.path = directory / "data" / "native" / "dead-letters"
        self.upstream = Upstream(self._judge)
        self.refused: set[bytes] = set()
        parking = DeadLetters(self.path, SystemClock())
        for sequence, payload in enumerate(payloads):
            parking.park(sequence, Kind.SEGMENT, "was refused", payload)

    def _judge(self, kind: int, payloads: Sequence[bytes]) -> None:
        if self.refused.intersection(map(bytes, payloads)):
            raise PermanentError("still no good")

    def left(self) -> list[bytes]:
        return [letter.payload for letter in dead_letters.read(self.path)]

    def replay(self, *arguments: str, monkeypatch: pytest.MonkeyPatch, up: bool = True) -> int:
        async def scenario() -> int:
            await self.upstream.start()
            monkeypatch.setenv("SATELLITE_GRPC_CLIENT", self.upstream.address)
            if not up:
                await self.upstream.stop()
            try:
                return await asyncio.to_thread(run, "replay", *arguments)
            finally:
                await self.upstream.stop()

        return asyncio.run(scenario())


def test_letters_are_sent_again_and_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    letters = Letters(tmp_path, [b"one", b"two"])

    assert letters.replay("--pipe", "native", monkeypatch=monkeypatch) == 0

    assert letters.upstream.payloads(Kind.SEGMENT) == [b"one", b"two"]
    assert letters.left() == []
    assert "pipe native: 2 letters sent, 0 refused again and left" in capsys.readouterr().out


def test_a_letter_that_is_refused_again_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    letters = Letters(tmp_path, [b"one", b"bad", b"two"])
    letters.refused = {b"bad"}

    assert letters.replay(monkeypatch=monkeypatch) == 1

    assert letters.upstream.payloads(Kind.SEGMENT) == [b"one", b"two"]
    assert letters.left() == [b"bad"]


def test_an_upstream_that_is_down_costs_no_letter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    letters = Letters(tmp_path, [b"one"])

    assert letters.replay(monkeypatch=monkeypatch, up=False) == 1

    assert letters.left() == [b"one"]
    assert "0 letters were sent, the others are left" in capsys.readouterr().err


def test_a_dry_run_lists_the_letters_and_sends_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    letters = Letters(tmp_path, [b"one"])

    assert letters.replay("--dry-run", monkeypatch=monkeypatch) == 0

    assert letters.left() == [b"one"]
    assert letters.upstream.records == []
    assert "native 0 SEGMENT, 3 B: was refused" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["replay", "--pipe", "nativ"], "has no pipe 'nativ'; did you mean 'native'?"),
        (["tap", "--kind", "SEGMNT"], "there is no kind 'SEGMNT'; did you mean 'SEGMENT'?"),
    ],
)
def test_a_name_that_is_none_is_answered_with_the_nearest(
    capsys: pytest.CaptureFixture[str], arguments: list[str], says: str
) -> None:
    assert run(*arguments) == 2

    assert says in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["tap", "--rate", "0"], "'0' is no rate above 0 and at most 1000"),
        (["tap", "--count", "none"], "'none' is no number of records"),
        (["top", "--interval", "x"], "'x' is no number of seconds"),
        (["tap", "--point", "middle"], "'middle'"),
    ],
)
def test_a_wrong_argument_is_one_sentence_and_code_2(
    capsys: pytest.CaptureFixture[str], arguments: list[str], says: str
) -> None:
    with pytest.raises(SystemExit) as ended:
        run(*arguments)

    said: Any = capsys.readouterr().err
    assert ended.value.code == 2
    assert says in said
    assert len(said.splitlines()) == 1
