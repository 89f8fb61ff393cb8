"""What a batch stores once and for all, and what is found again in it: segments, logs, events, slow
statements, with their tags."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from contextlib import AbstractContextManager
from datetime import tzinfo

import pyarrow as pa

from skyfarer.oap.core.storage import Analysed
from skyfarer.oap.storage.postgresql.copying import Cursor


class RecordWrites(ABC):
    """Parts of one `apply`, called in this order."""

    _zone: tzinfo

    @abstractmethod
    def _reading(self) -> AbstractContextManager[Cursor]: ...

    def known_segments(self, ids: pa.ChunkedArray, minutes: pa.ChunkedArray) -> Iterable[str]:
        raise NotImplementedError

    def _record_tables(self, batch: Analysed) -> dict[str, list[str]]:
        """Table of a day → the statements that make it and its indices, without harm twice. They
        run in a transaction of their own, and only while this process has not seen the table."""
        return {}

    def _bring_records(self, cursor: Cursor, batch: Analysed) -> None:
        """Without a lock, while others write: rows that no other batch has, in order of their keys
        (two that insert the same must meet at the first), and temporary tables for what follows."""
        return

    def _merge_records(self, cursor: Cursor, batch: Analysed) -> None:
        """Alone (`Lock.MERGING`): what changes rows that other batches change as well."""
        return
