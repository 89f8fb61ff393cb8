"""A hundred thousand services that nobody has, from one mad agent; the others must not notice."""

from __future__ import annotations

import time
from collections.abc import Iterator

import grpc
import psutil
import pytest

from skyfarer.base.units import MIB
from skyfarer.oap.core.storage import METADATA_ROWS_MAX
from skyfarer.testing.programs import Oap, ledger_since
from skyfarer.testing.traces import segment

pytestmark = pytest.mark.e2e

COLLECT = "/skywalking.v3.TraceSegmentReportService/collect"
NAMES = 100_000
A_CALL = 5_000
FIND = "query ($name: String!) { findService(serviceName: $name) { name } }"
GROWTH_BYTES_MAX = 1536 * MIB
"""Of receiver, driver and storage together. A batch that names nothing twice is the widest there
is, six rows a segment, and as long as the longest batch; DuckDB alone may take 1 GB, its setting.
"""


def mad_name(number: int) -> str:
    return f"mad-{number}-\N{SNOWMAN}'\"\x00<script>"


def mad(first: int, now_ms: int) -> Iterator[bytes]:
    for number in range(first, first + A_CALL):
        name = mad_name(number)
        yield segment(name, f"{name}-1", f"/{number}", now_ms, 1).SerializeToString()


def resident(oap: Oap) -> int:
    """Of the OAP's own processes; the JVM's heap has its bound on the command line."""
    family = [psutil.Process(oap.pid), *psutil.Process(oap.pid).children()]
    return sum(one.memory_info().rss for one in family if "java" not in one.name())


def test_a_hundred_thousand_names_are_stored_in_bounded_memory_beside_a_good_client(
    oap_to_fill: Oap,
) -> None:
    oap, now_ms = oap_to_fill, int(time.time() * 1000)
    books, before = oap.ledger(), resident(oap)
    with grpc.insecure_channel(f"127.0.0.1:{oap.grpc_port}") as channel:
        collect = channel.stream_unary(COLLECT)
        for first in range(0, NAMES, A_CALL):
            collect(mad(first, now_ms), timeout=600)
            good = segment("sane", "sane-1", "/buy", now_ms, 7, segment_id=f"sane-{first}")
            collect(iter([good.SerializeToString()]), timeout=120)
    calls = NAMES // A_CALL
    oap.await_applied(books["accepted"] + NAMES + calls, timeout_s=900.0)
    gained = ledger_since(books, oap.ledger())
    assert gained == {"accepted": NAMES + calls, "delivered": NAMES + calls, "dropped": {}}
    assert resident(oap) - before < GROWTH_BYTES_MAX
    listed = oap.graphql('{ listServices(layer: "GENERAL") { name } }')["listServices"]
    assert len(listed) == METADATA_ROWS_MAX
    for name in ("sane", *(mad_name(number) for number in range(0, NAMES, NAMES // 50))):
        found = oap.graphql(FIND, name=name)
        assert found["findService"] == {"name": name}
