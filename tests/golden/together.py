"""All scripts of a run at once: one plan, one set of settings, one batch of segments."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

from golden.scripts import Script, ScriptError
from golden.seen import Seen, counted
from skyfarer.oap.oal.compiler import plan_of, shipped
from skyfarer.oap.oal.plan import Plan
from skyfarer.testing.plain_analysis import Rules, plain_rows
from skyfarer.testing.plain_analysis.rules import Alias

T = TypeVar("T")
OF_TRACES = ("core.oal", "virtual-gen-ai.oal")
"""The shipped files whose metrics traces fill."""


@dataclass(frozen=True)
class Together:
    scripts: Sequence[Script]

    @cached_property
    def plan(self) -> Plan:
        own = [text for text in shipped() if text.file in OF_TRACES]
        return plan_of([*own, *(one.oal for one in self.scripts if one.oal is not None)])

    @cached_property
    def aliases(self) -> Mapping[str, Alias]:
        return _one(((script.name, script.aliases) for script in self.scripts), "alias")

    @cached_property
    def apdex(self) -> Mapping[str, int]:
        return _one(((script.name, script.apdex) for script in self.scripts), "apdex")

    @cached_property
    def gateways(self) -> frozenset[str]:
        return frozenset().union(*(script.gateways for script in self.scripts))

    @cached_property
    def providers(self) -> Mapping[str, str]:
        return _one(((script.name, script.providers) for script in self.scripts), "provider of")

    @cached_property
    def prices(self) -> Mapping[str, tuple[float, float]]:
        return _one(((script.name, script.prices) for script in self.scripts), "price of")

    def rules(self, trace_analysis: bool) -> Rules:
        return Rules(
            self.gateways,
            self.aliases,
            trace_analysis=trace_analysis,
            providers=self.providers,
            prices=self.prices,
        )

    @cached_property
    def plain(self) -> Seen:
        rows = [
            row
            for script in self.scripts
            for row in plain_rows(script.segments, self.rules(script.trace_analysis))
        ]
        return counted(rows, self.plan, self.apdex)


def _one(given: Iterable[tuple[str, Mapping[str, T]]], what: str) -> Mapping[str, T]:
    merged: dict[str, T] = {}
    for name, values in given:
        for key, value in values.items():
            if merged.setdefault(key, value) != value:
                raise ScriptError(f"{name}: another script has the {what} '{key}' too")
    return merged
