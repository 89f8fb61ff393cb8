"""Which call goes where: to the door of a queue, on to the upstream, or nowhere.

A route is made once for each path and then only changed, so that the calls that are open follow
when the doors are replaced, and a message needs no look-up.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence

from skyfarer.base.errors import PermanentError, RetryableError
from skyfarer.wire.relay import Relay
from skyfarer.wire.rpc import BY_PATH, RPCS, Handling, Rpc
from skyfarer.wire.status import StatusError, of_error
from skyfarer.wire.twins import TWINS

log = logging.getLogger(__name__)

Append = Callable[[int, Sequence[bytes]], object]


class Keeper:
    """A queue's append, and what must be known once for it: whether it is broken."""

    def __init__(self, append: Append) -> None:
        self._append = append
        self._broken = False

    def append(self, kind: int, payloads: Sequence[bytes]) -> StatusError | None:
        """None when the payloads are durable."""
        try:
            self._append(kind, payloads)
        except (RetryableError, PermanentError) as error:
            return of_error(error)
        except Exception as error:
            # Said once until it works again: a broken disk must not fill what is left with logs.
            if not self._broken:
                log.exception("messages cannot be kept: append failed")
            self._broken = True
            return of_error(error)
        self._broken = False
        return None


class Lane:
    """What is appended together: the records of one kind behind one door."""

    __slots__ = ("keeper", "kind")

    def __init__(self, keeper: Keeper, kind: int) -> None:
        self.keeper = keeper
        self.kind = kind


class Route:
    """`lane`: messages are kept. `relay`: they are passed on. Neither: the call is not served.

    `v2_lane`: the messages of `lane` may be of v2 as well, which only they can tell (`twins`).
    """

    __slots__ = ("lane", "relay", "rpc", "v2_lane")

    def __init__(self, rpc: Rpc) -> None:
        self.rpc = rpc
        self.lane: Lane | None = None
        self.v2_lane: Lane | None = None
        self.relay: Relay | None = None

    @property
    def served(self) -> bool:
        return self.lane is not None or self.relay is not None


class Routes:
    """One per server. A door takes precedence over what the table would do with the call."""

    def __init__(self, doors: Mapping[str, Append], relay: Relay | None) -> None:
        self._routes = {rpc.path.encode("ascii"): Route(rpc) for rpc in RPCS}
        self.replace(doors, relay)

    def find(self, path: bytes) -> Route | None:
        """None for a call that is not served."""
        route = self._routes.get(path)
        return route if route is not None and route.served else None

    def replace(self, doors: Mapping[str, Append], relay: Relay | None) -> None:
        """ValueError, and nothing changed, when a door's path is no row of the table."""
        for path in doors:
            if path not in BY_PATH:
                raise ValueError(f"a door was given for {path}, which is no row of the RPC table")
        keepers = {append: Keeper(append) for append in doors.values()}
        lanes: dict[tuple[Append, int], Lane] = {}

        def lane(append: Append, kind: int) -> Lane:
            return lanes.setdefault((append, kind), Lane(keepers[append], int(kind)))

        for route in self._routes.values():
            rpc, append = route.rpc, doors.get(route.rpc.path)
            route.lane = route.v2_lane = route.relay = None
            if append is not None:
                route.lane = lane(append, rpc.kind)
                twin = TWINS.get(rpc.path)
                route.v2_lane = lane(append, twin.kind) if twin is not None else None
            elif rpc.handling is Handling.ASK:
                route.relay = relay
