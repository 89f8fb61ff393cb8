from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skyfarer.base.binding import bind, nearest
from skyfarer.base.errors import ConfigError

WHERE = "application.yml: core.default"


@dataclass(frozen=True)
class Peer:
    host: str
    port: int = 1


@dataclass(frozen=True)
class Everything:
    gRPCPort: int = 11800  # noqa: N815
    ratio: float = 0.5
    enabled: bool = False
    name: str = "x"
    directory: Path = Path("data")
    optional: int | None = None
    role: Literal["Mixed", "Receiver"] = "Mixed"
    names: list[str] = field(default_factory=list)
    numbers: tuple[int, ...] = ()
    labels: dict[str, int] = field(default_factory=dict)
    peers: list[Peer] = field(default_factory=list)
    peer: Peer | None = None

    def __post_init__(self) -> None:
        if self.gRPCPort < 0:
            raise ValueError(f"gRPCPort must be at least 0, not {self.gRPCPort}")


@dataclass(frozen=True)
class Needs:
    address: str


def refusal(cls: type[Any], values: dict[str, object]) -> str:
    with pytest.raises(ConfigError) as refused:
        bind(cls, values, WHERE)
    return str(refused.value)


def test_absent_keys_keep_their_defaults() -> None:
    assert bind(Everything, {}, WHERE) == Everything()


@pytest.mark.parametrize(
    ("key", "written", "bound"),
    [
        ("gRPCPort", "80", 80),
        ("gRPCPort", 80, 80),
        ("gRPCPort", "+80", 80),
        ("ratio", "0.25", 0.25),
        ("ratio", "1e-3", 0.001),
        ("ratio", 2, 2.0),
        ("enabled", "true", True),
        ("enabled", "False", False),
        ("enabled", True, True),
        ("name", "0123", "0123"),
        ("name", "yes", "yes"),
        ("name", None, ""),
        ("directory", "./data", Path("data")),
        ("optional", "", None),
        ("optional", None, None),
        ("optional", "3", 3),
        ("role", "Receiver", "Receiver"),
        ("names", ["a", "b"], ["a", "b"]),
        ("names", "a, b,", ["a", "b"]),
        ("names", "[Hour, Day]", ["Hour", "Day"]),
        ("names", None, []),
        ("numbers", "1,2", (1, 2)),
        ("labels", {"a": "1"}, {"a": 1}),
        ("peers", [{"host": "h", "port": "2"}], [Peer("h", 2)]),
        ("peer", {"host": "h"}, Peer("h")),
    ],
)
def test_a_value_takes_the_type_of_its_field(key: str, written: object, bound: object) -> None:
    assert getattr(bind(Everything, {key: written}, WHERE), key) == bound


@pytest.mark.parametrize(
    ("key", "written", "sentence"),
    [
        ("gRPCPort", "12x", ".gRPCPort must be a whole number, not '12x'"),
        ("gRPCPort", "1.0", ".gRPCPort must be a whole number, not '1.0'"),
        ("gRPCPort", " 1", ".gRPCPort must be a whole number, not ' 1'"),
        ("gRPCPort", "", ".gRPCPort must be a whole number, not empty"),
        ("gRPCPort", None, ".gRPCPort must be a whole number, not empty"),
        ("gRPCPort", True, ".gRPCPort must be a whole number, not True"),
        ("gRPCPort", ["1"], ".gRPCPort must be a whole number, not ['1']"),
        ("gRPCPort", "-1", ": gRPCPort must be at least 0, not -1"),
        ("ratio", "nan", ".ratio must be a number, not 'nan'"),
        ("ratio", "half", ".ratio must be a number, not 'half'"),
        ("enabled", "yes", ".enabled must be true or false, not 'yes'"),
        ("enabled", 1, ".enabled must be true or false, not 1"),
        ("name", {"a": "b"}, ".name must be text, not {'a': 'b'}"),
        ("directory", "", ".directory must be a path, not empty"),
        ("role", "receiver", ".role is 'receiver'; did you mean 'Receiver'?"),
        ("names", {"a": "b"}, ".names must be a list, not {'a': 'b'}"),
        ("numbers", "1,x", ".numbers must be a whole number, not 'x'"),
        ("labels", "a", ".labels must hold keys and values, not 'a'"),
        ("labels", {"a": "b"}, ".labels.a must be a whole number, not 'b'"),
        ("peer", {"port": "1"}, ".peer needs a value for 'host'"),
        ("peers", [{"hots": "h"}], ".peers has no key 'hots'; did you mean 'host'?"),
    ],
)
def test_a_wrong_value_is_one_sentence_with_file_and_key(
    key: str, written: object, sentence: str
) -> None:
    assert refusal(Everything, {key: written}) == WHERE + sentence


def test_an_unknown_key_names_the_nearest_valid_one() -> None:
    assert (
        refusal(Everything, {"gRPCprt": "1"})
        == f"{WHERE} has no key 'gRPCprt'; did you mean 'gRPCPort'?"
    )


def test_an_unknown_key_like_no_other_lists_the_valid_ones() -> None:
    assert refusal(Needs, {"zzz": "1"}) == f"{WHERE} has no key 'zzz'; there are: address"


def test_a_required_key_must_be_given() -> None:
    assert refusal(Needs, {}) == f"{WHERE} needs a value for 'address'"


def test_a_key_at_the_top_of_a_file_is_named_after_it() -> None:
    with pytest.raises(ConfigError, match=r"^satellite\.yml: gRPCPort must be"):
        bind(Everything, {"gRPCPort": "x"}, "satellite.yml")


def test_nearest_ignores_case() -> None:
    assert nearest("GRPCPORT", ["gRPCPort", "restPort"]) == "; did you mean 'gRPCPort'?"


@given(st.integers(-(10**18), 10**18))
def test_every_whole_number_is_read_back(number: int) -> None:
    assert bind(Everything, {"optional": str(number)}, WHERE).optional == number


@given(st.text(), st.sampled_from(["gRPCPort", "ratio", "enabled", "role", "numbers"]))
def test_no_text_brings_anything_but_a_value_or_a_sentence(text: str, key: str) -> None:
    try:
        bind(Everything, {key: text}, WHERE)
    except ConfigError as refused:
        assert str(refused).startswith(WHERE)


@dataclass(frozen=True)
class Hyphened:
    base_url: str = field(default="", metadata={"key": "base-url"})


def test_a_key_that_is_no_name_in_python_is_in_the_metadata_of_its_field() -> None:
    assert bind(Hyphened, {"base-url": "a"}, WHERE) == Hyphened("a")
    with pytest.raises(ConfigError, match="did you mean 'base-url'"):
        bind(Hyphened, {"base_url": "a"}, WHERE)
