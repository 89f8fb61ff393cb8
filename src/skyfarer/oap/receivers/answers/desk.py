"""Which call has which handler: every row of the RPC table whose answer depends on its question."""

from __future__ import annotations

from collections.abc import Mapping

from skyfarer.base.clock import Clock
from skyfarer.oap.core.inventory import InventoryReader
from skyfarer.oap.core.tasks import TaskKind, TaskReader
from skyfarer.oap.receivers.answers import commands
from skyfarer.oap.receivers.answers.addresses import Addresses
from skyfarer.oap.receivers.answers.commands import handler
from skyfarer.oap.receivers.answers.names import Names
from skyfarer.oap.receivers.answers.naming import NameLengths
from skyfarer.oap.receivers.answers.outcome import Handler
from skyfarer.oap.receivers.answers.pings import Pings
from skyfarer.oap.receivers.answers.registering import Registering


class Desk:
    """`handlers` by path, and the names they share. Any thread; blocks as storage does."""

    def __init__(
        self, storage: InventoryReader, tasks: TaskReader, lengths: NameLengths, clock: Clock
    ) -> None:
        self._names = Names(storage, clock)
        self.handlers = _table(self._names, tasks, lengths, clock)

    def changed(self) -> None:
        self._names.changed()

    def forget(self) -> None:
        self._names.forget()


def _table(
    names: Names, tasks: TaskReader, lengths: NameLengths, clock: Clock
) -> Mapping[str, Handler]:
    registering, addresses = Registering(names, lengths, clock), Addresses(names, lengths, clock)
    profiles = handler(commands.profile_query, tasks)
    ebpf = commands.undescribed_query(TaskKind.EBPF_PROFILING)
    continuous = commands.undescribed_query(TaskKind.CONTINUOUS_PROFILING)
    return {
        "/Register/doServiceRegister": registering.services,
        "/Register/doServiceInstanceRegister": registering.instances,
        "/Register/doEndpointRegister": registering.endpoints,
        "/Register/doNetworkAddressRegister": addresses.register,
        "/Register/doServiceAndNetworkAddressMappingRegister": addresses.map,
        "/ServiceInstancePing/doPing": Pings(names, clock),
        "/skywalking.v3.ConfigurationDiscoveryService/fetchConfigurations": handler(
            commands.configuration_query, tasks
        ),
        "/skywalking.v3.ProfileTask/getProfileTaskCommands": profiles,
        "/ProfileTask/getProfileTaskCommands": profiles,
        "/skywalking.v10.AsyncProfilerTask/getAsyncProfilerTaskCommands": handler(
            commands.async_profiler_query, tasks
        ),
        "/skywalking.v10.PprofTask/getPprofTaskCommands": handler(commands.pprof_query, tasks),
        "/skywalking.v3.EBPFProfilingService/queryTasks": handler(ebpf, tasks),
        "/skywalking.v3.ContinuousProfilingService/queryPolicies": handler(continuous, tasks),
    }
