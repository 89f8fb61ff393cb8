"""Which path of which server belongs to which pipe."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from skyfarer.base.errors import ConfigError
from skyfarer.satellite import receivers
from skyfarer.satellite.config import PipeConfig, Reception
from skyfarer.satellite.contracts import Append
from skyfarer.satellite.pipe import Pipe
from skyfarer.satellite.plugins import Plugin
from skyfarer.satellite.receivers import Paths
from skyfarer.satellite.relays import Relays


@dataclass
class Service:
    """What one server shall do: path → who keeps it, path → the pipe that asks for it."""

    doors: dict[str, Append] = field(default_factory=dict)
    asked: dict[str, Pipe] = field(default_factory=dict)
    owners: dict[str, str] = field(default_factory=dict)

    def duties(self) -> tuple[dict[str, Append], Relays | None]:
        """For `Server.serve`."""
        return self.doors, Relays(self.asked) if self.asked else None


def open_doors(pipe: Pipe, servers: Mapping[str, Plugin], services: Mapping[str, Service]) -> None:
    """All that the pipe's receivers stand for; ConfigError when it cannot have it.

    A server that is off has no service, but what is said about it must be right all the same.
    """
    config = pipe.recipe.config
    names = tuple(reception.receiver.plugin_name for reception in config.receptions)
    for forwarder in config.forwarders:
        receivers.check_forwarder(forwarder.plugin_name, names, forwarder.where)
    for reception in config.receptions:
        plugin = servers[reception.server_name]
        paths = receivers.paths(reception.receiver, plugin.plugin_name)
        _check_means(pipe, reception, paths)
        service = services.get(reception.server_name, Service())
        _claim(service, config, reception, paths)
        service.doors.update(dict.fromkeys(paths.kept, pipe.append))
        service.asked.update(dict.fromkeys(paths.asked, pipe))


def _check_means(pipe: Pipe, reception: Reception, paths: Paths) -> None:
    where, receiver = pipe.recipe.config.where, reception.receiver.plugin_name
    if paths.kept and pipe.queued is None:
        raise ConfigError(
            f"{where}.gatherer.queue: none-queue keeps nothing, and {receiver} takes in what must"
            " be kept"
        )
    if not paths.kept and getattr(pipe.forwarder, "relay", None) is None:
        client = pipe.recipe.client.plugin_name
        raise ConfigError(
            f"{where}.sender.client_name: {client} answers no calls, and {receiver} has nothing"
            " else"
        )


def _claim(service: Service, config: PipeConfig, reception: Reception, paths: Paths) -> None:
    for path in (*paths.kept, *paths.asked):
        owner = service.owners.setdefault(path, config.name)
        if owner != config.name:
            raise ConfigError(
                f"{reception.receiver.where}: {path} of server '{reception.server_name}' belongs to"
                f" pipe '{owner}' already, so '{config.name}' cannot have it"
            )
