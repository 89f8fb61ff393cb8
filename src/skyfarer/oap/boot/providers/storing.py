"""What all providers of storage do alike."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Protocol

from skyfarer.base.errors import PermanentError, RetryableError
from skyfarer.oap.boot.providers.core import Node
from skyfarer.oap.core.capabilities import Limited
from skyfarer.oap.core.expiry import DayTables, RetentionOverride
from skyfarer.oap.core.inventory import InventoryReader
from skyfarer.oap.core.modes import NO_INIT_RETRY_S, RunningMode
from skyfarer.oap.core.modules import Module, Offer
from skyfarer.oap.core.parked import ParkedRecords
from skyfarer.oap.core.storage import Reader, Writer
from skyfarer.oap.core.tasks import TaskTables
from skyfarer.oap.core.templates import TemplateTables

STORAGE = Module(
    "storage",
    (
        *(Writer, Reader, InventoryReader, ParkedRecords, TaskTables, TemplateTables),
        *(DayTables, RetentionOverride),
    ),
)

log = logging.getLogger(__name__)


class Everything(
    Writer,
    Reader,
    InventoryReader,
    ParkedRecords,
    TaskTables,
    TemplateTables,
    DayTables,
    Limited,
    Protocol,
):
    """What a provider of storage offers."""


def offer_all(offer: Offer, storage: Everything, retention: RetentionOverride) -> None:
    offer(Writer, storage)
    offer(Reader, storage)
    offer(InventoryReader, storage)
    offer(ParkedRecords, storage)
    offer(TaskTables, storage)
    offer(TemplateTables, storage)
    offer(DayTables, storage)
    offer(RetentionOverride, retention)


def start_by_mode(node: Node, start: Callable[[bool], None]) -> None:
    """`start` is told whether to make the tables; where it must not, it is tried until they are
    there, or the program is to end."""
    waiting = node.mode is RunningMode.NO_INIT
    if not waiting:
        start(True)
    while waiting:
        try:
            start(False)
            break
        except RetryableError as error:
            log.warning(
                "%s. OAP is running in 'no-init' mode, waiting... retry %gs later.",
                *(error, NO_INIT_RETRY_S),
            )
        if node.ending(NO_INIT_RETRY_S):
            raise PermanentError("told to end before the tables of storage were there")
