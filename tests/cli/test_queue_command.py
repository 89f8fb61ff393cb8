"""`skyfarer queue`: what it prints, where it sends, how it ends, and that it only reads."""

from __future__ import annotations

import asyncio
import io
import json
import os
import re
import shutil
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import pytest

from skyfarer.base.backoff import BackoffSettings
from skyfarer.base.errors import PermanentError, RetryableError
from skyfarer.base.units import KIB
from skyfarer.cli.main import main
from skyfarer.cli.progress import Progress
from skyfarer.cli.replay import ATTEMPTS_MAX, replay
from skyfarer.queue.consumer import Consumer
from skyfarer.queue.layout import PAGE_BYTES, SLOT_BYTES, seal_page
from skyfarer.queue.onlooker import Record
from skyfarer.queue.settings import QueueSettings
from skyfarer.queue.writer import Writer
from skyfarer.testing.clock import HandClock
from skyfarer.testing.programs import eventually
from skyfarer.testing.upstream import Upstream
from skyfarer.wire.rpc import Kind

GOLDEN = Path(__file__).parents[1] / "queue" / "golden" / "format-2"
SEGMENTS = [b"segment %d" % n for n in range(600)]
PINGS = [b"ping %d" % n for n in range(3)]
TOTAL = len(SEGMENTS) + len(PINGS)
FAST = BackoffSettings(initial_s=0.001, maximum_s=0.002)


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[Path]:
    """A queue whose owner runs and whose consumer has had two records."""
    where = tmp_path / "pipe" / "queue"
    writer = Writer(QueueSettings(where, 16 * KIB, 64 * KIB, 4 * KIB))
    writer.start()
    consumer = Consumer(where, "main")
    consumer.start()
    writer.append(Kind.SEGMENT, SEGMENTS)
    writer.append(Kind.INSTANCE_PING, PINGS)
    consumer.commit(2, {"rejected": 1})
    yield where
    consumer.stop()
    writer.stop(1.0)


@pytest.fixture(autouse=True)
def _short_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the two looks that give a rate."""
    monkeypatch.setattr("skyfarer.cli.queue.PACE_S", 0.05)


@pytest.fixture
def upstream(request: pytest.FixtureRequest) -> Iterator[Upstream]:
    """On a loop of its own, as another program would be; it may know only some kinds."""
    loop = asyncio.new_event_loop()
    thread = Thread(target=loop.run_forever)
    thread.start()
    upstream = Upstream(kinds=getattr(request, "param", tuple(Kind)))
    asyncio.run_coroutine_threadsafe(upstream.start(), loop).result(10)
    yield upstream
    asyncio.run_coroutine_threadsafe(upstream.stop(), loop).result(10)
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


def queue(*arguments: object) -> int:
    return main(["queue", *map(str, arguments)])


def snapshot(directory: Path) -> dict[str, tuple[bytes, int]]:
    files = [*directory.iterdir()]
    return {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in files}


def damage(directory: Path, sequence: int) -> None:
    """A flipped bit in the entry of a record of the first segment."""
    with (directory / "00000.seg").open("r+b") as file:
        file.seek(PAGE_BYTES + sequence * SLOT_BYTES)
        old = file.read(1)[0]
        file.seek(PAGE_BYTES + sequence * SLOT_BYTES)
        file.write(bytes([old ^ 1]))


def test_inspect_prints_a_table_with_the_ledger_of_each_consumer(directory, capsys):
    assert queue("inspect", directory) == 0
    text = capsys.readouterr().out
    lines = {line.split()[0]: line.split()[1:] for line in text.splitlines() if line}
    assert lines["format"][0] == "2,"
    assert lines["owner"] == ["process", str(os.getpid()) + ",", "running"]
    assert lines["records"] == ["oldest", "0,", "writing", str(TOTAL)]
    assert lines["segments"] == ["3", "used,", "0", "reusable,", "1", "free"]
    assert lines["bytes"] == ["48", "KiB", "used,", "16", "KiB", "free"]
    assert lines["lasts"] == ["for", "ever;", "nothing", "is", "being", "written"]
    figures = ["2", "601", "603", "1", "601", "1", "(rejected", "1)"]
    assert lines["main"] == figures


def test_inspect_answers_programs_in_json(directory, capsys):
    assert queue("inspect", directory, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["directory"] == str(directory)
    assert found["owner"] == {"pid": os.getpid(), "alive": True}
    assert (found["segment_bytes"], found["capacity_bytes"]) == (16 * KIB, 64 * KIB)
    assert found["outlook"] == {
        "records_per_s": 0.0,
        "bytes_per_s": 0.0,
        "capacity_s": None,
        "free_s": None,
    }
    [main_consumer] = found["consumers"]
    assert main_consumer["ledger"] == {
        "committed": 2,
        "accepted": 603,
        "delivered": 1,
        "queued": 601,
        "dropped": {"rejected": 1},
        "overwritten": 0,
    }


@pytest.fixture
def traffic(directory: Path) -> Iterator[None]:
    """Somebody else writes to the queue, and the consumer keeps up, for as long as the test."""
    with subprocess.Popen(
        [sys.executable, "-c", TRAFFIC, str(directory.with_name("busy"))],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"writing\n"
        yield
        process.kill()


TRAFFIC = """
import sys, time
from pathlib import Path
from skyfarer.base.units import KIB
from skyfarer.queue.consumer import Consumer
from skyfarer.queue.settings import QueueSettings
from skyfarer.queue.writer import Writer
writer = Writer(QueueSettings(Path(sys.argv[1]), 16 * KIB, 64 * KIB, 4 * KIB))
writer.start()
consumer = Consumer(Path(sys.argv[1]), "main")
consumer.start()
print("writing", flush=True)
while True:
    writer.append(1, [bytes(1024)])
    consumer.commit(writer.writing)
    time.sleep(0.001)
