"""Which topic a record goes to, its key there, and its value.

The first rows are what an OAP's Kafka fetcher reads, with the keys that agents give them when they
write to Kafka themselves: a key picks the partition, and the fetcher tells a registration from a
heartbeat by nothing else. For the other kinds no topic of an OAP exists; they go to topics of our
own, named after the kind, for a consumer that knows them.

A value is the record as it came. Single meters are packed into collections, which is what the
topic holds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from skyfarer.base.errors import PermanentError
from skyfarer.satellite.contracts import Batch
from skyfarer.satellite.senders import fields
from skyfarer.satellite.senders.calls import collections
from skyfarer.satellite.senders.numbering import Indexes
from skyfarer.wire.rpc import Kind


@dataclass(frozen=True, slots=True)
class Topic:
    """`key` is a path of field numbers; without one any partition will do."""

    name: str
    key: tuple[int, ...] = ()
    key_prefix: bytes = b""
    read_by_oap: bool = True


@dataclass(frozen=True, slots=True)
class Value:
    """One record of Kafka, made of the batch's payloads `indexes`."""

    key: bytes | None
    value: bytes
    indexes: Indexes


TOPICS: Final = {
    Kind.SEGMENT: Topic("skywalking-segments", (2,)),  # traceSegmentId
    Kind.INSTANCE_PROPERTIES: Topic("skywalking-managements", (2,), b"register-"),
    Kind.INSTANCE_PING: Topic("skywalking-managements", (2,)),  # serviceInstance
    Kind.JVM_METRICS: Topic("skywalking-metrics", (3,)),  # serviceInstance
    Kind.METER: Topic("skywalking-meters", (4,)),  # serviceInstance
    Kind.METER_COLLECTION: Topic("skywalking-meters", (1, 4)),  # its first meter's
    Kind.LOG: Topic("skywalking-logs", (2,)),  # service
    Kind.PROFILE_SNAPSHOT: Topic("skywalking-profilings", (1,)),  # taskId
}
_OTHER_KEYS: Final = {
    Kind.CLR_METRICS: (3,),  # serviceInstance
    Kind.EVENT: (2, 2),  # source.serviceInstance
    Kind.PROFILE_GO: (1,),  # taskId: its pieces must stay in order
}


def topic_of(kind: int) -> Topic:
    """PermanentError for a number that is no kind."""
    try:
        known = Kind(kind)
    except ValueError:
        raise PermanentError(f"no topic holds records of kind {kind}") from None
    if known in TOPICS:
        return TOPICS[known]
    name = f"skyfarer-{known.name.lower().replace('_', '-')}"
    return Topic(name, _OTHER_KEYS.get(known, ()), read_by_oap=False)


def values(batch: Batch, left: Sequence[int]) -> Iterator[Value]:
    topic, payloads = topic_of(batch.kind), batch.payloads
    if batch.kind == Kind.METER:
        for instance, collection, indexes in collections(batch, left):
            yield Value(instance, collection, indexes)
        return
    for index in left:
        key = fields.first(payloads[index], topic.key) if topic.key else b""
        named = topic.key_prefix + key
        yield Value(named or None, bytes(payloads[index]), (index,))
