from __future__ import annotations

import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from skyfarer.base.backoff import Backoff
from skyfarer.base.errors import ConfigError
from skyfarer.base.plugins import Catalog, installed_entry_points

ROWS = {
    "storage": {
        "good": "skyfarer.base.backoff:Backoff",
        "uninstalled": "a_driver_nobody_has.client:Client",
        "mistaken": "skyfarer.base.backoff:Bakcoff",
    },
    "cluster": {},
}


def nobody_else(group: str) -> list[tuple[str, str]]:
    return []


def catalog(*others: tuple[str, str]) -> Catalog:
    offered = {"skyfarer.storage": list(others)}
    return Catalog(ROWS, {"a_driver_nobody_has": "extra"}, lambda group: offered.get(group, []))


def refusal(name: str, kind: str = "storage", *others: tuple[str, str]) -> str:
    with pytest.raises(ConfigError) as refused:
        catalog(*others).resolve(kind, name)
    return str(refused.value)


def test_a_row_is_imported_when_it_is_chosen() -> None:
    assert catalog().resolve("storage", "good") is Backoff


def test_building_a_catalog_imports_nothing() -> None:
    assert Catalog(ROWS, {}, nobody_else).names("storage") == ["good", "mistaken", "uninstalled"]


def test_a_missing_package_names_the_extra_that_installs_it() -> None:
    assert refusal("uninstalled") == (
        "storage 'uninstalled' needs the module 'a_driver_nobody_has'; "
        "install it with: pip install 'skyfarer[extra]'"
    )


def test_an_unknown_name_is_told_the_nearest() -> None:
    assert refusal("god") == "there is no storage named 'god'; did you mean 'good'?"


def test_an_unknown_kind_is_told_the_nearest() -> None:
    assert refusal("x", "storag") == "there is nothing called 'storag'; did you mean 'storage'?"


def test_a_constructor_that_is_not_there_is_named() -> None:
    assert refusal("mistaken") == "storage 'mistaken': skyfarer.base.backoff has no 'Bakcoff'"


def test_others_add_names_by_entry_points() -> None:
    found = catalog(("mine", "skyfarer.base.backoff:BackoffSettings"))

    assert found.names("storage") == ["good", "mine", "mistaken", "uninstalled"]
    assert found.resolve("storage", "mine").__name__ == "BackoffSettings"


def test_a_name_taken_twice_is_an_error_that_names_both() -> None:
    assert refusal("good", "storage", ("good", "other:Thing")) == (
        "storage 'good' is offered twice: by skyfarer.base.backoff:Backoff and by other:Thing"
    )


def test_the_installed_packages_are_asked_by_default() -> None:
    assert Catalog(ROWS).resolve("storage", "good") is Backoff


def test_what_installed_packages_offer_is_read_from_where_pip_writes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for place, value in (("first", "theirs:Good"), ("second", "shadowed:Bad")):
        package = tmp_path / place / "theirs-1.0.dist-info"
        package.mkdir(parents=True)
        text = f"[console_scripts]\nx = y:z\n\n[skyfarer.filter]\n# words\nmine = {value}\n"
        (package / "entry_points.txt").write_text(text)
    monkeypatch.setattr(sys, "path", [str(tmp_path / "first"), str(tmp_path / "second"), "/none"])

    assert installed_entry_points("skyfarer.filter") == [("mine", "theirs:Good")]
    assert installed_entry_points("skyfarer.server") == []


def test_it_is_what_the_standard_library_finds() -> None:
    expected = [(one.name, one.value) for one in entry_points(group="console_scripts")]

    assert sorted(installed_entry_points("console_scripts")) == sorted(expected)
