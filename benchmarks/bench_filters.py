"""What filters cost a record, beside the decoding alone.

One JSON line per figure on standard output, microseconds of CPU per record on standard error. The
records are segments of 7.5 KB in batches of a megabyte, as the satellite's design document counts
them. A ratio is taken against what protobuf itself takes in the same run to decode such a segment,
and to encode it again where the filter must. The best of many rounds counts: a shared machine only
ever adds.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

from figures import figure
from skyfarer.base.clock import SystemClock
from skyfarer.base.units import MIB
from skyfarer.satellite.contracts import Batch, Filter, Processed
from skyfarer.satellite.processors.chain import Chain
from skyfarer.satellite.processors.dropper import DropConfig, Dropper, DropperConfig
from skyfarer.satellite.processors.redactor import RedactionConfig, Redactor, RedactorConfig
from skyfarer.satellite.processors.sampler import Sampler, SamplerConfig
from skyfarer.satellite.processors.tag_editor import TagEditor, TagEditorConfig
from skyfarer.telemetry.metrics import Registry
from skyfarer.testing.traces import Exit, segment
from skyfarer.wire.messages import SegmentObject
from skyfarer.wire.rpc import Kind

RATE = 1043  # records a second, of the design document
RECORD_BYTES = 7500
ROUNDS = 60


def main() -> None:
    batch = megabyte()
    decode = best(lambda: [SegmentObject.FromString(one) for one in batch.payloads], batch)
    recode = best(lambda: [recoded(one) for one in batch.payloads], batch)
    told("protobuf decodes", decode)
    told("protobuf decodes and encodes", recode)
    by_kind = Dropper(DropperConfig((DropConfig(kind=("log",)),)))
    for name, one in (("none", ()), ("dropper_of_another_kind", (by_kind,))):
        cost = chain_cost(one, batch)
        told(name, cost)
        figure(f"filters_{name}_us_per_record", cost, "us", at_most=0.1)
    for name, one, limit, cores in looking_filters(decode, recode):
        cost = chain_cost((one,), batch)
        told(name, cost)
        figure(f"filters_{name}_to_protobuf", cost / limit, "ratio")
        figure(f"filters_{name}_at_1043_per_s", cost * RATE / 1e6, "cores", at_most=cores)


def looking_filters(decode: float, recode: float) -> Iterator[tuple[str, Filter, float, float]]:
    """Name, filter, what protobuf does for it, and the part of a core it may take."""
    by_id = SamplerConfig(rate=0.5, keep_errors=False, keep_slow="0")
    yield "sampler_by_id", Sampler(by_id), decode, 0.01
    yield "sampler", Sampler(SamplerConfig(rate=0.0)), decode, 0.05
    by_endpoint = DropConfig(endpoint=("/health*",))
    yield "dropper_by_endpoint", Dropper(DropperConfig((by_endpoint,))), decode, 0.05
    tags = TagEditorConfig(set={"env": "prod"}, remove=("secret*",))
    yield "tag_editor", TagEditor(tags), recode, 0.15
    # Nothing like a token is in the bytes of these segments; digits are, in their trace ids.
    for name, pattern in (("tokens", r"Bearer [\w.-]+"), ("cards", r"\b[0-9]{16}\b")):
        redactor = Redactor(RedactorConfig((RedactionConfig(pattern),)))
        yield f"redactor_of_{name}", redactor, decode, 0.15


def megabyte() -> Batch:
    calls = [
        Exit(f"HTTP/GET/{n}", "pay:8080", n, 1, tags={f"tag.{k}": "x" * 62 for k in range(7)})
        for n in range(13)
    ]
    one = segment("order", "order-1", "GET:/orders", 1_700_000_000_000, 50, exits=calls)
    payloads = []
    for number in range(MIB // RECORD_BYTES):
        one.traceId = f"{number:032x}.1.17000000000000000"
        payloads.append(one.SerializeToString())
    size = sum(map(len, payloads)) / len(payloads)
    print(f"{len(payloads)} segments of {size:.0f} bytes", file=sys.stderr)
    return Batch(0, Kind.SEGMENT, tuple(map(memoryview, payloads)))


def recoded(payload: Any) -> bytes:
    """As a filter that changes something makes it, so that nothing of the input is left in it."""
    message = SegmentObject.FromString(payload)
    message.isSizeLimited = True
    return message.SerializeToString()


def chain_cost(filters: tuple[Filter, ...], batch: Batch) -> float:
    named = [(f"f{number}", one) for number, one in enumerate(filters)]
    chain = Chain("bench", named, SystemClock(), Registry())
    return best(lambda: finished(chain.process(batch)), batch)


def finished(processing: Coroutine[Any, Any, Processed]) -> Processed:
    """Without an event loop, whose own cost is another benchmark's."""
    while True:
        try:
            processing.send(None)
        except StopIteration as end:
            done: Processed = end.value
            return done


def best(work: Callable[[], object], batch: Batch) -> float:
    """Microseconds of CPU per record."""
    shortest = float("inf")
    for _ in range(ROUNDS):
        began = time.process_time()
        work()
        shortest = min(shortest, time.process_time() - began)
    return shortest * 1e6 / len(batch.payloads)


def told(what: str, cost_us: float) -> None:
    print(f"{what}: {cost_us:.2f} us per record", file=sys.stderr)


if __name__ == "__main__":
    main()
