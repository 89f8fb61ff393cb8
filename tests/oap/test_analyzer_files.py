"""The files beside application.yml: gateways, Apdex thresholds, sampling and generative AI."""

from __future__ import annotations

from pathlib import Path

import pytest

from skyfarer.base.errors import ConfigError
from skyfarer.oap.boot.apdex import SERVICES_MAX, apdex_thresholds_ms
from skyfarer.oap.boot.gateways import gateway_addresses
from skyfarer.oap.boot.gen_ai import NAMES_MAX, gen_ai_models
from skyfarer.oap.boot.sampling import STOCK, sampling_policies
from skyfarer.oap.core.sampling import Policy, Sampling

GATEWAYS = """
gateways:
  - name: proxy0
    instances:
      - host: 10.0.0.7
        port: 9099
      - host: proxy.local
  - name: proxy1
    instances:
      - {host: 10.0.0.8, port: 0}
  - name: idle
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "beside.yml"


def test_a_gateway_is_known_by_its_addresses_on_port_80_unless_told_otherwise(file: Path) -> None:
    file.write_text(GATEWAYS)

    assert gateway_addresses(file) == {"10.0.0.7:9099", "proxy.local:80", "10.0.0.8:80"}


def test_a_threshold_is_that_of_a_service_or_the_default(file: Path) -> None:
    file.write_text("default: 400\ncheckout: 1000\n")

    assert apdex_thresholds_ms(file) == {"default": 400, "checkout": 1000}


def test_no_file_and_an_empty_one_say_nothing(file: Path) -> None:
    file.write_text("# gateways:\n")

    assert gateway_addresses(None) == gateway_addresses(file) == frozenset()
    assert apdex_thresholds_ms(None) == apdex_thresholds_ms(file) == {}


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("gateway: []", "beside.yml has no key 'gateway'; did you mean 'gateways'?"),
        ("gateways: [{name: a, instances: [{port: 1}]}]", "needs a value for 'host'"),
        ("gateways: [{name: a, instances: [{host: b, port: c}]}]", "must be a whole number"),
    ],
)
def test_a_gateway_that_cannot_be_read_is_one_sentence(
    file: Path, text: str, sentence: str
) -> None:
    file.write_text(text)
    with pytest.raises(ConfigError, match=sentence) as refused:
        gateway_addresses(file)
    assert str(refused.value).startswith("beside.yml") and "\n" not in str(refused.value)


@pytest.mark.parametrize("value", ["-1", "0", "fast", "1.5", "[1]", ""])
def test_a_threshold_that_is_no_time_is_one_sentence(file: Path, value: str) -> None:
    file.write_text(f"checkout: {value}\n")
    with pytest.raises(ConfigError, match=r"beside\.yml: checkout must be milliseconds"):
        apdex_thresholds_ms(file)


def test_thresholds_are_bounded(file: Path) -> None:
    file.write_text("\n".join(f"service-{number}: 1" for number in range(SERVICES_MAX + 1)))
    with pytest.raises(ConfigError, match="has 1001 entries, more than 1000"):
        apdex_thresholds_ms(file)


def test_a_sampling_policy_goes_before_the_numbers_of_the_configuration(file: Path) -> None:
    file.write_text("default: {rate: 5}\nservices: [{name: a, duration: 30}, {name: b, rate: 0}]")
    sampling = sampling_policies(file, Policy(9, 40), errors=False)

    assert [sampling.rate(name) for name in "abc"] == [5, 0, 5]
    assert [sampling.duration_ms(name) for name in "abc"] == [30, 40, 40]
    assert not sampling.errors


def test_a_stock_sampling_file_need_not_be_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    for absent in (None, STOCK):
        assert sampling_policies(absent, Policy(9, 40), True) == Sampling(Policy(9, 40))


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("default: {rate: 10001}", "rate must be between 0 and 10000"),
        ("default: {duration: -2}", "duration must be milliseconds, or -1"),
        ("services: [{rate: 1}]", "name must be that of a service"),
        ("default: {rat: 1}", "did you mean 'rate'?"),
    ],
)
def test_a_sampling_policy_that_cannot_be_read_is_one_sentence(
    file: Path, text: str, sentence: str
) -> None:
    file.write_text(text)

    with pytest.raises(ConfigError) as refused:
        sampling_policies(file, Policy(), True)
    assert sentence in str(refused.value) and "beside.yml" in str(refused.value)


GEN_AI = """
last-updated: 2026-03-23
providers:
  - provider: plato
    base-url: https://plato.example
    prefix-match: [sage, wise]
    models:
      - name: sage-2
        aliases: [sage2]
        input-estimated-cost-per-m: 2.5
        output-estimated-cost-per-m: 10
      - name: sage-1
        output-estimated-cost-per-m: 1
  - provider: ollama
    prefix-match:
"""


def test_a_model_has_a_provider_and_a_price_by_what_its_name_begins_with(file: Path) -> None:
    file.write_text(GEN_AI)
    known = gen_ai_models(file)

    assert known.providers == {"sage": "plato", "wise": "plato"}
    assert known.prices == {"sage-2": (2.5, 10), "sage2": (2.5, 10), "sage-1": (0, 1)}


def test_without_a_file_the_known_providers_are_there_and_no_prices(file: Path) -> None:
    known = gen_ai_models(None)

    assert known.providers["gpt"] == "openai" and known.providers["claude"] == "anthropic"
    assert known.prices == {}
    file.write_text("")
    assert gen_ai_models(file).providers == {}


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("providers: [{prefix-match: [a]}]", "needs a value for 'provider'"),
        ("providers: [{provider: ''}]", "provider must have a name"),
        ("providers: [{provider: a, prefix_match: [a]}]", "did you mean 'prefix-match'?"),
        ("providers: [{provider: a, prefix-match: {b: c}}]", "prefix-match must be a list"),
        ("providers: [{provider: a, models: [{name: ''}]}]", "name must be that of a model"),
        (
            "providers: [{provider: a, models: [{name: b, input-estimated-cost-per-m: free}]}]",
            "input-estimated-cost-per-m must be a number",
        ),
        (
            "providers: [{provider: a, models: [{name: b, output-estimated-cost-per-m: -1}]}]",
            "a cost must be between 0 and 1000000000",
        ),
        (
            "providers: [{provider: a, prefix-match: [c]}, {provider: b, prefix-match: [c]}]",
            "the prefix 'c' is there twice",
        ),
        (f"providers: [{{provider: a, prefix-match: [{'c' * 101}]}}]", "is too long"),
        (
            f"providers: [{{provider: a, prefix-match: {[*map(str, range(NAMES_MAX + 1))]}}}]",
            "1001 times a prefix, more than 1000",
        ),
    ],
)
def test_models_that_cannot_be_read_are_one_sentence(file: Path, text: str, sentence: str) -> None:
    file.write_text(text)

    with pytest.raises(ConfigError) as refused:
        gen_ai_models(file)
    assert sentence in str(refused.value) and "\n" not in str(refused.value)
    assert str(refused.value).startswith("beside.yml")
