"""The catalog of modules and providers: ours, another package's, and what the guide says."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass, fields
from pathlib import Path

from oap.configuring import flat, refusal
from skyfarer.base.config import read_yaml
from skyfarer.base.plugins import Catalog
from skyfarer.oap.boot import later
from skyfarer.oap.boot.catalog import CONFIGS, EXTRAS, ROWS
from skyfarer.oap.boot.config import SHIPPED, construct, load_application
from skyfarer.oap.boot.settings import (
    NoKeys,
)
from skyfarer.oap.core.modules import Module, Provider


def test_no_name_is_both_used_and_for_later() -> None:
    assert not later.MODULES & set(ROWS)
    for module, names in later.PROVIDERS.items():
        assert not names & set(ROWS[module])
    for provider, keys in later.KEYS.items():
        assert not keys & {field.name for field in fields(CONFIGS[provider])}


def test_every_row_of_the_catalog_has_its_configuration() -> None:
    rows = {(module, provider) for module, names in ROWS.items() for provider in names}

    assert rows == set(CONFIGS)


def test_the_catalog_and_the_providers_agree_and_can_start_in_one_order() -> None:
    others = (
        *({"SW_CLUSTER": cluster} for cluster in ROWS["cluster"]),
        {"SW_STORAGE": "postgresql", "SW_DATA_SOURCE_PASSWORD": "x"},
    )
    providers = {
        (provider.module.name, provider.name): provider
        for environ in others
        for provider in construct(load_application(None, environ))
        if provider.module.name != "ttl"
    }

    assert set(providers) == set(CONFIGS)
    for name, provider in providers.items():
        assert CONFIGS[name] is provider.config


def test_checking_a_configuration_imports_nothing_heavy() -> None:
    code = (
        "import sys\n"
        "from skyfarer.oap.boot.config import load_application\n"
        "load_application(None, {})\n"
        f"heavy = {sorted(EXTRAS)} + ['skyfarer.oap.boot.providers']\n"
        "print([name for name in heavy if name in sys.modules])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )

    assert done.stdout.strip() == "[]"


@dataclass(frozen=True)
class ToyConfig:
    size: int = 1


class Toy(Provider):
    """What another package might offer for storage."""

    name = "toy"
    module = Module("storage")
    config = ToyConfig

    def __init__(self, config: ToyConfig) -> None:
        self.bound = config


def test_another_packages_provider_is_configured_by_its_own_class(file: Path) -> None:
    offered = {"skyfarer.storage": [("toy", f"{Toy.__module__}:Toy")]}
    catalog = Catalog(ROWS, EXTRAS, lambda group: offered.get(group, []))
    file.write_text("storage:\n  selector: toy\n  toy:\n    size: 7\n")
    application = load_application(file, {}, None, catalog)
    provider = construct(application, catalog)[0]

    assert application.config(ToyConfig) == ToyConfig(7)
    assert provider.name == "toy"


def test_a_provider_without_keys_refuses_any(file: Path) -> None:
    assert CONFIGS["cluster", "standalone"] is NoKeys
    assert refusal(file, "cluster:\n  selector: standalone\n  standalone:\n    x: 1\n") == (
        "application.yml: cluster.standalone has no key 'x'; there are none"
    )


def test_the_guide_has_every_key_with_its_variable_and_default() -> None:
    guide = (Path(__file__).parents[2] / "docs/guide/configuration.md").read_text(encoding="utf-8")
    document = read_yaml(SHIPPED, {})
    for module, provider in CONFIGS:
        for key, value in flat(document.keys(module, provider)):
            variable, _, default = str(value)[2:-1].partition(":")
            shown = f"`{default}` |" if default else "|"
            assert f"| `{key}` | `{variable}` | {shown}" in guide
        selector = str(document.keys(module)["selector"])[2:-1].partition(":")[0]
        assert f"`{selector}`" in guide
