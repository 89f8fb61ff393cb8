"""The order in which providers can start: whatever a module requires comes before it.

Where that leaves a choice the module's name decides, so the order depends on what was chosen and
never on how the file was written.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping

from skyfarer.base.errors import ConfigError
from skyfarer.oap.core.modules import Provider, label


def order(providers: Iterable[Provider]) -> list[Provider]:
    """ConfigError for a required module that is absent, one given twice, or a circle."""
    chosen: dict[str, Provider] = {}
    for provider in providers:
        other = chosen.setdefault(provider.module.name, provider)
        if other is not provider:
            raise ConfigError(f"{label(other)} and {label(provider)} are both chosen")
    for provider in chosen.values():
        for required in provider.requires:
            if required not in chosen:
                raise ConfigError(
                    f"{label(provider)} requires module '{required}', which is not enabled"
                )
    return [chosen[name] for name in _sorted({n: p.requires for n, p in chosen.items()})]


def _sorted(requires: Mapping[str, tuple[str, ...]]) -> list[str]:
    waiting = {name: set(required) for name, required in requires.items()}
    ready = [name for name, required in waiting.items() if not required]
    heapq.heapify(ready)
    done: list[str] = []
    while ready:
        name = heapq.heappop(ready)
        done.append(name)
        del waiting[name]
        for other, required in waiting.items():
            if name in required:
                required.remove(name)
                if not required:
                    heapq.heappush(ready, other)
    if waiting:
        circle = " → ".join(_circle(waiting))
        raise ConfigError(f"modules require each other in a circle: {circle}")
    return done


def _circle(waiting: Mapping[str, set[str]]) -> list[str]:
    """Every module left requires another one left, so following them must come back."""
    path = [min(waiting)]
    while path.count(path[-1]) == 1:
        path.append(min(waiting[path[-1]]))
    return path[path.index(path[-1]) :]
