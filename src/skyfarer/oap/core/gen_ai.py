"""Whose a model of generative AI is, and what it costs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class GenAIModels:
    """By prefixes of a model's name, the longest of which counts: its provider, unless a span names
    another, and what a million tokens of input and of output cost, each 0 to 1e9."""

    providers: Mapping[str, str] = field(default_factory=dict)
    prices: Mapping[str, tuple[float, float]] = field(default_factory=dict)
