from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skyfarer.base.errors import ConfigError
from skyfarer.oap.boot.order import order
from skyfarer.oap.core.modules import Module, Provider


class Part(Provider):
    name = "default"
    config = object

    def __init__(self, module: str, *requires: str, name: str = "default") -> None:
        self.module = Module(module)
        self.requires = requires
        self.name = name


def names(*parts: Part) -> list[str]:
    return [provider.module.name for provider in order(parts)]


def refusal(*parts: Part) -> str:
    with pytest.raises(ConfigError) as refused:
        order(parts)
    return str(refused.value)


def test_what_a_module_requires_starts_before_it() -> None:
    assert names(
        Part("query", "storage", "core"),
        Part("receiver-trace", "receiver-sharing-server", "agent-analyzer"),
        Part("storage", "core"),
        Part("core", "cluster"),
        Part("agent-analyzer", "core", "storage"),
        Part("receiver-sharing-server", "core"),
        Part("cluster"),
    ) == [
        "cluster",
        "core",
        "receiver-sharing-server",
        "storage",
        "agent-analyzer",
        "query",
        "receiver-trace",
    ]


def test_a_required_module_that_is_not_enabled_is_named() -> None:
    assert refusal(Part("query", "storage")) == (
        "provider 'query.default' requires module 'storage', which is not enabled"
    )


def test_a_circle_is_named_without_the_modules_that_only_lead_to_it() -> None:
    assert refusal(
        Part("alarm", "query"),
        Part("query", "storage"),
        Part("storage", "core"),
        Part("core", "query"),
        Part("cluster"),
    ) == ("modules require each other in a circle: query → storage → core → query")


def test_a_module_that_requires_itself_is_a_circle() -> None:
    assert refusal(Part("core", "core")) == ("modules require each other in a circle: core → core")


def test_two_providers_of_one_module_are_refused() -> None:
    assert refusal(Part("storage", name="duckdb"), Part("storage", name="postgresql")) == (
        "provider 'storage.duckdb' and provider 'storage.postgresql' are both chosen"
    )


def test_nothing_chosen_is_nothing_to_start() -> None:
    assert order([]) == []


@st.composite
def acyclic(draw: st.DrawFn) -> list[Part]:
    """Modules that require only modules made before them."""
    made: list[str] = []
    parts: list[Part] = []
    for name in draw(st.lists(st.sampled_from("abcdefghij"), unique=True)):
        parts.append(Part(name, *draw(st.sets(st.sampled_from(made))) if made else ()))
        made.append(name)
    return parts


@given(acyclic(), st.randoms(use_true_random=False))
def test_any_order_of_the_file_gives_the_same_valid_start_order(
    parts: list[Part], random: Random
) -> None:
    shuffled = list(parts)
    random.shuffle(shuffled)
    started: list[str] = []
    for provider in order(shuffled):
        assert set(provider.requires) <= set(started)
        started.append(provider.module.name)

    assert started == names(*parts)
    assert len(started) == len(parts)


@given(acyclic(), st.data())
def test_any_circle_is_refused_as_one(parts: list[Part], data: st.DataObject) -> None:
    ring = data.draw(st.lists(st.sampled_from("klmno"), unique=True, min_size=1))
    circle = [Part(name, ring[(at + 1) % len(ring)]) for at, name in enumerate(ring)]
    sentence = refusal(*parts, *circle)

    shown = sentence.removeprefix("modules require each other in a circle: ").split(" → ")
    assert shown[0] == shown[-1]
    assert sorted(shown[1:]) == sorted(ring)
