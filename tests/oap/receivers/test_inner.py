"""The socket between the main process and its receiver."""

from __future__ import annotations

import asyncio
import stat
from pathlib import Path

import pytest

from skyfarer.oap.receivers import inner


async def talk(path: Path) -> bytes:
    async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"hello")
        writer.close()

    server = await asyncio.start_server(greet, sock=inner.bind(path))
    try:
        reader, writer = await inner.connect(path)
        heard = await reader.read()
        writer.close()
        return heard
    finally:
        server.close()


def test_it_may_lie_as_deep_as_a_data_directory_may(tmp_path: Path) -> None:
    deep = tmp_path / ("x" * 100) / ("y" * 100)
    deep.mkdir(parents=True)

    assert asyncio.run(talk(tmp_path / "receiver.sock")) == b"hello"
    assert asyncio.run(talk(deep / "receiver.sock")) == b"hello"
    assert [one.name for one in deep.iterdir()] == ["receiver.sock"]


def test_what_a_killed_receiver_left_behind_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "receiver.sock"
    inner.bind(path).close()
    with pytest.raises(ConnectionRefusedError):
        asyncio.run(inner.connect(path))

    assert asyncio.run(talk(path)) == b"hello"


def test_nobody_but_the_user_of_the_program_can_connect(tmp_path: Path) -> None:
    with inner.bind(tmp_path / "receiver.sock"):
        mode = (tmp_path / "receiver.sock").stat().st_mode

    assert stat.S_IMODE(mode) == 0o600


def test_nobody_there_is_an_error_at_once(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        asyncio.run(inner.connect(tmp_path / "receiver.sock"))
