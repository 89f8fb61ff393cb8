"""What the tables of every storage look like once it holds a row of everything.

Files and databases of users have these tables: a golden text for each provider says what they are,
and a change of it is one of the schema. A provider's test file subclasses, gives `storage`,
`catalog` (a line a column, key or index), which it reads from the database itself, and `again`,
which stops the storage and starts it with or without `install`.
"""

from __future__ import annotations

from difflib import unified_diff
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pytest

from contracts import event_contract, log_contract, slow_contract
from contracts.metrics_contract import TYPES, address, called, only
from contracts.storage_contract import MINUTE, batch, delta, deltas_of, records, segment
from skyfarer.base.errors import RetryableError
from skyfarer.oap.core.entities import ADDRESS_ALIAS
from skyfarer.oap.core.slow import Slow
from skyfarer.oap.core.storage import Analysed, Merge

GOLDEN = Path(__file__).parents[1] / "golden" / "catalog"
DAY, FOREIGN = "20261115", "20261101"
LATER = (
    (f"segment_{DAY}", "kind"),
    (f"log_{DAY}", "span_id"),
    ("instance_traffic", "properties"),
    ("ui_template", "number"),
)
"""As if these had been declared only now."""
RELATIONS = ("ServiceRelation", "ServiceInstanceRelation", "EndpointRelation")
SIDES = ("SERVER", "CLIENT")
MERGES = {"total": Merge.SUM, "slowest": Merge.MAX, "buckets": Merge.SUM, "ratio": Merge.SUM}


def everything() -> Analysed:
    """A row, at least, for each table that there is of a day."""
    seen = deltas_of([called(detect_point=side) for side in SIDES], {})
    row = delta(MINUTE, total=1, slowest=1, buckets={"a": 1}, ratio=0.5)
    wide = deltas_of([row], MERGES, {name: TYPES[name] for name in MERGES if name in TYPES})
    told = [slow_contract.slow(what.name, 900, what=what.name) for what in Slow]
    event = event_contract.event("e") | {"sequence": 0, "parameters": []}
    return batch(
        *(0, 2, [segment("stored", tags=["k=v"])]),
        metrics={
            "Service": wide,
            "MQEndpointAccess": wide,
            **dict.fromkeys(RELATIONS, seen),
            **only(ADDRESS_ALIAS, address(MINUTE, "1.2.3.4:80", "bank", "bank-1")),
        },
        unsampled=pa.table({"segment_id": ["unsampled"], "minute": [MINUTE]}),
        slow=pa.Table.from_pylist(told, schema=slow_contract.SLOW),
        logs=log_contract.told(0, [log_contract.log("text", tags=["level=INFO"])]),
        events=pa.Table.from_pylist([event], schema=event_contract.EVENTS),
        records=records((1, 40, MINUTE, b"kept")),
    )


class CatalogContract:
    golden: ClassVar[str]

    def test_tables_columns_keys_and_indexes_are_those_that_users_have(
        self, storage: Any, catalog: Any
    ) -> None:
        storage.apply(everything())
        found = [line.replace(DAY, "<day>") for line in catalog()]
        expected = (GOLDEN / self.golden).read_text().splitlines()
        changes = "\n".join(unified_diff(expected, found, self.golden, "found", n=0, lineterm=""))
        assert not changes, changes

    def test_columns_that_a_stream_has_got_since_are_added_to_what_is_there(
        self, storage: Any, catalog: Any, again: Any
    ) -> None:
        storage.apply(everything())
        there = catalog()
        with storage._transaction() as cursor:
            for index in ("trace", "trace_id"):  # with which DuckDB drops no column
                cursor.execute(f"DROP INDEX IF EXISTS segment_{DAY}_{index}")
            for table, column in LATER:
                cursor.execute(f"ALTER TABLE {table} DROP COLUMN {column}")
            cursor.execute(f"CREATE TABLE log_{FOREIGN} (id TEXT, {LATER[1][1]} INTEGER)")
        lines = [f"{table} column {column} " for table, column in LATER]
        assert not any(line.startswith(tuple(lines)) for line in catalog())
        with pytest.raises(RetryableError, match="has no column"):
            again(install=False)
        again(install=True)
        added = [line for line in catalog() if line.startswith(tuple(lines))]
        expected = [line for line in there if line.startswith(tuple(lines))]
        assert sorted(added) == sorted(line.removesuffix(" NOT NULL") for line in expected)
        assert len([line for line in catalog() if line.startswith(f"log_{FOREIGN} column")]) == 2
        storage.apply(batch(2, 3, [segment("later", tags=["k=v"])]))
        known = pa.chunked_array([["stored", "later"]]), pa.chunked_array([[MINUTE, MINUTE]])
        assert set(storage.known_segments(*known)) == {"stored", "later"}
