from __future__ import annotations

import os
from pathlib import Path

import pytest

from skyfarer.base.config import FILE_BYTES_MAX, Document, parse_yaml, read_yaml
from skyfarer.base.errors import ConfigError, PermanentError


def parsed(text: str, **environ: str) -> Document:
    return parse_yaml(text, "application.yml", environ)


def refusal(text: str, **environ: str) -> str:
    with pytest.raises(ConfigError) as refused:
        parsed(text, **environ).values()
    assert "\n" not in str(refused.value)
    return str(refused.value)


def test_scalars_stay_the_text_that_was_written() -> None:
    document = parsed("a: 0123\nb: yes\nc: 12:30\nd: 2026-11-15\ne: '1'\nf: ~\ng:\nh: ''")

    assert document.values() == {
        "a": "0123",
        "b": "yes",
        "c": "12:30",
        "d": "2026-11-15",
        "e": "1",
        "f": None,
        "g": None,
        "h": "",
    }


def test_placeholders_are_filled_in_at_every_depth() -> None:
    document = parsed("a:\n  b: ${X:1}\n  c: [\"${Y:2}\", 'http://${H:h}/']\n", Y="z")

    assert document.values() == {"a": {"b": "1", "c": ["z", "http://h/"]}}


def test_a_section_that_is_not_asked_for_needs_none_of_its_environment() -> None:
    document = parsed("used:\n  a: ${X:1}\nunused:\n  b: ${NOT_SET}\n")

    assert document.section("used") == {"a": "1"}


def test_an_absent_or_empty_section_has_no_keys() -> None:
    document = parsed("a:\n  b:\n")

    assert document.section("a", "b") == {}
    assert document.section("a", "zzz", "deeper") == {}
    assert document.value("a", "zzz") is None


def test_a_section_that_is_a_value_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"^application\.yml: a\.b must hold keys and values"):
        parsed("a:\n  b: 1\n").section("a", "b")


def test_an_empty_file_has_no_keys() -> None:
    assert parsed("").values() == {}
    assert parsed("# only a comment\n").values() == {}


def test_an_unclosed_placeholder_names_file_and_key() -> None:
    assert refusal("core:\n  port: ${P:1\n") == (
        "application.yml: core.port has a placeholder without its closing brace: '${P:1'"
    )


def test_a_variable_without_default_that_is_not_set_is_named() -> None:
    assert refusal("a: ${TOKEN}") == (
        "application.yml: a needs the environment variable TOKEN, which is not set"
    )


def test_a_key_given_twice_names_both_lines() -> None:
    assert refusal("core:\n  a: 1\n  b: 2\n  a: 3\n") == (
        "application.yml: the key 'a' is given twice, in lines 2 and 4"
    )


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("a: [1", "is not YAML: expected ',' or ']', but got"),
        ("a: b: c", "is not YAML: mapping values are not allowed here in line 1, column 5"),
        ("a: 'x", "is not YAML"),
        ("\ta: 1", "is not YAML"),
        ("a: \x00", "is not YAML"),
        ("- a\n- b\n", "must hold keys and values at its top"),
        ("text", "must hold keys and values at its top"),
        ("? [a]\n: 1\n", "line 1: a key must be text"),
        ("a: !!python/object/apply:os.system [ls]", "is not allowed"),
        ("a: &x [1]\nb: *x\n", "an alias is not allowed in line 2"),
        ("a: " + "[" * 5000, "is nested too deep"),
    ],
)
def test_what_is_no_plain_configuration_is_one_sentence(text: str, sentence: str) -> None:
    complaint = refusal(text)

    assert complaint.startswith("application.yml")
    assert sentence in complaint


def test_a_file_that_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "missing.yml"

    with pytest.raises(ConfigError) as refused:
        read_yaml(path, {})

    assert str(refused.value) == f"{path} cannot be read: No such file or directory"


def test_a_directory_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read: Is a directory"):
        read_yaml(tmp_path, {})


def test_bytes_that_are_no_text_are_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "a.yml"
    path.write_bytes(b"a: \xff\xfe\xff")

    with pytest.raises(ConfigError, match=r"^a\.yml is not YAML"):
        read_yaml(path, {})


def test_an_oversized_file_is_refused_without_being_read_whole(tmp_path: Path) -> None:
    path = tmp_path / "big.yml"
    path.touch()
    os.truncate(path, 100 * FILE_BYTES_MAX)

    with pytest.raises(ConfigError, match="is larger than"):
        read_yaml(path, {})


def test_a_file_is_read_and_named_by_its_last_part(tmp_path: Path) -> None:
    path = tmp_path / "application.yml"
    path.write_text("a: ${A:é}\n", encoding="utf-8")
    document = read_yaml(path, {})

    assert document.values() == {"a": "é"}
    assert document.where("a", "b") == "application.yml: a.b"
    assert document.where() == "application.yml"


def test_a_wrong_configuration_is_a_permanent_error() -> None:
    assert issubclass(ConfigError, PermanentError)
