"""How a node is started: who makes the tables that must be there before anything is stored."""

from __future__ import annotations

from enum import Enum
from typing import Final

NO_INIT_RETRY_S: Final = 3.0


class RunningMode(Enum):
    DEFAULT = ""  # makes what is missing, and serves
    INIT = "init"  # makes what is missing, and ends
    NO_INIT = "no-init"  # waits until others have made it, and serves; day tables it makes itself
