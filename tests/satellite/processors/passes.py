"""Records through filters, as a sender sends them through."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from skyfarer.base.binding import bind
from skyfarer.satellite.contracts import Batch, Filter, Processed
from skyfarer.satellite.processors.chain import Chain
from skyfarer.telemetry.metrics import Registry
from skyfarer.testing.clock import HandClock


def made(constructor: Any, **values: object) -> Filter:
    """The filter as a configuration file would make it: numbers arrive as text."""
    written = {key: _as_written(value) for key, value in values.items()}
    filter_: Filter = constructor(bind(constructor.config_type, written, "test.yaml: filters[0]"))
    return filter_


def _as_written(value: object) -> object:
    if isinstance(value, Mapping):
        return {key: _as_written(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_as_written(one) for one in value]
    return str(value).lower() if isinstance(value, bool) else str(value)


class Pass:
    """A chain with a clock that stands still until it is moved."""

    def __init__(self, *filters: Filter, names: Sequence[str] = ()) -> None:
        self.clock = HandClock()
        self.registry = Registry()
        named = names or [f"f{number}" for number in range(len(filters))]
        self.chain = Chain("p", list(zip(named, filters, strict=True)), self.clock, self.registry)

    def of(self, kind: int, payloads: Sequence[bytes], first: int = 0) -> Processed:
        return asyncio.run(self.chain.process(Batch(first, kind, tuple(payloads))))

    def payloads(self, kind: int, messages: Sequence[Any]) -> list[bytes]:
        """What is left of these messages, all batches together."""
        done = self.of(kind, [message.SerializeToString() for message in messages])
        return [bytes(one) for batch in done.outgoing for one in batch.payloads]

    def one(self, kind: int, message: Any) -> Any:
        """The message as it comes out."""
        (payload,) = self.payloads(kind, [message])
        return type(message).FromString(payload)
