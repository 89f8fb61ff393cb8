"""Plugins as the configuration names them, before their own keys are bound."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from skyfarer.base.errors import ConfigError
from skyfarer.satellite.sections import PluginValues


@dataclass(frozen=True)
class Plugin:
    """A plugin as written: its own keys are bound by whoever resolves `plugin_name`."""

    plugin_name: str
    values: Mapping[str, object]
    where: str = field(compare=False)
    name: str = ""  # what others call it, where it is shared

    @property
    def off(self) -> bool:
        """A server without an address listens nowhere, so that a variable can turn it off."""
        return self.values.get("address") == ""


def read_shared(entries: tuple[PluginValues, ...], where: str) -> dict[str, Plugin]:
    """By the name that pipes call them by."""
    found: dict[str, Plugin] = {}
    for plugin in read_plugins(entries, where):
        values = dict(plugin.values)
        name = values.pop("name", plugin.plugin_name)
        if not isinstance(name, str) or not name:
            raise ConfigError(f"{plugin.where}.name must be text, not {name!r}")
        if name in found:
            raise ConfigError(f"{where} names '{name}' twice; give one of them a 'name' of its own")
        found[name] = Plugin(plugin.plugin_name, values, plugin.where, name)
    return found


def read_plugins(entries: tuple[PluginValues, ...], where: str) -> Iterator[Plugin]:
    for number, entry in enumerate(entries):
        yield read_plugin(entry, f"{where}[{number}]")


def read_optional(entry: PluginValues | None, where: str) -> Plugin | None:
    return None if entry is None else read_plugin(entry, where)


def read_plugin(entry: object, where: str) -> Plugin:
    values = dict(read_mapping(entry, where))
    name = values.pop("plugin_name", None)
    if not isinstance(name, str) or not name:
        raise ConfigError(f"{where} needs a value for 'plugin_name'")
    return Plugin(name, values, where)


def read_mapping(value: object, where: str) -> Mapping[str, object]:
    if isinstance(value, Mapping):
        return value
    raise ConfigError(f"{where} must hold keys and values, not {value!r}")
