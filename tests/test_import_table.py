"""The import table of the house, held against every import in the source, lazy ones included."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "skyfarer"

# Room → the rooms it may import (besides itself). Longest match wins.
TABLE: dict[str, tuple[str, ...]] = {
    "base": (),
    "telemetry": ("base",),
    "wire": ("base", "telemetry"),
    "queue": ("base", "telemetry"),
    "satellite": ("base", "telemetry", "wire", "queue"),
    "oap.core": ("base", "telemetry"),
    "oap.oal": ("base", "oap.core"),
    "oap.receivers": ("base", "telemetry", "wire", "queue", "oap.core"),
    "oap.pipeline": ("base", "telemetry", "wire", "queue", "oap.core", "oap.oal"),
    "oap.storage": ("base", "telemetry", "oap.core"),
    "oap.cluster": ("base", "telemetry", "wire", "oap.core"),
    "oap.ttl": ("base", "telemetry", "oap.core"),
    "oap.admin": ("base", "telemetry", "oap.core", "oap.receivers", "oap.ttl"),
    "oap.query": ("base", "telemetry", "wire", "oap.core", "oap.oal"),
    "oap.boot": ("base", "telemetry", "wire", "queue", "oap"),
    "oap": (),
    "ui": ("base",),
    "testing": ("base", "telemetry", "wire", "queue", "oap.core", "oap.oal", "oap.query", "ui"),
    "cli": (
        "base",
        "telemetry",
        "wire",
        "queue",
        "satellite",
        "oap.admin",
        "oap.boot",
        "oap.oal",
        "ui",
        "testing",
    ),
}

# Third party → the rooms that may import it.
GUARDED: dict[str, tuple[str, ...]] = {
    "pyspark": ("oap.pipeline",),
    "py4j": ("oap.pipeline",),
    "ptars": ("oap.pipeline",),
    "pyarrow": ("oap", "testing.memory_reader"),
    "numpy": ("oap",),
    "duckdb": ("oap.storage.embedded",),
    "psycopg": ("oap.storage.postgresql",),
    "psycopg_pool": ("oap.storage.postgresql",),
    "pgpq": ("oap.storage.postgresql",),
    "google": (
        "oap.cluster.etcd",
        "oap.pipeline",
        "oap.receivers.answers",
        "oap.query.browser_logs",
        "oap.query.logs",
        "oap.query.mending",
        "oap.query.profiles",
        "oap.query.traces",
        "wire.generated",
        "wire.messages",
        "wire.http.proto_json",
    ),
    "backports": ("wire.http.inflating",),
    "compression": ("wire.http.inflating",),
    "re2": ("satellite.processors",),
    "confluent_kafka": ("satellite.senders",),
    "ssl": ("wire", "oap.cluster.zookeeper"),
    # Ours, but they bring protobuf: a satellite has it for its filters and for JSON alone.
    "skyfarer.wire.generated": ("oap", "testing", "wire.messages"),
    "skyfarer.wire.messages": (
        "oap",
        "testing",
        "satellite.processors",
        "wire.http.proto_json",
        "wire.http.v2_json",
    ),
    "graphql": ("oap.query",),
    "starlette": ("oap.query",),
    "uvicorn": ("oap.query", "ui"),
    "nicegui": ("ui",),
    "grpc": ("oap.cluster.etcd", "testing"),
    "kazoo": ("oap.cluster.zookeeper",),
    "selenium": ("testing",),
}


def within(room: str, module: str) -> bool:
    return module == room or module.startswith(room + ".")


def room_of(module: str) -> str | None:
    return max((room for room in TABLE if within(room, module)), key=len, default=None)


@cache
def imports() -> list[tuple[str, str, str]]:
    """(importing module, imported name, where) of every import statement in the source."""
    return list(_imports())


def _imports() -> Iterator[tuple[str, str, str]]:
    for path in sorted(SOURCE.rglob("*.py")):
        if "generated" in path.parts:
            continue
        parts = path.relative_to(SOURCE).with_suffix("").parts
        module = ".".join(part for part in parts if part != "__init__")
        for node in ast.walk(ast.parse(path.read_text())):
            where = f"{path.relative_to(SOURCE)}:{getattr(node, 'lineno', 0)}"
            if isinstance(node, ast.Import):
                for name in node.names:
                    yield module, name.name, where
            elif isinstance(node, ast.ImportFrom):
                assert node.level == 0, f"{where}: relative import"
                for name in node.names:
                    yield module, f"{node.module}.{name.name}", where


def test_every_import_goes_downwards() -> None:
    wrong = []
    for module, name, where in imports():
        if not within("skyfarer", name) or not module:
            continue
        target = room_of(name.removeprefix("skyfarer").removeprefix("."))
        home = room_of(module)
        assert home is not None, f"{where}: {module} stands in no room of the table"
        allowed = (home, *TABLE[home])
        if target is not None and not any(within(room, target) for room in allowed):
            wrong.append(f"{where} imports {name}: {home} may not import {target}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("package", GUARDED)
def test_a_heavy_package_is_imported_only_where_the_table_allows(package: str) -> None:
    wrong = [
        f"{where} imports {name}"
        for module, name, where in imports()
        if within(package, name) and not any(within(room, module) for room in GUARDED[package])
    ]
    assert not wrong, "\n".join(wrong)


STORAGES = [path.parent.name for path in (SOURCE / "oap" / "storage").glob("*/__init__.py")]


@pytest.mark.parametrize("provider", STORAGES)
def test_a_storage_provider_is_imported_by_itself_and_boot_alone(provider: str) -> None:
    room = f"oap.storage.{provider}"
    wrong = [
        f"{where} imports {name}"
        for module, name, where in imports()
        if within(f"skyfarer.{room}", name)
        and not within(room, module)
        and not within("oap.boot", module)
    ]
    assert not wrong, "\n".join(wrong)


def test_coordinators_import_no_other_coordinator() -> None:
    kinds = ("etcd", "standalone", "zookeeper")
    wrong = [
        f"{where} imports {name}"
        for module, name, where in imports()
        for kind in kinds
        if module.startswith("oap.cluster.")
        and within(f"skyfarer.oap.cluster.{kind}", name)
        and not within(f"oap.cluster.{kind}", module)
    ]
    assert not wrong, "\n".join(wrong)
