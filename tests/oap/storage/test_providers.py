"""Every provider of storage runs every contract of storage, whole, unless it lacks what one needs.

A contract of storage is one whose tests ask for a `storage`. One that another extends is run by
whoever runs that one.
"""

from __future__ import annotations

import ast
import importlib
import inspect
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import pytest

from skyfarer.oap.boot.catalog import CATALOG
from skyfarer.oap.core.capabilities import Capability
from skyfarer.oap.storage.embedded import EmbeddedStorage
from skyfarer.oap.storage.postgresql import PostgresStorage

HERE = Path(__file__).parent
CONTRACTS = HERE.parents[1] / "contracts"
PROVIDERS: Mapping[str, tuple[type, str]] = {
    "duckdb": (EmbeddedStorage, "test_embedded*.py"),
    "postgresql": (PostgresStorage, "postgresql/test_*.py"),
}
"""Provider → its storage, and the files of its tests."""


def contracts() -> list[type]:
    found = [one for file in sorted(CONTRACTS.glob("*_contract.py")) for one in _classes(file)]
    extended = {base for one in found for base in one.__mro__[1:]}
    return [one for one in found if one not in extended and _of_storage(one)]


def _classes(file: Path) -> Iterator[type]:
    module = importlib.import_module(f"contracts.{file.stem}")
    for name, one in vars(module).items():
        if inspect.isclass(one) and one.__module__ == module.__name__ and name.endswith("Contract"):
            yield one


def _of_storage(contract: type) -> bool:
    tests = (one for name, one in inspect.getmembers(contract) if name.startswith("test_"))
    return any("storage" in inspect.signature(one).parameters for one in tests)


def run_in(sources: Iterable[str]) -> dict[str, list[ast.ClassDef]]:
    """Base class → the test classes of it."""
    found: dict[str, list[ast.ClassDef]] = {}
    for node in (node for text in sources for node in ast.walk(ast.parse(text))):
        if isinstance(node, ast.ClassDef) and node.name.startswith("Test"):
            for base in (base for base in node.bases if isinstance(base, ast.Name)):
                found.setdefault(base.id, []).append(node)
    return found


def left_out(lacks: frozenset[Capability], sources: Iterable[str]) -> list[str]:
    """Contracts that are not run, and tests of those that are which are replaced or taken away."""
    run, wrong = run_in(sources), list[str]()
    for contract in contracts():
        classes = run.get(contract.__name__, [])
        if not classes and getattr(contract, "needs", None) not in lacks:
            wrong.append(contract.__name__)
        names = {name for name in dir(contract) if name.startswith("test_")}
        wrong += sorted(name for one in classes for name in names & set(_assigned(one)))
    return wrong


def _assigned(one: ast.ClassDef) -> Iterator[str]:
    for node in one.body:
        if isinstance(node, ast.FunctionDef):
            yield node.name
        elif isinstance(node, ast.Assign):
            yield from (target.id for target in node.targets if isinstance(target, ast.Name))


def test_every_provider_that_can_be_chosen_is_here() -> None:
    assert set(PROVIDERS) == set(CATALOG.names("storage"))
    for name, (storage, _) in PROVIDERS.items():
        assert CATALOG.resolve("storage", name).lacks == storage.lacks


def test_the_contracts_of_storage_are_found() -> None:
    names = {one.__name__ for one in contracts()}
    assert {"StorageContract", "ExpiryContract", "SharedContract", "CatalogContract"} <= names
    assert not {"InventoryContract", "LeaseContract", "QueueContract"} & names


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_provider_runs_every_contract_whole(provider: str) -> None:
    storage, files = PROVIDERS[provider]
    assert left_out(storage.lacks, [file.read_text() for file in HERE.glob(files)]) == []


def test_what_is_left_out_is_told() -> None:
    whole = [f"class Test{one.__name__}({one.__name__}): pass" for one in contracts()]
    everything = frozenset[Capability]()
    assert left_out(everything, whole) == []
    assert left_out(everything, whole[1:]) == [contracts()[0].__name__]
    shared = [text for text in whole if "SharedContract" not in text]
    assert left_out(everything, shared) == ["SharedContract"]
    assert left_out(frozenset({Capability.SEVERAL_NODES}), shared) == []
    replaced = "test_nothing_is_saved_at_first"
    for instead in (f"def {replaced}(self): ...", f"{replaced} = None"):
        text = f"class TestAgain(TemplatesContract):\n    {instead}"
        assert left_out(everything, [*whole, text]) == [replaced]


def test_no_contract_needs_what_no_provider_lacks() -> None:
    """Nor is anything lacking that nothing tells of."""
    lacking = {one for storage, _ in PROVIDERS.values() for one in storage.lacks}
    assert lacking == set(Capability)
    assert {getattr(one, "needs", None) for one in contracts()} <= {None, *lacking}
