"""gen-ai-config.yml: who provides which model, and what it costs, as in the original.

    last-updated: 2026-11-01      a note
    providers:
      - provider: openai
        base-url: https://…       a note
        prefix-match: [gpt]       a model whose name begins so is this provider's
        models:
          - name: gpt-5           this model, and whatever else begins so
            aliases: [gpt5]       likewise
            input-estimated-cost-per-m: 1.25      of a million tokens; 0 when it is left out
            output-estimated-cost-per-m: 10

The longest prefix counts. Without a file there are `PROVIDERS`, and no prices: those age.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeVar

from skyfarer.base.config import bind, read_yaml
from skyfarer.base.errors import ConfigError
from skyfarer.oap.core.gen_ai import GenAIModels

NAMES_MAX: Final = 1_000
NAME_CHARS_MAX: Final = 100
COST_MAX: Final = 1e9
PROVIDERS: Final[Mapping[str, str]] = {
    "openai": "gpt chatgpt o1 o3 o4 text-embedding dall-e whisper sora",
    "anthropic": "claude",
    "gemini": "gemini",
    "mistral": "mistral mixtral ministral magistral codestral devstral pixtral",
    "deepseek": "deepseek",
    "bytedance": "doubao",
    "zhipu_ai": "glm",
    "alibaba": "qwen qwq",
    "tencent": "hunyuan Tencent",
    "moonshot": "kimi moonshot",
    "minimax": "minimax MiniMax abab",
    "cohere": "command embed-english embed-multilingual rerank",
    "xai": "grok",
}
"""Provider → prefixes of the names of its models."""
T = TypeVar("T")


@dataclass(frozen=True)
class Model:
    name: str
    aliases: tuple[str, ...] = ()
    input_cost: float = field(default=0.0, metadata={"key": "input-estimated-cost-per-m"})
    output_cost: float = field(default=0.0, metadata={"key": "output-estimated-cost-per-m"})

    def __post_init__(self) -> None:
        if not self.name:
            raise ValueError("name must be that of a model")
        for cost in (self.input_cost, self.output_cost):
            if not 0 <= cost <= COST_MAX:
                raise ValueError(f"a cost must be between 0 and {COST_MAX:.0f}, not {cost}")


@dataclass(frozen=True)
class GenAIProvider:
    provider: str
    prefixes: tuple[str, ...] = field(default=(), metadata={"key": "prefix-match"})
    models: tuple[Model, ...] = ()
    base_url: str = field(default="", metadata={"key": "base-url"})

    def __post_init__(self) -> None:
        if not self.provider:
            raise ValueError("provider must have a name")


@dataclass(frozen=True)
class GenAIConfig:
    providers: tuple[GenAIProvider, ...] = ()
    last_updated: str = field(default="", metadata={"key": "last-updated"})


def gen_ai_models(file: Path | None) -> GenAIModels:
    """ConfigError for a bad file. Blocks."""
    if file is None:
        return GenAIModels(
            {prefix: name for name, prefixes in PROVIDERS.items() for prefix in prefixes.split()}
        )
    document = read_yaml(file, {})
    where = document.where()
    written = bind(GenAIConfig, document.values(), where).providers
    prefixes = ((prefix, one.provider) for one in written for prefix in one.prefixes)
    prices = (
        (name, (model.input_cost, model.output_cost))
        for one in written
        for model in one.models
        for name in (model.name, *model.aliases)
    )
    return GenAIModels(_table(prefixes, "prefix", where), _table(prices, "model", where))


def _table(pairs: Iterable[tuple[str, T]], what: str, where: str) -> dict[str, T]:
    """An empty name is passed over, as in the original."""
    found: dict[str, T] = {}
    for name, value in pairs:
        if len(name) > NAME_CHARS_MAX:
            raise ConfigError(f"{where}: the {what} '{name[:NAME_CHARS_MAX]}…' is too long")
        if name and found.setdefault(name, value) != value:
            raise ConfigError(f"{where}: the {what} '{name}' is there twice")
    if len(found) > NAMES_MAX:
        raise ConfigError(f"{where}: {len(found)} times a {what}, more than {NAMES_MAX}")
    return found