"""


@pytest.mark.usefixtures("traffic")
def test_inspect_says_how_many_seconds_a_queue_lasts_that_is_written_to(directory, capsys):
    busy = directory.with_name("busy")
    shape = re.compile(
        r"^lasts +\d+ s at the current rate"
        r" \(\d+ records, [\d.]+ KiB a second\), what is free \d+ s$",
        re.MULTILINE,
    )
    outlook: dict[str, float] = {}

    def told() -> bool:
        """Of a moment in which the others had the processor nothing was written."""
        assert queue("inspect", busy) == 0
        in_words = shape.search(capsys.readouterr().out)
        assert queue("inspect", busy, "--json") == 0
        outlook.update(json.loads(capsys.readouterr().out)["outlook"])
        return in_words is not None and outlook["records_per_s"] > 0

    eventually(told, 60, "somebody writes")
    assert outlook["capacity_s"] == pytest.approx(64 * KIB / outlook["bytes_per_s"])
    assert 0 < outlook["free_s"] <= outlook["capacity_s"]


def test_inspect_of_a_full_queue_says_that_it_lasts_no_longer(directory, capsys):
    full = directory.with_name("full")
    writer = Writer(QueueSettings(full, 16 * KIB, 64 * KIB, 4 * KIB))
    writer.start()
    for _ in range(4):
        writer.append(1, [bytes(1024)] * 8)
    writer.stop(1.0)
    assert queue("inspect", full) == 0
    assert "lasts      no longer: it is full; nothing is being written" in capsys.readouterr().out


def test_inspect_says_so_when_a_consumers_file_is_damaged(directory, capsys):
    (directory / "consumer-main").write_bytes(bytes(2 * PAGE_BYTES))
    assert queue("inspect", directory) == 0
    assert "main      damaged: it will begin at the oldest record" in capsys.readouterr().out


def test_verify_of_a_whole_queue_ends_with_0(directory, capsys):
    assert queue("verify", directory) == 0
    said = capsys.readouterr()
    assert said.out == "603 records whole, 0 damaged, 0 lost of 603 from 0\n"
    assert said.err == ""


def test_verify_lists_damage_and_ends_with_1(directory, capsys):
    damage(directory, 7)
    damage(directory, 8)
    (directory / "00001.seg").unlink()
    assert queue("verify", directory) == 1
    assert capsys.readouterr().out.splitlines() == [
        "records 7 to 8 are damaged",
        "records 204 to 407 are lost",
        "397 records whole, 2 damaged, 204 lost of 603 from 0",
    ]


def test_verify_finds_damage_that_has_cost_no_record_yet(directory, capsys):
    (directory / "consumer-main").write_bytes(bytes(2 * PAGE_BYTES))
    (directory / "00003.seg").write_bytes(b"\x55" * 16 * KIB)
    assert queue("verify", directory) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == ["00003.seg is damaged", "consumer-main is damaged"]


def test_dump_prints_number_kind_length_and_hex(directory, capsys):
    assert queue("dump", directory, "--from", 598, "--to", 602) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert [row[:3] for row in rows] == [
        ["598", "SEGMENT", "11"],
        ["599", "SEGMENT", "11"],
        ["600", "INSTANCE_PING", "6"],
        ["601", "INSTANCE_PING", "6"],
    ]
    payloads = [bytes.fromhex(row[3]) for row in rows]
    assert payloads == [*SEGMENTS[598:], *PINGS[:2]]


def test_dump_names_what_it_could_not_read_and_ends_with_1(directory, capsys):
    damage(directory, 3)
    assert queue("dump", directory, "--to", 5) == 1
    said = capsys.readouterr()
    assert [line.split()[0] for line in said.out.splitlines()] == ["0", "1", "2", "4"]
    assert said.err == "record 3 is damaged\n"


def test_dump_into_a_file_is_length_delimited_as_documented(directory, tmp_path, capsys):
    out = tmp_path / "records.dump"
    assert queue("dump", directory, "--out", out) == 0
    assert capsys.readouterr().out == f"603 records in {out}\n"
    data = out.read_bytes()
    magic, version, queue_id = struct.unpack_from("<8sI16s", data)
    assert (magic, version) == (b"SKYQDUMP", 1)
    assert queue_id == (directory / "meta").read_bytes()[12:28]
    at, found = 28, []
    while at < len(data):
        sequence, kind, length = struct.unpack_from("<QII", data, at)
        found.append((sequence, kind, data[at + 16 : at + 16 + length]))
        at += 16 + length
    assert found == [
        *((n, Kind.SEGMENT, payload) for n, payload in enumerate(SEGMENTS)),
        *((600 + n, Kind.INSTANCE_PING, payload) for n, payload in enumerate(PINGS)),
    ]
    assert out.stat().st_mode & 0o777 == 0o600


def test_dump_to_a_reader_that_has_enough_ends_quietly(directory):
    command = [sys.executable, "-m", "skyfarer.cli", "queue", "dump", str(directory)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as dump:
        assert dump.stdout is not None and dump.stderr is not None
        dump.stdout.close()
        assert dump.stderr.read() == b""
    assert dump.returncode == 0


def test_replay_sends_every_record_in_order_and_moves_no_place(directory, upstream, capsys):
    before = snapshot(directory)
    assert queue("replay", directory, "--to", upstream.address) == 0
    assert upstream.payloads(Kind.SEGMENT) == SEGMENTS
    assert upstream.payloads(Kind.INSTANCE_PING) == PINGS
    assert capsys.readouterr().out == (
        f"603 records sent in {upstream.calls} calls (SEGMENT 600, INSTANCE_PING 3)\n"
    )
    assert upstream.calls < 10
    assert snapshot(directory) == before


def test_replay_of_a_range_sends_that_range(directory, upstream):
    assert queue("replay", directory, "--to", upstream.address, "--from", 5, "--until", 8) == 0
    assert upstream.payloads(Kind.SEGMENT) == SEGMENTS[5:8]


def test_replay_counts_what_is_refused_and_delivers_the_rest(directory, upstream, capsys):
    def judge(kind: int, payloads: object) -> None:
        if SEGMENTS[9] in map(bytes, payloads):  # type: ignore[call-overload]
            raise PermanentError("not this one")

    upstream.judge = judge
    damage(directory, 20)
    assert queue("replay", directory, "--to", upstream.address, "--until", 40) == 1
    whole = [*SEGMENTS[:9], *SEGMENTS[10:20], *SEGMENTS[21:40]]
    assert upstream.payloads(Kind.SEGMENT) == whole
    sent, refused, missing = capsys.readouterr().out.splitlines()
    assert sent.startswith("38 records sent")
    assert refused.startswith("1 refused (SEGMENT 1); the first: ")
    assert missing == "1 not sent: damaged"


@pytest.mark.parametrize("upstream", [set(Kind) - {Kind.LOG}], indirect=True)
def test_replay_says_which_kinds_the_other_side_does_not_know(tmp_path, upstream, capsys):
    copy = tmp_path / "copy"
    shutil.copytree(GOLDEN, copy)
    assert queue("replay", copy, "--to", upstream.address) == 1
    sent, refused = capsys.readouterr().out.splitlines()
    assert sent.startswith("16 records sent")
    assert refused.startswith("5 refused (LOG 5); the first: ") and "UNIMPLEMENTED" in refused


def test_replay_passes_over_kinds_no_call_carries(upstream):
    done = replay([[Record(0, 9999, b"later")]], ("127.0.0.1", upstream.port), print)
    assert (dict(done.refused), done.whole, upstream.calls) == ({9999: 1}, False, 0)


def test_replay_tries_again_and_then_gives_up_naming_where_to_go_on(upstream):
    refusals = [RetryableError("busy")] * (ATTEMPTS_MAX - 1)

    def judge(kind: int, payloads: object) -> None:
        if refusals:
            raise refusals.pop()

    upstream.judge = judge
    address = ("127.0.0.1", upstream.port)
    some = [Record(40, Kind.INSTANCE_PING, b"a"), Record(41, Kind.INSTANCE_PING, b"b")]
    assert replay([some], address, lambda reached: None, FAST).sent.total() == 2
    refusals.extend([RetryableError("busy")] * ATTEMPTS_MAX)
    with pytest.raises(RetryableError, match="0 records were sent, go on with --from 40"):
        replay([some], address, lambda reached: None, FAST)
    assert upstream.payloads(Kind.INSTANCE_PING) == [b"a", b"b"]


def test_all_of_it_leaves_the_directory_of_a_running_owner_as_it_is(directory, tmp_path, upstream):
    before, listed = snapshot(directory), directory.stat().st_mtime_ns
    for arguments in (
        ["inspect", directory],
        ["verify", directory],
        ["dump", directory, "--out", tmp_path / "out"],
        ["replay", directory, "--to", upstream.address],
    ):
        assert queue(*arguments) == 0
    assert (snapshot(directory), directory.stat().st_mtime_ns) == (before, listed)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["inspect", "{tmp}/none"], "none is not a queue directory: it has no file 'meta'"),
        (["verify", "{dir}/.."], "it has no file 'meta'; there is one in "),
        (["dump", "{dir}/meta"], "meta is not a queue directory"),
        (["dump", "{dir}", "--from", "9", "--to", "8"], "has no records 9 to 8: it holds 0 up to"),
        (["dump", "{dir}", "--to", "604"], "has no records 0 to 604: it holds 0 up to"),
        (["dump", "{dir}", "--out", "{dir}/x"], "x lies in the queue's own directory"),
        (["dump", "{dir}", "--out", "{tmp}"], "File exists"),
        (["dump", "{dir}", "--from", "-1"], "--from"),
        (["replay", "{dir}", "--to", "nowhere"], "'nowhere' is no address such as 127.0.0.1:11800"),
        (["replay", "{dir}"], "required: --to"),
        (["inspect"], "required: DIR"),
        (["inspekt"], "there is no command 'inspekt' (did you mean 'inspect'?)"),
        ([], "a command is missing (inspect or verify or dump or replay)"),
    ],
)
def test_wrong_usage_is_one_sentence_and_code_2(directory, tmp_path, capsys, arguments, says):
    words = [word.format(dir=directory, tmp=tmp_path) for word in arguments]
    try:
        code = queue(*words)
    except SystemExit as ended:
        code = ended.code  # type: ignore[assignment]
    said = capsys.readouterr()
    assert (code, said.out) == (2, "")
    assert says in said.err
    assert len(said.err.splitlines()) == 1


@pytest.mark.parametrize("command", ["inspect", "verify", "dump"])
def test_a_queue_of_a_later_format_is_refused_in_one_sentence_with_code_1(
    directory, capsys, command
):
    body = bytearray((directory / "meta").read_bytes()[:40])
    struct.pack_into("<I", body, 8, 3)
    (directory / "meta").write_bytes(seal_page(bytes(body)))
    assert queue(command, directory) == 1
    said = capsys.readouterr().err
    assert "has queue format 3, this program reads format 2" in said
    assert len(said.splitlines()) == 1


@pytest.mark.parametrize("command", [[], ["inspect"], ["verify"], ["dump"], ["replay"]])
def test_help_explains_and_gives_examples(capsys, command):
    with pytest.raises(SystemExit, match="0"):
        queue(*command, "--help")
    assert "examples:\n  skyfarer queue inspect" in capsys.readouterr().out


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_is_a_bar_on_a_terminal_that_is_gone_at_the_end():
    clock, screen = HandClock(), Terminal()
    progress = Progress("checked", 200, screen, clock)
    progress.update(50)
    assert screen.getvalue() == ""
    clock.seconds = 1.0
    progress.update(100)
    bar = f"[{'#' * 15}{' ' * 15}] checked 100 of 200 records, 50 %"
    assert screen.getvalue() == f"\r{bar}\r"
    progress.close()
    assert screen.getvalue() == f"\r{bar}\r\r{' ' * len(bar)}\r"


def test_progress_is_a_line_every_few_seconds_elsewhere():
    clock, log = HandClock(), io.StringIO()
    progress = Progress("checked", 200, log, clock)
    for second in range(12):
        clock.seconds = float(second)
        progress.update(10 * second)
    progress.close()
    assert log.getvalue() == ("checked 50 of 200 records, 25 %\nchecked 100 of 200 records, 50 %\n")
