"""Hours and days of metrics that are over, once more, column by column: for whoever compares.

    packed_metrics   table_name   of the merged rows
                     digits       of their buckets: 10 or 8
                     name         entity_id, place, time_bucket or an accumulator
                     pack         which making of it this is a part of, never the same again
                     through      the last bucket that is in it; later ones are merged rows alone
                     form, base   how `data` is to be read: of numbers as `narrow` says; or text
                     data         of every row; of entity_id one line for each that there is
                     nulls        a byte a row, where any value is null

To rank 1,000 endpoints by their hours of a week is to look at 168,000 rows, and to find them one by
one takes PostgreSQL a hundred times as long as to hand out what is in a few dozen long values.
Numbers take as many bytes as their range needs; the server compresses them as it likes.

Invariant: a pack says what the merged rows say. Whoever changes a merged row of a bucket up to
`through` deletes the pack in the same transaction (`forget`), under `Lock.FOLDING`; whoever packs
has that lock too. Whoever drops a day has not: its table is renamed first, which waits for one that
reads it to pack it and ends one that comes later, and then its packs are deleted. So a reader finds
in one snapshot a pack that is true, or none.

What was read is remembered (`Remembered`) under the name of its pack, which never comes to mean
anything else: only what is not known yet is sent.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skyfarer.base.units import MIB
from skyfarer.oap.core.time_bucket import PRECISIONS
from skyfarer.oap.storage.postgresql.columns import KEYS, Column
from skyfarer.oap.storage.postgresql.copying import Cursor
from skyfarer.oap.storage.postgresql.models import TEXT
from skyfarer.oap.storage.postgresql.narrow import narrowed, widened

DDL: Final = f"""
CREATE TABLE IF NOT EXISTS packed_metrics (
    table_name {TEXT}, digits INTEGER, name {TEXT}, pack {TEXT} NOT NULL, through BIGINT NOT NULL,
    form {TEXT} NOT NULL, base BIGINT NOT NULL, data BYTEA NOT NULL, nulls BYTEA,
    PRIMARY KEY (table_name, digits, name));
"""
HOUR, DAY = 10, 8
"""Digits."""
BYTES_REMEMBERED_MAX: Final = 64 * MIB
_ID, _BUCKET = KEYS
_PLACE: Final = "place"
"""Of a row's id among the ids."""
_TEXT: Final = "text"
_FOUND: Final = r"""SELECT table_name, name, pack, through, form, base,
    CASE WHEN pack = ANY(string_to_array(%(known)s, E'\n')) THEN NULL ELSE data END, nulls
    FROM packed_metrics
    WHERE table_name = ANY(string_to_array(%(tables)s, E'\n')) AND digits = %(digits)s
    AND name = ANY(string_to_array(%(names)s, E'\n'))"""
_Part = tuple[str, pa.Array]
"""Of which pack, and what it says."""


@dataclass(frozen=True)
class Packs:
    """Rows of several tables, and through which bucket each of these has them."""

    rows: pa.Table
    through: Mapping[str, int]


def first_bucket(table: str, digits: int) -> int:
    """Of the table's day."""
    return int(f"{table[-DAY:]:0<{digits}}")


def store(cursor: Cursor, table: str, digits: int, through: int, rows: pa.Table) -> None:
    """All rows up to that bucket, instead of what was packed of the table so far. Their columns are
    the keys and numbers."""
    cursor.execute(
        "DELETE FROM packed_metrics WHERE table_name = %s AND digits = %s", [table, digits]
    )
    ((pack,),) = cursor.execute("SELECT gen_random_uuid()::text").fetchall()
    parts = [(table, digits, name, pack, through, *part) for name, part in _parts(rows)]
    cursor.executemany(
        "INSERT INTO packed_metrics VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s)", parts
    )


