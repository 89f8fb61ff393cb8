"""The satellite's plugins: kind → name in the configuration → constructor.

A constructor has a `config_type`, the frozen dataclass of its keys, and is called with a value of
it first: a gatherer as `(config, append, registry, health)`, a sender's forwarder as
`(config, producer, records_max, registry)`. Others join by the entry points `skyfarer.gatherer`
and `skyfarer.sender`.
"""

from __future__ import annotations

from skyfarer.base.plugins import Catalog, EntryPoints, installed_entry_points

ROWS = {
    "gatherer": {"grpc-server": "skyfarer.satellite.gatherers.grpc:GrpcGatherer"},
    "sender": {"grpc-client": "skyfarer.satellite.senders.grpc:GrpcForwarder"},
}


def catalog(entry_points: EntryPoints = installed_entry_points) -> Catalog:
    return Catalog(ROWS, entry_points=entry_points)
