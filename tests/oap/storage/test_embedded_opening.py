"""Who opens a file: what it looks at first, what it may make, and how it leaves it."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC
from pathlib import Path
from zoneinfo import ZoneInfo

import duckdb
import pytest

from contracts.storage_contract import batch, delta, segment
from skyfarer.base.errors import PermanentError, RetryableError
from skyfarer.oap.storage.embedded import EmbeddedStorage, opening, schema
from skyfarer.testing.programs import eventually

WITHIN_S = 60.0


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "skyfarer.duckdb"


def make(path: Path, *statements: str) -> None:
    with duckdb.connect(str(path)) as connection:
        for statement in statements:
            connection.execute(statement)


def versioned(path: Path, version: int) -> None:
    make(path, f"CREATE TABLE schema_version AS SELECT {version} AS version")


def installed(path: Path) -> None:
    storage = EmbeddedStorage()
    storage.start(path, UTC)
    storage.stop()


def tables(path: Path) -> set[str]:
    """Of a file that nobody has open."""
    with duckdb.connect(str(path)) as connection:
        return schema.present(connection)


@contextmanager
def open_elsewhere(path: Path) -> Iterator[None]:
    """By another process, as a running `init` has it."""
    program = "import duckdb, sys; c = duckdb.connect(sys.argv[1]); print(flush=True); input()"
    command = [sys.executable, "-c", program, str(path)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        other.stdout.readline()
        try:
            yield
        finally:
            other.communicate("\n", timeout=WITHIN_S)


@pytest.mark.parametrize("install", [True, False])
def test_a_file_of_a_newer_program_stays_as_it_is(path: Path, install: bool) -> None:
    versioned(path, 99)
    before = path.read_bytes()
    with pytest.raises(PermanentError, match="has schema 99, this program knows"):
        EmbeddedStorage().start(path, UTC, install)
    assert path.read_bytes() == before
    assert tables(path) == {"schema_version"}


@pytest.mark.parametrize("install", [True, False])
def test_a_file_of_another_zone_is_refused_and_stays_as_it_is(path: Path, install: bool) -> None:
    installed(path)
    before = path.read_bytes()
    with pytest.raises(PermanentError, match=r"are of the zone UTC, .* is Asia/Tokyo: start it"):
        EmbeddedStorage().start(path, ZoneInfo("Asia/Tokyo"), install)
    assert path.read_bytes() == before
    installed(path)


def test_a_file_of_a_zone_that_the_machine_does_not_know_is_refused(path: Path) -> None:
    installed(path)
    make(path, "UPDATE server_zone SET name = 'Nowhere/At_All'")
    with pytest.raises(PermanentError, match="Nowhere/At_All, which this machine does not know"):
        EmbeddedStorage().start(path, UTC)


def test_a_file_of_an_older_program_is_given_the_zone_of_who_opens_it(path: Path) -> None:
    installed(path)
    make(path, "DROP TABLE server_zone")
    storage = EmbeddedStorage()
    with pytest.raises(RetryableError, match="table:server_zone does not exist"):
        storage.start(path, ZoneInfo("Asia/Tokyo"), install=False)
    storage.start(path, ZoneInfo("Asia/Tokyo"))
    storage.stop()
    with pytest.raises(PermanentError, match="are of the zone Asia/Tokyo"):
        installed(path)
    make(path, "UPDATE server_zone SET name = 'UTC'")
    installed(path)


def test_tables_are_made_together_or_not_at_all(path: Path) -> None:
    make(path, "CREATE TABLE parked_producer (name VARCHAR, and_more VARCHAR)")
    with pytest.raises(PermanentError, match="parked_producer"):
        EmbeddedStorage().start(path, UTC)
    assert tables(path) == {"parked_producer"}


def test_without_install_nothing_is_made_in_a_file_that_is_there(path: Path) -> None:
    versioned(path, schema.VERSION)
    before = path.read_bytes()
    with pytest.raises(RetryableError, match=r"skyfarer\.duckdb: table:[a-z_]+ does not exist$"):
        EmbeddedStorage().start(path, UTC, install=False)
    assert path.read_bytes() == before


def test_without_install_no_file_is_made(path: Path) -> None:
    with pytest.raises(RetryableError, match=r"table:schema_version does not exist$"):
        EmbeddedStorage().start(path.parent / "below" / path.name, UTC, install=False)
    assert list(path.parent.iterdir()) == []


def test_without_install_every_one_of_the_fixed_tables_is_missed(path: Path) -> None:
    installed(path)
    assert len(opening.FIXED_TABLES) == len(tables(path)) > 15
    for table in sorted(opening.FIXED_TABLES):
        make(path, f"ALTER TABLE {table} RENAME TO elsewhere")
        with pytest.raises(RetryableError, match=f"table:{table} does not exist$"):
            EmbeddedStorage().start(path, UTC, install=False)
        make(path, f"ALTER TABLE elsewhere RENAME TO {table}")


def test_without_install_an_older_file_is_waited_for_and_stays_as_it_is(path: Path) -> None:
    installed(path)
    make(path, "UPDATE schema_version SET version = 5")
    before = path.read_bytes()
    with pytest.raises(RetryableError, match=r"of schema 5, not yet of [0-9]+"):
        EmbeddedStorage().start(path, UTC, install=False)
    assert path.read_bytes() == before


def test_without_install_a_file_that_another_one_has_open_is_waited_for(path: Path) -> None:
    installed(path)
    storage = EmbeddedStorage()
    with open_elsewhere(path):
        with pytest.raises(RetryableError, match="another process has it open"):
            storage.start(path, UTC, install=False)
        with pytest.raises(PermanentError, match="cannot open the storage file"):
            storage.start(path, UTC)
    storage.start(path, UTC, install=False)
    storage.stop()


def test_without_install_what_is_no_storage_file_is_refused(path: Path) -> None:
    path.write_bytes(b"no database" * 1000)
    with pytest.raises(PermanentError, match="cannot open the storage file"):
        EmbeddedStorage().start(path, UTC, install=False)


def test_whoever_was_refused_leaves_the_file_to_others(path: Path) -> None:
    """Each refusal holds nothing: the next one opens the file in another process."""
    refused = EmbeddedStorage()
    versioned(path, 99)
    for version in (99, schema.VERSION - 1, schema.VERSION):
        make(path, f"UPDATE schema_version SET version = {version}")
        with pytest.raises((PermanentError, RetryableError)):
            refused.start(path, UTC, install=False)
        with open_elsewhere(path):
            pass


def test_stop_waits_for_a_batch_no_longer_than_it_is_told(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    storage, begun, go_on = EmbeddedStorage(), threading.Event(), threading.Event()
    storage.start(path, UTC)
    storage.apply(batch(0, 1, [segment("a")], [delta()]))
    failures: list[Exception] = []

    def write() -> None:
        try:
            with storage._transaction() as cursor:
                cursor.execute("UPDATE source_offset SET next_sequence = 99")
                begun.set()
                go_on.wait(WITHIN_S)
        except PermanentError as error:
            failures.append(error)

    writer = threading.Thread(target=write)
    writer.start()
    begun.wait(WITHIN_S)
    storage.stop(timeout_s=0.1)
    assert "undone" in caplog.text
    go_on.set()
    writer.join(WITHIN_S)
    assert "stopped" in str(failures[0])
    storage.start(path, UTC)
    assert storage.applied("queue-a") == 1
    storage.stop()


def test_stop_breaks_off_a_statement_that_does_not_end(path: Path) -> None:
    storage, failures = EmbeddedStorage(), list[Exception]()
    storage.start(path, UTC)

    def write() -> None:
        try:
            with storage._transaction() as cursor:
                cursor.execute("CREATE TABLE made AS SELECT 1 AS one")
                cursor.execute("SELECT count(*) FROM range(10_000_000) a, range(10_000_000) b")
        except RetryableError as error:
            failures.append(error)

    writer = threading.Thread(target=write)
    writer.start()
    eventually(lambda: storage._writer is not None, WITHIN_S, "it writes")
    storage.stop(timeout_s=0.2)
    writer.join(WITHIN_S)
    assert "nterrupted" in str(failures[0])
    assert "made" not in tables(path)
