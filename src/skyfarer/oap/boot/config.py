"""application.yml → the chosen providers with their configuration.

    storage:                                 a module
      selector: ${SW_STORAGE:duckdb}         the provider it gets; `-`, `none` or empty: no module
      duckdb:                                a provider's keys; absent ones keep their defaults
        path: ${SW_STORAGE_DUCKDB_PATH:}

Everything is checked before anything is imported or started. An override `module.provider.key` (or
`module.selector`) replaces what the file says, as a JVM property does in the original; its value is
taken as it is, without placeholders.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Final, TypeVar

from skyfarer.base.config import Document, bind, nearest, read_yaml
from skyfarer.base.errors import ConfigError
from skyfarer.base.plugins import Catalog
from skyfarer.oap.boot import later
from skyfarer.oap.boot.catalog import CATALOG, IMPLIED, config_type
from skyfarer.oap.boot.exposure import open_ports
from skyfarer.oap.boot.order import order
from skyfarer.oap.cluster.standalone import KIND as STANDALONE
from skyfarer.oap.core.capabilities import Capability
from skyfarer.oap.core.modules import Provider

T = TypeVar("T")

SHIPPED: Final = Path(__file__).with_name("application.yml")
SELECTOR: Final = "selector"
DISABLED: Final = ("", "-", "none")


@dataclass(frozen=True)
class Chosen:
    module: str
    provider: str
    config: object


@dataclass(frozen=True)
class Application:
    """`chosen` in the order of the file; `warnings` are lines for the operator."""

    chosen: tuple[Chosen, ...]
    warnings: tuple[str, ...]

    def config(self, kind: type[T]) -> T:
        """The bound configuration of this class; ConfigError when its provider is not chosen."""
        for chosen in self.chosen:
            if isinstance(chosen.config, kind):
                return chosen.config
        raise ConfigError(f"no chosen provider is configured by {kind.__name__}")


def load_application(
    path: Path | None,
    environ: Mapping[str, str],
    overrides: Mapping[str, object] | None = None,
    catalog: Catalog = CATALOG,
) -> Application:
    """None is the file we ship."""
    document = read_yaml(path or SHIPPED, environ)
    return _Loading(document, _Overrides(overrides or {}, catalog), catalog).application()


def construct(application: Application, catalog: Catalog = CATALOG) -> list[Provider]:
    """Imports and constructs the chosen providers, and what they imply, in the order in which they
    can start."""
    providers = [
        catalog.resolve(chosen.module, chosen.provider)(chosen.config)
        for chosen in application.chosen
    ]
    present = {provider.module.name for provider in providers}
    for module in IMPLIED.kinds():
        implied = IMPLIED.resolve(module, "default")
        if present.issuperset(implied.requires):
            providers.append(implied(application.config(implied.config)))
    return order(providers)


def unshared(providers: Iterable[Provider]) -> list[str]:
    """A line for the operator about each that is this node's alone, if it is one of several."""
    chosen = {provider.module.name: provider for provider in providers}
    cluster = chosen.get("cluster")
    if cluster is None or cluster.name == STANDALONE:
        return []
    return [
        f"{one.module.name}.{one.name} is this node's alone: other nodes of cluster.{cluster.name}"
        " do not see what is reported to this one"
        for one in chosen.values()
        if Capability.SEVERAL_NODES in one.lacks
    ]


class _Overrides:
    """`module.provider.key` → value, taken apart; a key may itself hold dots."""

    def __init__(self, overrides: Mapping[str, object], catalog: Catalog) -> None:
        self.selectors: dict[str, object] = {}
        self._values: dict[tuple[str, str], dict[str, object]] = {}
        for name, value in overrides.items():
            module, _, rest = name.partition(".")
            provider, _, key = rest.partition(".")
            _known(module, catalog.kinds(), f"override '{name}': there is no module")
            if rest == SELECTOR:
                self.selectors[module] = value
                continue
            names = catalog.names(module)
            _known(provider, names, f"override '{name}': module '{module}' has no provider")
            keys = _keys(catalog, module, provider)
            _known(key, keys, f"override '{name}': {module}.{provider} has no key")
            self._values.setdefault((module, provider), {})[key] = value

    def modules(self) -> list[str]:
        return [*self.selectors, *(module for module, _ in self._values)]

    def of(self, module: str, provider: str) -> Mapping[str, object]:
        return self._values.get((module, provider), {})


