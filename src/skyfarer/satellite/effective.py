"""The configuration as the satellite understood it: every key with its value, secrets masked.

It is YAML that the satellite reads back, but for the masks: what came from the environment stands
in it, defaults included, and what was read differently stands as it was read.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import yaml

from skyfarer.satellite.config import PipeConfig, SatelliteConfig
from skyfarer.satellite.plugins import Plugin
from skyfarer.satellite.sections import NoQueueConfig

MASK: Final = "***"
_SECRET_WORDS: Final = ("authentication", "authorization", "password", "token", "secret")
_NOT_SECRET: Final = ("_file", "_path")  # where a secret lies is none

Bound = Mapping[str, object]


def text(config: SatelliteConfig, bound: Bound) -> str:
    """`bound` has each plugin's own dataclass, by where it stands."""
    document = {
        **_plain(config.general),
        "logger": _plain(config.logger),
        "telemetry": _plain(config.telemetry),
        "sharing": {
            "clients": [_shared(one, bound) for one in config.clients.values()],
            "servers": [_shared(one, bound) for one in config.servers.values()],
        },
        "pipes": [_pipe(one, bound) for one in config.pipes],
    }
    return yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=100)


def _shared(plugin: Plugin, bound: Bound) -> dict[str, object]:
    named = {} if plugin.name == plugin.plugin_name else {"name": plugin.name}
    return {"plugin_name": plugin.plugin_name, **named, **_keys(plugin, bound)}


def _plugin(plugin: Plugin, bound: Bound) -> dict[str, object]:
    return {"plugin_name": plugin.plugin_name, **_keys(plugin, bound)}


def _keys(plugin: Plugin, bound: Bound) -> dict[str, object]:
    config = bound.get(plugin.where)
    return _masked(plugin.values) if config is None else _plain(config)


def _pipe(pipe: PipeConfig, bound: Bound) -> dict[str, object]:
    gatherer: dict[str, object] = {}
    if pipe.fetcher is not None:
        gatherer["fetcher"] = _plugin(pipe.fetcher, bound)
    else:
        gatherer["receivers"] = [
            {"server_name": one.server_name, **_plugin(one.receiver, bound)}
            for one in pipe.receptions
        ]
    queue = "none-queue" if isinstance(pipe.queue, NoQueueConfig) else "mmap-queue"
    gatherer["queue"] = {"plugin_name": queue, **_plain(pipe.queue)}
    sender = _plain(pipe.sender)
    sender.pop("forwarders")
    return {
        "common_config": {"pipe_name": pipe.name},
        "gatherer": gatherer,
        "processor": {"filters": [_plugin(one, bound) for one in pipe.filters]},
        "sender": sender,
    }


def _plain(config: object) -> dict[str, object]:
    assert dataclasses.is_dataclass(config) and not isinstance(config, type)
    return _masked(dataclasses.asdict(config))


def _masked(values: Mapping[str, object]) -> dict[str, object]:
    return {key: MASK if _secret(key, value) else _value(value) for key, value in values.items()}


def _value(value: object) -> object:
    if isinstance(value, Mapping):
        return _masked({str(key): one for key, one in value.items()})
    if isinstance(value, list | tuple):
        return [_value(one) for one in value]
    return str(value) if isinstance(value, Path) else value


def _secret(key: str, value: object) -> bool:
    named = any(word in key.lower() for word in _SECRET_WORDS) and not key.endswith(_NOT_SECRET)
    return named and isinstance(value, str) and bool(value)
