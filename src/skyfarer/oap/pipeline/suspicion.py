"""How the analysis reads on where it has failed: the job never ends because of what a record holds.

A batch that fails is read again as it is: workers are killed, and machines run out of memory. A
failure is evidence against a record only if known records can be analysed right after it. When a
batch has failed so a second time at the same record, a record in it is suspected.

1. The probe decodes the stretch in a process of its own, and names the records that end a process.
   Those that the other decoder can read are entrusted to it. The rest are put into quarantine: no
   decoder sees them, and the batch that reaches them parks them.
2. Where the probe names none, the batch is tried twice more. Then the next batches are half as
   long, from failure to failure, until one record alone has failed four times. It is put into
   quarantine, too.
3. If the batch fails without this record as well, the record was not at fault, and leaves the
   quarantine. Such failures count against the job.

Once the stretch that failed is behind, batches have their whole length again.

A process that dies takes this knowledge along. So each start notes where it begins. Where ten
starts have died at one record, the next ones begin with shorter and shorter batches. They put no
record into quarantine: what kills a process is mostly no record.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

from skyfarer.oap.pipeline.sources.probe import Culprit

TRIES: Final = 2
"""Failures at one place before a record is suspected."""
PATIENCE: Final = 4
"""Failures at one place before batches are made shorter, and of one record before its trial."""
DEATHS: Final = 10
"""Starts that died at one place before a record is suspected."""
NARROWER_BITS: Final = 2
"""Each further death makes batches shorter by a factor of four: a start takes half a minute."""
UNANALYSABLE: Final = "unanalysable"

Probe: TypeAlias = Callable[[int, int], Iterable[Culprit]]

log = logging.getLogger(__name__)


@dataclass
class _Suspect:
    """The stretch `start` … `end` that failed `failures` times when it was read as a batch."""

    start: int
    end: int
    failures: int = 0
    on_trial: bool = False


class Suspicion:
    """Used by one thread, but for `passed`, which the thread of the batches calls.

    `quarantined`, `entrusted` and `records_max` are for the query that is started next. `probe`
    returns the records that end a process; it may block. `file` outlives the process.
    """

    def __init__(self, file: Path, records_max: int, probe: Probe) -> None:
        self.records_max = records_max
        self.quarantined: dict[int, str] = {}
        self.entrusted = frozenset[int]()
        self._file = file
        self._whole = records_max
        self._probe = probe
        self._suspect: _Suspect | None = None

    def begin(self, queue_id: str, at: int, writing: int) -> None:
        """Notes that this process begins at that record, with shorter batches where others died."""
        deaths = self._deaths(queue_id, at) if writing > at else 0
        noted = {"queue": queue_id, "at": at, "starts": deaths + 1}
        try:
            self._file.write_text(json.dumps(noted))
        except OSError as error:
            log.warning("%s cannot be written (%s): deaths are not counted", self._file, error)
        if deaths >= DEATHS:
            self.records_max = max(1, self._whole >> NARROWER_BITS * (deaths - DEATHS + 1))
            self._suspect = _Suspect(at, at + self._whole)
            log.warning(
                "the OAP ended %d times while it analysed from record %d on: it reads %d records at"
                " a time now; `skyfarer oap queue skip --at %d` passes over that record",
                *(deaths, at, self.records_max, at),
            )

    def end(self) -> None:
        """The process ends as it was told to, and not because of a record."""
        self._file.unlink(missing_ok=True)

    def failed(self, at: int, writing: int, cause: str) -> bool:
        """Takes a failure after which known records could be analysed. Returns whether something
        else is tried at the next start of the query; else the failure counts against the job."""
        suspect = self._suspect
        if suspect is None or not suspect.start <= at < suspect.end:
            suspect = self._suspect = _Suspect(at, min(at + self._whole, max(writing, at + 1)))
            self.records_max = self._whole
        elif at > suspect.start:
            suspect.start, suspect.failures = at, 0
        suspect.failures += 1
        if suspect.on_trial:
            self._acquit(suspect)
            return False
        if self.records_max < self._whole:
            return self._narrow(suspect, cause)
        if suspect.failures == TRIES and self._probed(suspect):
            return True
        return suspect.failures >= PATIENCE and self._narrow(suspect, cause)

    def passed(self, applied: int) -> bool:
        """Returns whether whole batches can be read again, which takes a new start of the query."""
        if self._suspect is None or applied < self._suspect.end:
            return False
        narrowed = self.records_max < self._whole
        self.quarantined = {n: why for n, why in self.quarantined.items() if n >= applied}
        self.entrusted = frozenset(n for n in self.entrusted if n >= applied)
        self.records_max, self._suspect = self._whole, None
        return narrowed

    def _probed(self, suspect: _Suspect) -> bool:
        """Returns whether the probe has found anything, and gives these records another fate."""
        found = list(self._probe(suspect.start, suspect.end))
        for one in found:
            fate = "read by the other decoder" if one.entrusted else "parked unread"
            log.error("record %d is %s: %s", one.sequence, fate, one.reason)
        self.quarantined |= {one.sequence: one.reason for one in found if not one.entrusted}
        self.entrusted |= {one.sequence for one in found if one.entrusted}
        if found:
            suspect.failures = 0
        return bool(found)

    def _narrow(self, suspect: _Suspect, cause: str) -> bool:
        length = min(self.records_max, suspect.end - suspect.start)
        suspect.end = suspect.start + length
        if length > 1:
            self.records_max, suspect.failures = (length + 1) // 2, 0
            log.warning(
                "one of the records %d to %d stops the analysis: %d are read at a time to find it",
                *(suspect.start, suspect.end - 1, self.records_max),
            )
            return True
        if suspect.failures < PATIENCE:
            return False
        suspect.on_trial = True
        reason = f"{UNANALYSABLE}: with this record alone the analysis fails: {cause}"
        self.quarantined[suspect.start] = reason
        log.error("record %d is parked if all goes well without: %s", suspect.start, cause)
        return True

    def _acquit(self, suspect: _Suspect) -> None:
        if self.quarantined.pop(suspect.start, None) is not None:
            log.error(
                "the analysis fails without record %d, too: no record is at fault", suspect.start
            )

    def _deaths(self, queue_id: str, at: int) -> int:
        """Starts at that record which did not get beyond it."""
        try:
            noted: dict[str, Any] = json.loads(self._file.read_bytes())
            same = (noted["queue"], noted["at"]) == (queue_id, at)
            return int(noted["starts"]) if same else 0
        except FileNotFoundError:
            return 0
        except (ValueError, KeyError, TypeError) as error:
            log.warning("%s is damaged (%s), and is written anew", self._file, error)
            return 0
