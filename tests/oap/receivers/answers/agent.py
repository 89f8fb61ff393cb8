"""The handlers over a shelf: what is kept goes into it when the test says so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

from google.protobuf.message import Message

from oap.receivers.answers.shelf import Shelf
from oap.receivers.no_tasks import NothingConfigured
from skyfarer.oap.core.inventory import Inventory
from skyfarer.oap.core.tasks import AgentCommand, TaskQuery
from skyfarer.oap.receivers.answers.desk import Desk
from skyfarer.oap.receivers.answers.naming import NameLengths
from skyfarer.oap.receivers.answers.outcome import Outcome
from skyfarer.testing.clock import HandClock
from skyfarer.wire.messages import v2_register

M = TypeVar("M", bound=Message)

NOW_MS = 1_700_000_000_000


class Told:
    """A `TaskReader` that has the same for everybody, and remembers who asked."""

    def __init__(self, *commands: AgentCommand) -> None:
        self._commands = commands
        self.queries: list[TaskQuery] = []

    def commands(self, query: TaskQuery) -> Sequence[AgentCommand]:
        self.queries.append(query)
        return self._commands


class Agent:
    def __init__(self, lengths: NameLengths | None = None) -> None:
        self.clock = HandClock(NOW_MS)
        self.shelf = Shelf()
        self.desk = Desk(self.shelf, NothingConfigured(), lengths or NameLengths(), self.clock)

    def ask(self, path: str, request: Message) -> Outcome:
        return self.desk.handlers[path](request.SerializeToString())

    def store(self, kept: Sequence[Inventory]) -> None:
        self.shelf.store(*kept)
        self.desk.changed()

    def settle(self, path: str, request: Message, answer: M) -> M:
        """As an agent does: asks until all is there. What is kept is stored at once."""
        for _ in range(5):
            outcome = self.ask(path, request)
            self.store(outcome.keep)
            if outcome.complete and not outcome.keep:
                answer.ParseFromString(outcome.payload)
                return answer
        raise AssertionError(f"{path}: not complete after five rounds")

    def service(self, name: str) -> int:
        request = v2_register.Services(services=[v2_register.Service(serviceName=name)])
        answer = v2_register.ServiceRegisterMapping()
        return pairs(self.settle("/Register/doServiceRegister", request, answer).services)[name]

    def instance(self, service_id: int, uuid: str, **properties: str) -> int:
        told = [v2_register.KeyStringValuePair(key=k, value=v) for k, v in properties.items()]
        one = v2_register.ServiceInstance(
            serviceId=service_id, instanceUUID=uuid, time=NOW_MS - 5, properties=told
        )
        request = v2_register.ServiceInstances(instances=[one])
        answer = v2_register.ServiceInstanceRegisterMapping()
        path = "/Register/doServiceInstanceRegister"
        return pairs(self.settle(path, request, answer).serviceInstances)[uuid]

    def address(self, name: str) -> int:
        request = v2_register.NetAddresses(addresses=[name])
        answer = v2_register.NetAddressMapping()
        path = "/Register/doNetworkAddressRegister"
        return pairs(self.settle(path, request, answer).addressIds)[name]


def pairs(elements: Sequence[v2_register.KeyIntValuePair]) -> Mapping[str, int]:
    return {one.key: one.value for one in elements}
