"""The configuration as a picture: a Mermaid flowchart of what flows from where to where."""

from __future__ import annotations

from collections.abc import Iterator

from skyfarer.satellite.config import PipeConfig, SatelliteConfig
from skyfarer.satellite.plugins import Plugin
from skyfarer.satellite.sections import NoQueueConfig, QueueConfig


def mermaid(config: SatelliteConfig) -> str:
    return "\n".join(("flowchart LR", *_lines(config))) + "\n"


def _lines(config: SatelliteConfig) -> Iterator[str]:
    servers = {name: f"server{n}" for n, name in enumerate(config.servers)}
    clients = {name: f"client{n}" for n, name in enumerate(config.clients)}
    for name, plugin in config.servers.items():
        yield f"  {servers[name]}[{_quoted(name, _where(plugin, 'address'))}]"
    for number, pipe in enumerate(config.pipes):
        yield from _pipe(pipe, f"pipe{number}", servers, clients)
    for name, plugin in config.clients.items():
        yield f"  {clients[name]}[{_quoted(name, _where(plugin, 'server_addr', 'brokers'))}]"


def _pipe(
    pipe: PipeConfig, node: str, servers: dict[str, str], clients: dict[str, str]
) -> Iterator[str]:
    steps = [f"{node}queue[({_quoted(*_queue(pipe))})]"]
    for number, one in enumerate(pipe.filters):
        steps.append(f"{node}filter{number}[{_quoted(one.plugin_name)}]")
    steps.append(f"{node}sender[{_quoted('sender', f'{pipe.sender.max_buffer_size} records')}]")
    yield f"  subgraph {node}[{_quoted(pipe.name)}]"
    yield f"    {' --> '.join(steps)}"
    yield "  end"
    for reception in pipe.receptions:
        label = reception.receiver.plugin_name
        yield f"  {servers[reception.server_name]} -->|{_quoted(label)}| {node}queue"
    if pipe.fetcher is not None:
        yield f"  {node}fetcher[{_quoted(pipe.fetcher.plugin_name)}] --> {node}queue"
    yield f"  {node}sender --> {clients[pipe.sender.client_name]}"


def _queue(pipe: PipeConfig) -> tuple[str, str]:
    if isinstance(pipe.queue, NoQueueConfig):
        return "no queue", "the upstream answers"
    assert isinstance(pipe.queue, QueueConfig)
    return "queue", f"{pipe.queue.capacity_bytes >> 20} MiB, {pipe.queue.when_full}"


def _where(plugin: Plugin, *keys: str) -> str:
    if plugin.off:
        return "off"
    return next((str(plugin.values[key]) for key in keys if plugin.values.get(key)), "")


def _quoted(*lines: str) -> str:
    """Mermaid's text: no quote may stand in it, and a line end is a tag."""
    return '"' + "<br/>".join(line.replace('"', "'") for line in lines if line) + '"'
