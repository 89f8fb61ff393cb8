"""Signs of life of v2 instances.

A ping counts for the instance and for its service. An instance that does not exist is told to
register anew: its ids are those of a registry that is gone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final
from uuid import uuid4

from skyfarer.base.clock import Clock
from skyfarer.oap.core.inventory import InventoryScope
from skyfarer.oap.receivers.answers.creating import bare, moment_ms
from skyfarer.oap.receivers.answers.names import Names
from skyfarer.oap.receivers.answers.outcome import Outcome, decoded
from skyfarer.wire.messages import v2_register

BEAT_S: Final = 10.0  # no more than one record in so long for one instance, or one service


class Pings:
    """Called, it is a handler."""

    def __init__(
        self, names: Names, clock: Clock, serial_number: Callable[[], str] = lambda: str(uuid4())
    ) -> None:
        self._names = names
        self._clock = clock
        self._serial_number = serial_number

    def __call__(self, request: bytes) -> Outcome:
        ping = decoded(v2_register.ServiceInstancePingPkg(), request)
        number = ping.serviceInstanceId
        instance = self._names.find_by_id(InventoryScope.SERVICE_INSTANCE, (number,)).get(number)
        if instance is None:
            return Outcome(self._reset().SerializeToString())
        services = self._names.find_by_id(InventoryScope.SERVICE, (instance.service_id,))
        at_ms = moment_ms(ping.time, self._clock)
        beats = (
            bare(one, heartbeat_time=at_ms)
            for one in (instance, *services.values())
            if self._names.claim((one.scope, "beat", one.sequence), BEAT_S)
        )
        return Outcome(keep=tuple(beats))

    def _reset(self) -> v2_register.Commands:
        serial = v2_register.KeyStringValuePair(key="SerialNumber", value=self._serial_number())
        reset = v2_register.Command(command="ServiceMetadataReset", args=[serial])
        return v2_register.Commands(commands=[reset])
