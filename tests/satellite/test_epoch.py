"""When a queue goes by another name: whenever a number may name another record than before."""

from __future__ import annotations

import shutil
from pathlib import Path
from uuid import uuid4

from skyfarer.queue.settings import QueueSettings
from skyfarer.queue.writer import Writer
from skyfarer.satellite.epoch import epoch


def test_a_queue_keeps_its_epoch_from_process_to_process_and_loses_it_with_the_boot(
    tmp_path: Path,
) -> None:
    queue, boot = tmp_path / "queue", tmp_path / "boot_id"
    boot.write_text(f"{uuid4()}\n")
    seen = set()
    for _ in range(2):
        writer = Writer(QueueSettings(directory=queue))
        writer.start()
        seen.add(epoch(queue, boot))
        writer.stop(0.0)
    assert len(seen) == 1
    boot.write_text(f"{uuid4()}\n")
    assert epoch(queue, boot) not in seen


def test_a_copy_of_a_queue_is_another(tmp_path: Path) -> None:
    writer = Writer(QueueSettings(directory=tmp_path / "queue"))
    writer.start()
    writer.stop(0.0)
    shutil.copytree(tmp_path / "queue", tmp_path / "copy")
    assert epoch(tmp_path / "queue") == epoch(tmp_path / "queue") != epoch(tmp_path / "copy")


def test_where_boots_cannot_be_told_apart_no_epoch_is_like_another(tmp_path: Path) -> None:
    (tmp_path / "meta").touch()
    nothing = tmp_path / "boot_id"
    assert epoch(tmp_path, nothing) != epoch(tmp_path, nothing)
