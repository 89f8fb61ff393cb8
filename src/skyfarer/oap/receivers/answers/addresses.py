"""Network addresses of v2 agents, and whose they turn out to be.

An address takes three steps, each when the one before has an id: the address, a service that stands
for it as long as nobody knows whose it is, and that service's one instance. It is answered when all
three have theirs. A mapping is kept in the row of the service that stands for the address.
"""

from __future__ import annotations

from skyfarer.base.clock import Clock
from skyfarer.oap.core.inventory import Inventory, InventoryScope, row_id
from skyfarer.oap.receivers.answers.creating import bare, ids, new
from skyfarer.oap.receivers.answers.names import Names
from skyfarer.oap.receivers.answers.naming import NameLengths
from skyfarer.oap.receivers.answers.outcome import Outcome, decoded
from skyfarer.oap.receivers.answers.registering import NAMES_MAX, pairs
from skyfarer.wire.messages import v2_register


class Addresses:
    """Its methods `register` and `map` are handlers."""

    def __init__(self, names: Names, lengths: NameLengths, clock: Clock) -> None:
        self._names = names
        self._length_max = lengths.service
        self._clock = clock

    def register(self, request: bytes) -> Outcome:
        asked = set(decoded(v2_register.NetAddresses(), request).addresses[:NAMES_MAX])
        cut = {name: name[: self._length_max] for name in asked if name}
        now_ms = self._clock.now_ms()
        addresses, first = ids(
            self._names,
            {
                name: new(InventoryScope.NETWORK_ADDRESS, now_ms, name=short)
                for name, short in cut.items()
            },
        )
        services, second = ids(
            self._names,
            {name: _service(cut[name], number, now_ms) for name, number in addresses.items()},
        )
        instances, third = ids(
            self._names,
            {
                name: _instance(cut[name], addresses[name], service_id, now_ms)
                for name, service_id in services.items()
            },
        )
        known = {name: addresses[name] for name in instances}
        answer = v2_register.NetAddressMapping(addressIds=pairs(known))
        keep = (*first, *second, *third)
        return Outcome(answer.SerializeToString(), keep, len(known) == len(asked))

    def map(self, request: bytes) -> Outcome:
        """Never incomplete: what cannot be resolved yet is told again with a later request."""
        mappings = decoded(v2_register.ServiceAndNetworkAddressMappings(), request).mappings
        told = mappings[:NAMES_MAX]
        owners = self._owners(told)
        stand_ins = self._stand_ins(told)
        now_ms = self._clock.now_ms()
        keep = [
            bare(stand_in, mapping_service_id=owner, mapping_time=now_ms)
            for owner, stand_in in zip(owners, stand_ins, strict=True)
            if owner
            and stand_in is not None
            and stand_in.mapping_service_id != owner
            and self._names.claim((stand_in.sequence, "mapping", owner))
        ]
        return Outcome(keep=tuple(keep))

    def _owners(self, told: list[v2_register.ServiceAndNetworkAddressMapping]) -> list[int]:
        """The id of each mapping's service, told or that of its instance; 0 if there is none."""
        instances = self._names.find_by_id(
            InventoryScope.SERVICE_INSTANCE,
            (one.serviceInstanceId for one in told if not one.serviceId),
        )
        numbers = [
            one.serviceId
            or (
                instances[one.serviceInstanceId].service_id
                if one.serviceInstanceId in instances
                else 0
            )
            for one in told
        ]
        existing = self._names.find_by_id(InventoryScope.SERVICE, numbers)
        return [number if number in existing else 0 for number in numbers]

    def _stand_ins(
        self, told: list[v2_register.ServiceAndNetworkAddressMapping]
    ) -> list[Inventory | None]:
        """The service that stands for each mapping's address, as storage has it now."""
        cut = [one.networkAddress[: self._length_max] for one in told]
        addresses = self._names.find(
            InventoryScope.NETWORK_ADDRESS,
            (
                name
                for one, name in zip(told, cut, strict=True)
                if name and not one.networkAddressId
            ),
        )
        numbers = [
            one.networkAddressId or (addresses[name].sequence if name in addresses else 0)
            for one, name in zip(told, cut, strict=True)
        ]
        rows = {number: row_id(_service("", number, 0)) for number in numbers if number}
        services = self._names.read(InventoryScope.SERVICE, list(rows.values()))
        return [services.get(rows.get(number, "")) for number in numbers]


def _service(name: str, address_id: int, at_ms: int) -> Inventory:
    return new(InventoryScope.SERVICE, at_ms, name=name, is_address=True, address_id=address_id)


def _instance(name: str, address_id: int, service_id: int, at_ms: int) -> Inventory:
    return new(
        InventoryScope.SERVICE_INSTANCE,
        at_ms,
        name=name,
        service_id=service_id,
        is_address=True,
        address_id=address_id,
    )
