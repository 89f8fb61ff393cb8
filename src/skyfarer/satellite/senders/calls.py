"""Cutting a batch into the calls that carry it.

    most streams       one call with all the messages
    unary              one call for each message
    `Rpc.call_key`     one call for each value of those fields: a server takes them from the first
                       message of a call for all of it, and logs would change their service
    single meters      packed into collections of one service, instance and time, as a server
                       takes what one message or stream carries for the samples of one moment

Meters are sticky: `Piece.key` is what must reach the same upstream always, because increases are
reckoned there, between this sample and the one before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from skyfarer.base.errors import PermanentError
from skyfarer.base.units import KIB
from skyfarer.satellite.contracts import Batch
from skyfarer.satellite.senders import fields
from skyfarer.satellite.senders.numbering import LISTED_RECORDS_MAX, Indexes
from skyfarer.wire.rpc import FORWARD, Kind, Rpc, Streaming

# Rpc.routing_key → where that field stands, by number.
ROUTING_FIELDS = {
    "serviceInstance": (4,),
    "meterData.serviceInstance": (1, 4),
}
# OTLP names no field for this: the first resource, all of it, stands for the origin.
_OTLP_RESOURCE = (1, 1)
_COLLECTED = 1  # MeterDataCollection.meterData
COLLECTION_BYTES_MAX = 256 * KIB

Payloads = Sequence[bytes | memoryview]


@dataclass(frozen=True, slots=True)
class Piece:
    """Messages that go into one call; message i is made of the batch's payloads `indexes[i]`.

    Without `indexes` it is the batch as it stands. Pieces with a key may be `joined` if they go to
    the same upstream.
    """

    rpc: Rpc
    messages: Payloads
    indexes: Sequence[Indexes] | None = None
    key: bytes | None = None


def rpc_of(kind: int) -> Rpc:
    """The call that carries such records. PermanentError if there is none."""
    rpc = FORWARD.get(Kind.METER_COLLECTION if kind == Kind.METER else kind)
    if rpc is None:
        raise PermanentError(f"no RPC carries records of kind {kind}")
    return rpc


def pieces(batch: Batch, left: Sequence[int], sticky: bool) -> list[Piece]:
    """`left` are the payloads to send; `sticky` if it matters to which upstream they go."""
    rpc, payloads = rpc_of(batch.kind), batch.payloads
    if batch.kind == Kind.METER:
        made = [
            Piece(rpc, [message], [indexes], key)
            for key, message, indexes in collections(batch, left)
        ]
        return made if sticky else joined(made)
    path = _route(rpc) if sticky else None
    if path is not None:
        return [
            Piece(rpc, [payloads[index]], [(index,)], fields.first(payloads[index], path))
            for index in left
        ]
    if rpc.streaming is Streaming.UNARY:
        return [Piece(rpc, [payloads[index]], [(index,)]) for index in left]
    groups = _grouped(batch, left, rpc.call_key) if rpc.call_key else [left]
    return [piece for group in groups for piece in _cut(rpc, batch, group)]


def _route(rpc: Rpc) -> tuple[int, ...] | None:
    if rpc.kind is Kind.OTLP_METRICS:
        return _OTLP_RESOURCE
    return ROUTING_FIELDS[rpc.routing_key] if rpc.routing_key is not None else None


def joined(made: Sequence[Piece]) -> list[Piece]:
    """As few calls as their metadata can list the records of. Of streams only."""
    calls: list[Piece] = []
    messages: list[bytes | memoryview] = []
    indexes: list[Indexes] = []
    records = 0
    for piece in made:
        listed = piece.indexes or ()
        count = sum(map(len, listed))
        if messages and records + count > LISTED_RECORDS_MAX:
            calls.append(Piece(piece.rpc, messages, indexes))
            messages, indexes, records = [], [], 0
        messages += piece.messages
        indexes += listed
        records += count
    return [*calls, Piece(made[0].rpc, messages, indexes)] if made else []


def collections(batch: Batch, left: Sequence[int]) -> list[tuple[bytes, bytes, Indexes]]:
    """(instance, MeterDataCollection, payloads in it) for each service, instance and time."""
    identity = FORWARD[Kind.METER].identity
    made: list[tuple[bytes, bytes, Indexes]] = []
    for group in _grouped(batch, left, identity):
        key = fields.first(batch.payloads[group[0]], ROUTING_FIELDS["serviceInstance"])
        taken: list[int] = []
        size = 0
        for index in group:
            over = size + len(batch.payloads[index]) > COLLECTION_BYTES_MAX
            if taken and (over or len(taken) == LISTED_RECORDS_MAX):
                made.append((key, _collection(batch, taken), taken))
                taken, size = [], 0
            taken.append(index)
            size += len(batch.payloads[index])
        made.append((key, _collection(batch, taken), taken))
    return made


def _collection(batch: Batch, indexes: Sequence[int]) -> bytes:
    out: list[bytes | memoryview] = []
    for index in indexes:
        payload = batch.payloads[index]
        out += (fields.length_delimited(_COLLECTED, len(payload)), payload)
    return b"".join(out)


def _grouped(batch: Batch, left: Sequence[int], numbers: tuple[int, ...]) -> list[list[int]]:
    groups: dict[bytes, list[int]] = {}
    for index in left:
        groups.setdefault(fields.common(batch.payloads[index], numbers), []).append(index)
    return list(groups.values())


def _cut(rpc: Rpc, batch: Batch, indexes: Sequence[int]) -> list[Piece]:
    if len(indexes) == len(batch.payloads) and len(batch.kept) <= LISTED_RECORDS_MAX:
        return [Piece(rpc, batch.payloads)]
    starts = range(0, len(indexes), LISTED_RECORDS_MAX)
    return [_part(rpc, batch, indexes[start : start + LISTED_RECORDS_MAX]) for start in starts]


def _part(rpc: Rpc, batch: Batch, indexes: Sequence[int]) -> Piece:
    messages = [batch.payloads[index] for index in indexes]
    return Piece(rpc, messages, [(index,) for index in indexes])
