"""A writer belongs to the process that started it, not to what that process forks."""

from __future__ import annotations

import os
from pathlib import Path

from skyfarer.base.errors import PermanentError
from skyfarer.base.units import KIB
from skyfarer.queue.reader import Reader
from skyfarer.queue.settings import QueueSettings
from skyfarer.queue.writer import Writer

REFUSED = 7


def test_a_forked_child_may_not_append_and_the_parent_goes_on(tmp_path: Path) -> None:
    writer = Writer(QueueSettings(tmp_path, 64 * KIB, 256 * KIB, record_bytes_max=4 * KIB))
    writer.start()
    writer.append(1, [b"before"])
    child = os.fork()
    if child == 0:
        try:
            writer.append(1, [b"child"])
        except PermanentError:
            os._exit(REFUSED)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == REFUSED
    writer.append(1, [b"after"])
    reader = Reader(tmp_path)
    reader.start()
    payloads = [bytes(one) for run in reader.runs(0, reader.writing()) for one in run.payloads()]
    assert payloads == [b"before", b"after"]
    reader.stop()
    writer.stop(0)