def forget(cursor: Cursor, table: str, first_minute: int) -> None:
    """Before rows of that minute or a later one are merged into the table."""
    _, hour, day = PRECISIONS
    cursor.execute(
        f"""DELETE FROM packed_metrics WHERE table_name = %s
        AND through >= CASE digits WHEN {HOUR} THEN %s::bigint ELSE %s::bigint END""",
        [table, first_minute // hour, first_minute // day],
    )


def _parts(rows: pa.Table) -> Iterator[tuple[str, tuple[str, int, bytes, bytes | None]]]:
    ids = rows[_ID].combine_chunks().dictionary_encode()
    yield _ID, (_TEXT, 0, "\n".join(ids.dictionary.to_pylist()).encode(), None)
    yield _PLACE, (*narrowed(ids.indices.to_numpy()), None)
    for name in (name for name in rows.column_names if name != _ID):
        column = rows[name].combine_chunks()
        nulls = column.is_null().to_numpy(zero_copy_only=False).tobytes()
        numbers = pc.fill_null(column, 0).to_numpy()
        yield name, (*narrowed(numbers), nulls if column.null_count else None)


def _read(name: str, form: str, base: int, data: bytes, nulls: bytes | None) -> pa.Array:
    if form == _TEXT:
        return pa.array(data.decode().split("\n") if data else [], pa.string())
    wide = np.int32 if name == _PLACE else np.int64
    numbers = widened(np.frombuffer(data, form), base, wide)
    return pa.array(numbers, mask=None if nulls is None else np.frombuffer(nulls, np.bool_))


class Remembered:
    """Parts of packs, those that were asked for last, up to so many bytes. From any thread."""

    def __init__(self, bytes_max: int = BYTES_REMEMBERED_MAX) -> None:
        self._bytes_max, self._bytes = bytes_max, 0
        self._parts: OrderedDict[tuple[str, int, str], _Part] = OrderedDict()
        self._lock = threading.Lock()

    def known(
        self, tables: Sequence[str], digits: int, names: Sequence[str]
    ) -> dict[str, dict[str, pa.Array]]:
        """Pack → what it says under the names, where all of it is known."""
        found: dict[str, dict[str, pa.Array]] = {}
        with self._lock:
            for table in tables:
                parts = {name: self._parts.get((table, digits, name)) for name in names}
                there = {name: part for name, part in parts.items() if part is not None}
                for name in there:
                    self._parts.move_to_end((table, digits, name))
                packs = {pack for pack, _ in there.values()}
                if len(there) == len(names) and len(packs) == 1:
                    found[packs.pop()] = {name: part for name, (_, part) in there.items()}
        return found

    def remember(self, table: str, digits: int, name: str, pack: str, part: pa.Array) -> None:
        with self._lock:
            key = table, digits, name
            _, before = self._parts.pop(key, ("", None))
            self._bytes += part.nbytes - (0 if before is None else before.nbytes)
            self._parts[key] = pack, part
            while self._bytes > self._bytes_max:
                _, (_, oldest) = self._parts.popitem(last=False)
                self._bytes -= oldest.nbytes


def read(
    cursor: Cursor,
    remembered: Remembered,
    tables: Sequence[str],
    digits: int,
    columns: Sequence[Column],
) -> Packs:
    """All that is packed of these tables, with these columns."""
    names = [_ID, _PLACE, _BUCKET, *(column.name for column in columns)]
    known = remembered.known(tables, digits, names)
    asked = {"digits": digits, "known": "\n".join(known)}
    asked |= {"tables": "\n".join(tables), "names": "\n".join(names)}
    parts: dict[str, dict[str, pa.Array]] = {}
    through: dict[str, int] = {}
    for table, name, pack, last, *told in cursor.execute(_FOUND, asked).fetchall():
        through[table] = last
        if pack in known:
            parts[table] = known[pack]
        else:
            part = parts.setdefault(table, {})[name] = _read(name, *told)
            remembered.remember(table, digits, name, pack, part)
    return Packs(_together([parts[table] for table in sorted(parts)], columns), through)


def _together(packs: Sequence[Mapping[str, pa.Array]], columns: Sequence[Column]) -> pa.Table:
    """A column that a pack lacks was added when its buckets were over: none of them has a value."""
    ids = [pa.DictionaryArray.from_arrays(part[_PLACE], part[_ID]) for part in packs]
    found = {_ID: pa.chunked_array(ids, pa.dictionary(pa.int32(), pa.string()))}
    found[_BUCKET] = pa.chunked_array([part[_BUCKET] for part in packs], pa.int64())
    for column in columns:
        of_type = pa.float64() if column.type == "double precision" else pa.int64()
        arrays = (part.get(column.name, pa.nulls(len(part[_BUCKET]), of_type)) for part in packs)
        found[column.name] = pa.chunked_array(list(arrays), of_type)
    return pa.table(found)
