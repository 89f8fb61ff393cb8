"""Two hundred old agents that want ids at once, and remember every id that they are told."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import duckdb
import grpc

from satellite.faults.agents import RECONNECT
from skyfarer.testing.programs import Oap
from skyfarer.wire.messages import KeyIntValuePair, v2_register

CLIENTS = 200
CHANNELS = 20
SERVICES, INSTANCES, ADDRESSES = 10, 10, 5
"""Of each client: 5,000 names in all, and those that every client asks for."""
SHARED = [f"shared-{number}" for number in range(10)]
FIRST_ID = 2


class Registry:
    """The calls of an old agent, each answered with what has an id by then."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self._channel = channel

    async def services(self, names: Sequence[str]) -> dict[str, int]:
        request = v2_register.Services(
            services=[v2_register.Service(serviceName=name) for name in names]
        )
        answer = await self._ask(
            "doServiceRegister", request, v2_register.ServiceRegisterMapping.FromString
        )
        return _ids(answer.services)

    async def instances(self, service_id: int, uuids: Sequence[str]) -> dict[str, int]:
        request = v2_register.ServiceInstances(
            instances=[
                v2_register.ServiceInstance(serviceId=service_id, instanceUUID=uuid, time=1)
                for uuid in uuids
            ]
        )
        answer = await self._ask(
            "doServiceInstanceRegister",
            request,
            v2_register.ServiceInstanceRegisterMapping.FromString,
        )
        return _ids(answer.serviceInstances)

    async def addresses(self, addresses: Sequence[str]) -> dict[str, int]:
        request = v2_register.NetAddresses(addresses=addresses)
        answer = await self._ask(
            "doNetworkAddressRegister", request, v2_register.NetAddressMapping.FromString
        )
        return _ids(answer.addressIds)

    async def _ask(self, method: str, request: Any, parse: Callable[[bytes], Any]) -> Any:
        call = self._channel.unary_unary(f"/Register/{method}", response_deserializer=parse)
        return await call(request.SerializeToString(), timeout=10)


def _ids(pairs: Sequence[KeyIntValuePair]) -> dict[str, int]:
    return {pair.key: pair.value for pair in pairs}


class Fire:
    """Every id that any client was told, and who told it."""

    def __init__(self, port: int) -> None:
        self._port = port
        self.services: dict[str, set[int]] = {}
        self.instances: dict[tuple[int, str], set[int]] = {}
        self.addresses: dict[str, set[int]] = {}
        self.told = 0
        self.failed_calls = 0

    async def burn(self) -> None:
        """All clients at once, until each has what it asked for."""
        # Each its own connection: grpcio would make one of channels that look alike.
        channels = [
            grpc.aio.insecure_channel(
                f"127.0.0.1:{self._port}", options=[("fire", number), *RECONNECT]
            )
            for number in range(CHANNELS)
        ]
        registries = [Registry(channel) for channel in channels]
        await asyncio.gather(
            *(self._client(number, registries[number % CHANNELS]) for number in range(CLIENTS))
        )
        for channel in channels:
            await channel.close()

    async def _client(self, number: int, registry: Registry) -> None:
        mine = [f"service-{number}-{n}" for n in range(SERVICES)]
        told = await self.insist(registry.services, [*mine, *SHARED])
        for name, service_id in told.items():
            self.services.setdefault(name, set()).add(service_id)
        home, common = told[mine[0]], told[SHARED[0]]
        for service_id, uuids in (
            (home, [f"uuid-{number}-{n}" for n in range(INSTANCES)]),
            (common, SHARED),
        ):
            got = await self.insist(
                lambda left, service_id=service_id: registry.instances(service_id, left), uuids
            )
            for uuid, instance_id in got.items():
                self.instances.setdefault((service_id, uuid), set()).add(instance_id)
        addresses = [f"10.0.{number}.{n}:80" for n in range(ADDRESSES)]
        got = await self.insist(registry.addresses, [*addresses, *SHARED])
        for address, address_id in got.items():
            self.addresses.setdefault(address, set()).add(address_id)

    async def insist(self, ask: Callable[[list[str]], Any], names: list[str]) -> dict[str, int]:
        """As an agent does: what has no id yet is asked again, whatever went wrong."""
        told: dict[str, int] = {}
        while left := [name for name in names if name not in told]:
            try:
                answer = await ask(left)
                told |= {name: one for name, one in answer.items() if one}
                self.told += len(answer)
            except grpc.aio.AioRpcError:
                self.failed_calls += 1
                await asyncio.sleep(0.5)
        return told

    def prove(self, oap: Oap) -> None:
        """That every name has one id, and no id two names; of an OAP that has ended."""
        assert self.failed_calls > 0, "no kill hit anybody"
        assert len(self.services) == CLIENTS * SERVICES + len(SHARED)
        assert len(self.instances) == CLIENTS * INSTANCES + len(SHARED)
        assert len(self.addresses) == CLIENTS * ADDRESSES + len(SHARED)
        for told in (self.services, self.instances, self.addresses):
            assert [name for name, ids in told.items() if len(ids) != 1] == []
            ids = Counter(one for some in told.values() for one in some)
            assert [one for one, times in ids.items() if times > 1] == []
            assert min(ids) >= FIRST_ID
        stored = inventories(oap)
        addresses = {name: one for name, (one,) in self.addresses.items()}
        assert stored["network_address_inventory"] == addresses
        services = stored["service_inventory"]
        assert {name: services[name] for name in self.services} == {
            name: one for name, (one,) in self.services.items()
        }
        for table in stored.values():
            assert min(table.values()) == FIRST_ID
            assert len(set(table.values())) == len(table)


def inventories(oap: Oap) -> Mapping[str, dict[str, int]]:
    """Name → id as it is stored; an address is known as a service, too, under another row."""
    names = {
        "service_inventory": "CASE WHEN is_address THEN 'address ' || address_id ELSE name END",
        "network_address_inventory": "name",
    }
    with duckdb.connect(str(oap.data / "storage" / "skyfarer.duckdb"), read_only=True) as stored:
        return {
            table: dict(stored.execute(f"SELECT {name}, sequence FROM {table}").fetchall())
            for table, name in names.items()
        }
