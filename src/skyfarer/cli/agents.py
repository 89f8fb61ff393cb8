"""`skyfarer oap settings` and `skyfarer oap profile`: what a running OAP tells its agents to do."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from skyfarer.base.config import read_yaml
from skyfarer.base.errors import ConfigError
from skyfarer.cli.columns import columns
from skyfarer.oap.admin.door import ask

TOP: Final = "configurations"


@dataclass(frozen=True)
class ProfileWish:
    """`start_ms` 0 is now."""

    service: str
    endpoint: str
    start_ms: int
    duration_min: int
    threshold_ms: int
    dump_period_ms: int
    samples_max: int


def settings(directory: Path, as_json: bool) -> int:
    """Blocks."""
    (answer,) = ask(directory, {"ask": "settings.list"})
    found: dict[str, dict[str, str]] = answer["settings"]
    if as_json:
        print(json.dumps(found, indent=2))
    elif found:
        rows = [(service, *pair) for service, pairs in found.items() for pair in pairs.items()]
        print("\n".join(columns([("service", "key", "value"), *rows], left=(0, 1, 2))))
    else:
        print("no agent has settings")
    return 0


def apply(directory: Path, file: Path) -> int:
    """Blocks. What the file says is all there is, from then on."""
    wanted = read(file)
    (answer,) = ask(directory, {"ask": "settings.apply", "settings": wanted})
    print(f"settings of {answer['services']} services; agents have them when they ask next")
    return 0


def read(file: Path) -> dict[str, dict[str, str]]:
    """SkyWalking's form: `configurations`, then a service, then its keys. ConfigError if not.

    Values stay as they are written, since they are an agent's: `${…}` may mean something to it.
    """
    document = read_yaml(file, {})
    if set(document.raw) != {TOP}:
        raise ConfigError(f"{file.name} must have '{TOP}' at its top, and nothing else there")
    services = document.keys(TOP)
    return {name: _pairs(pairs, document.where(TOP, name)) for name, pairs in services.items()}


def _pairs(pairs: Any, where: str) -> dict[str, str]:
    if not isinstance(pairs, dict):
        raise ConfigError(f"{where} must have keys and values")
    for key, value in pairs.items():
        if not isinstance(value, str):
            raise ConfigError(f"{where}.{key} must be one value")
    return pairs


def profiles(directory: Path, whole: bool, as_json: bool) -> int:
    """Blocks."""
    tasks = [answer["task"] for answer in ask(directory, {"ask": "profile.list", "all": whole})]
    if as_json:
        for task in tasks:
            print(json.dumps(task))
    elif tasks:
        heads = ("id", "service", "endpoint", "starts", "minutes", "threshold ms", "samples")
        print("\n".join(columns([heads, *map(_row, tasks)], left=(0, 1, 2, 3))))
    else:
        print("no agent is to profile anything")
    return 0


def _row(task: dict[str, Any]) -> tuple[str, ...]:
    starts = datetime.fromtimestamp(task["start_ms"] / 1000, UTC).strftime("%Y-%m-%d %H:%M:%SZ")
    figures = (task["duration_min"], task["threshold_ms"], task["samples_max"])
    return (task["id"], task["service"], task["endpoint"], starts, *map(str, figures))


def create(directory: Path, wish: ProfileWish) -> int:
    """Blocks."""
    (answer,) = ask(directory, {"ask": "profile.create", **asdict(wish)})
    print(f"task {answer['task']['id']}; agents have it when they ask next")
    return 0
