"""A real PostgreSQL server, started from the installed binaries on a free port.

It refuses to run as root, so where the tests do, it runs as `nobody` in a directory of its own. Its
language sorts texts as no program does, on purpose: whoever relies on an order must say which.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import psycopg

from skyfarer.testing.programs import eventually, free_port

READY_TIMEOUT_S = 180.0
STOP_TIMEOUT_S = 60.0
DEBIAN = Path("/usr/lib/postgresql")
PASSWORD = "secret of the tests"
UNPRIVILEGED: dict[str, Any] = {"user": "nobody", "group": "nogroup", "extra_groups": []}
SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "max_connections": 60,
    "shared_buffers": "64MB",
    "log_min_messages": "fatal",
}


def binaries() -> Path:
    """Where `initdb` and `postgres` are; they are in no PATH on Debian."""
    if found := shutil.which("initdb"):
        return Path(found).resolve().parent
    versions = sorted(DEBIAN.glob("*/bin/initdb"), key=lambda path: float(path.parts[-3]))
    if not versions:
        raise FileNotFoundError("PostgreSQL's server is not installed: no initdb")
    return versions[-1].parent


class Server:
    """`kill` is the power that fails; `start` again keeps what was durable. Without `durable` it
    never waits for the disk, which only a test of a killed machine would notice. `settings` are the
    server's own, beside SETTINGS."""

    def __init__(self, durable: bool = False, **settings: str) -> None:
        self._home = Path(tempfile.mkdtemp(prefix="skyfarer-postgresql-"))
        self._data = self._home / "data"
        self.port = free_port()
        self._settings = {**SETTINGS, "port": self.port, "fsync": "on" if durable else "off"}
        self._settings |= settings
        self._process: subprocess.Popen[bytes] | None = None
        self._databases = 0
        self._as: dict[str, Any] = {}
        if os.geteuid() == 0:
            self._as = UNPRIVILEGED
            shutil.chown(self._home, UNPRIVILEGED["user"], UNPRIVILEGED["group"])
        self._create()

    def _create(self) -> None:
        password = self._home / "password"
        password.write_text(PASSWORD)
        password.chmod(0o644)
        options = [
            "--encoding=UTF8",
            "--locale=C.UTF-8",
            "--username=skyfarer",
            "--auth=scram-sha-256",
        ]
        options += ["--locale-provider=icu", "--icu-locale=en-US", "--no-sync"]
        command = [binaries() / "initdb", "-D", self._data, f"--pwfile={password}", *options]
        subprocess.run(command, check=True, capture_output=True, cwd=self._home, **self._as)

    def start(self) -> Server:
        given = [word for key, value in self._settings.items() for word in ("-c", f"{key}={value}")]
        self._process = subprocess.Popen(
            [binaries() / "postgres", "-D", self._data, *given],
            stdout=subprocess.DEVNULL,
            stderr=(self._home / "log").open("ab"),
            cwd=self._home,
            **self._as,
        )
        eventually(self._answers, READY_TIMEOUT_S, "PostgreSQL answers")
        return self

    def _answers(self) -> bool:
        try:
            self.connect("postgres").close()
        except psycopg.OperationalError:
            return False
        return True

    def conninfo(self, database: str) -> str:
        return (
            f"host=127.0.0.1 port={self.port} user=skyfarer dbname={database} password='{PASSWORD}'"
        )

    def connect(self, database: str) -> psycopg.Connection[Any]:
        return psycopg.connect(self.conninfo(database), autocommit=True)

    def database(self) -> str:
        """A new one; its conninfo."""
        self._databases += 1
        name = f"test_{self._databases}"
        with self.connect("postgres") as connection:
            connection.execute(f"CREATE DATABASE {name}")
        return self.conninfo(name)

    def space(self) -> str:
        """A schema of its own in the one database, which is made in no time; its conninfo."""
        self._databases += 1
        name = f"test_{self._databases}"
        with self.connect("postgres") as connection:
            connection.execute(f"CREATE SCHEMA {name}")
        return f"{self.conninfo('postgres')} options='-c search_path={name}'"

    def kill(self) -> None:
        """The server and all it has started, at once."""
        self._end(signal.SIGQUIT)

    def stop(self) -> None:
        """At once too, but with a farewell to whoever is connected."""
        self._end(signal.SIGINT)

    def _end(self, name: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.send_signal(name)
            try:
                process.wait(STOP_TIMEOUT_S)
            finally:
                process.kill()

    def close(self) -> None:
        self.kill()
        shutil.rmtree(self._home, ignore_errors=True)
