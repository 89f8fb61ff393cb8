"""Segments as an agent of v2 sends them: names that it has registered are ids.

Every second of the names that may stand in a message does so, the others are exchanged; either way
the same is meant. Written from the protocol, in the direction that the pipeline does not go.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import count

from skyfarer.oap.core.inventory import Inventory, InventoryScope
from skyfarer.wire.messages import SegmentObject, SegmentReference, SpanObject
from skyfarer.wire.messages import v2_trace as v2

NAMELESS = "{domain}"
"""How an entry span without an operation is called, once it is registered."""
FIRST_ID = 2


class Registry:
    """Reads as `core.inventory.InventoryReader` does, by ids alone."""

    def __init__(self) -> None:
        self._known: dict[tuple[InventoryScope, str, int], Inventory] = {}
        self._ids = count(FIRST_ID)
        self._turns = count()

    def inventories(self, scope: InventoryScope, row_ids: Sequence[str]) -> Mapping[str, Inventory]:
        raise NotImplementedError(scope, row_ids)

    def inventories_by_id(
        self, scope: InventoryScope, sequences: Sequence[int]
    ) -> Mapping[int, Inventory]:
        of_scope = (one for one in self._known.values() if one.scope is scope)
        return {one.sequence: one for one in of_scope if one.sequence in sequences}

    def upstream(self, one: SegmentObject) -> v2.UpstreamSegment:
        service = self._id(InventoryScope.SERVICE, one.service)
        instance = self._id(InventoryScope.SERVICE_INSTANCE, one.serviceInstance, service)
        inner = v2.SegmentObject(
            traceSegmentId=_parts(one.traceSegmentId),
            spans=[self._span(span, service) for span in one.spans],
            serviceId=service,
            serviceInstanceId=instance,
        )
        traces = [_parts(one.traceId)]
        return v2.UpstreamSegment(globalTraceIds=traces, segment=inner.SerializeToString())

    def _span(self, span: SpanObject, service: int) -> v2.SpanObjectV2:
        made = v2.SpanObjectV2(
            spanId=span.spanId,
            parentSpanId=span.parentSpanId,
            startTime=span.startTime,
            endTime=span.endTime,
            refs=[self._ref(ref) for ref in span.refs],
            spanType=int(span.spanType),  # type: ignore[arg-type]
            spanLayer=int(span.spanLayer),  # type: ignore[arg-type]
            componentId=span.componentId,
            isError=span.isError,
        )
        for tag in span.tags:
            made.tags.add(key=tag.key, value=tag.value)
        if span.operationName != NAMELESS:
            self._tell(made, "operationName", InventoryScope.ENDPOINT, span.operationName, service)
        self._tell(made, "peer", InventoryScope.NETWORK_ADDRESS, span.peer)
        return made

    def _ref(self, ref: SegmentReference) -> v2.SegmentReference:
        service = self._id(InventoryScope.SERVICE, ref.parentService)
        made = v2.SegmentReference(
            refType=int(ref.refType),  # type: ignore[arg-type]
            parentServiceInstanceId=self._id(
                InventoryScope.SERVICE_INSTANCE, ref.parentServiceInstance, service
            ),
        )
        endpoint, address = InventoryScope.ENDPOINT, InventoryScope.NETWORK_ADDRESS
        self._tell(made, "parentEndpoint", endpoint, ref.parentEndpoint, service)
        self._tell(made, "networkAddress", address, ref.networkAddressUsedAtPeer)
        return made

    def _tell(
        self,
        made: v2.SpanObjectV2 | v2.SegmentReference,
        field: str,
        scope: InventoryScope,
        name: str,
        service: int = 0,
    ) -> None:
        if name and next(self._turns) % 2:
            setattr(made, field, name)
        elif name:
            setattr(made, f"{field}Id", self._id(scope, name, service))

    def _id(self, scope: InventoryScope, name: str, service: int = 0) -> int:
        key = scope, name, service
        if key not in self._known:
            number = next(self._ids)
            self._known[key] = Inventory(scope, name, service_id=service, sequence=number)
        return self._known[key].sequence


def _parts(identifier: str) -> v2.UniqueId:
    return v2.UniqueId(idParts=[int(part) for part in identifier.split(".")])
