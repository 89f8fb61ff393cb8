"""How a node is started: who makes the tables that must be there before anything is stored.

These are the fixed ones. A table of a day is made by the first batch that has rows of it, whatever
the mode: a node that ends after `init` is not there at midnight, and one that waited for another to
make it would store nothing until somebody starts one. So does a column of a new metric. Neither is
ever made of a day that has expired.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

NO_INIT_RETRY_S: Final = 3.0


class RunningMode(Enum):
    DEFAULT = ""  # makes what is missing, and serves
    INIT = "init"  # makes what is missing, and ends
    NO_INIT = "no-init"  # waits until others have made it, and serves