class _Loading:
    def __init__(self, document: Document, overrides: _Overrides, catalog: Catalog) -> None:
        self._document = document
        self._overrides = overrides
        self._catalog = catalog
        self._warnings: list[str] = []
        self._bound: list[tuple[str, Any]] = []
        self._modules_later: list[str] = []

    def application(self) -> Application:
        modules = dict.fromkeys([*self._document.raw, *self._overrides.modules()])
        chosen = [self._module(module) for module in modules]
        if self._modules_later:
            self._not_used_yet(f"{self._document.file}: {', '.join(self._modules_later)}")
        self._warnings.extend(open_ports(self._bound))
        return Application(tuple(filter(None, chosen)), tuple(self._warnings))

    def _module(self, module: str) -> Chosen | None:
        if module in later.MODULES:
            if self._selector(module) not in DISABLED:
                self._modules_later.append(module)
            return None
        _known(
            module, self._catalog.kinds(), f"{self._document.file} has a module that is unknown:"
        )
        provider = self._selected(module)
        if provider is None:
            return None
        values = self._used(module, provider)
        bound = bind(
            config_type(self._catalog, module, provider),
            {**values, **self._overrides.of(module, provider)},
            self._document.where(module, provider),
        )
        self._bound.append((self._document.where(module, provider), bound))
        return Chosen(module, provider, bound)

    def _selected(self, module: str) -> str | None:
        """The provider's name, checked; None for a module that is turned off."""
        where = self._document.where(module)
        present = self._document.keys(module)
        names, known_later = self._catalog.names(module), later.PROVIDERS.get(module, frozenset())
        for name in present:
            _known(name, [SELECTOR, *names, *known_later], f"{where} has no provider")
        selected = self._selector(module)
        if selected in DISABLED:
            return None
        if selected in known_later:
            listed = ", ".join(names)
            raise ConfigError(
                f"{where}.{SELECTOR} is '{selected}', which is not in this version;"
                f" there are: {listed}"
            )
        _known(selected, names, f"{where}.{SELECTOR} is unknown:")
        return selected

    def _selector(self, module: str) -> str:
        """SkyWalking 6 has no selectors: there the only provider written down is the one."""
        present = self._document.keys(module)
        override = self._overrides.selectors.get(module)
        if override is None and SELECTOR not in present:
            if len(present) == 1:
                return next(iter(present))
            raise ConfigError(f"{self._document.where(module)} needs a '{SELECTOR}'")
        value = self._document.value(module, SELECTOR) if override is None else override
        if value is None or isinstance(value, str):
            return (value or "").strip()
        raise ConfigError(f"{self._document.where(module)}.{SELECTOR} must be text, not {value!r}")

    def _used(self, module: str, provider: str) -> dict[str, object]:
        """The provider's values without those of later versions, which are reported."""
        where = self._document.where(module, provider)
        values = self._document.section(module, provider)
        unused = sorted(values.keys() & later.KEYS.get((module, provider), frozenset()))
        for key in later.PROTECTION.intersection(unused):
            if str(values[key] or "").lower() not in ("", "false"):
                raise ConfigError(f"{where}.{key} is set, but this version cannot honour it yet")
        if unused:
            self._not_used_yet(f"{where}: {', '.join(unused)}")
        return {key: value for key, value in values.items() if key not in unused}

    def _not_used_yet(self, what: str) -> None:
        self._warnings.append(f"{what}: read but not used yet")


def _keys(catalog: Catalog, module: str, provider: str) -> list[str]:
    return [field.name for field in fields(config_type(catalog, module, provider))]


def _known(name: str, valid: Iterable[str], complaint: str) -> None:
    names = list(valid)
    if name not in names:
        raise ConfigError(f"{complaint} '{name}'{nearest(name, names)}")
