"""What the configuration of the HTTP server allows, and which paths its receivers stand for."""

from __future__ import annotations

from pathlib import Path

import pytest

from skyfarer.satellite.gatherers.http import HttpAcceptLimitConfig, HttpServerConfig
from skyfarer.satellite.receivers import HTTP_RECEIVERS
from skyfarer.wire.http.endpoints import ENDPOINTS, Dialect
from skyfarer.wire.rpc import FORWARD


def test_the_receivers_of_the_configuration_stand_for_all_that_can_be_sent_onward() -> None:
    """But for v2, whose agents would have to be given an id first."""
    served = [one for one in ENDPOINTS.values() if one.dialect is not Dialect.V2]
    onward = {one.path for one in served if one.kind in FORWARD}
    assert {path for paths in HTTP_RECEIVERS.values() for path in paths} == onward


@pytest.mark.parametrize(
    "keys",
    [
        {"address": "nowhere"},
        {"max_body_size": 0},
        {"header_timeout": "0s"},
        {"idle_timeout": "soon"},
        {"accept_limit": HttpAcceptLimitConfig(connection_count=0)},
    ],
)
def test_a_configuration_that_cannot_be_meant_is_refused(keys: dict[str, object]) -> None:
    with pytest.raises(ValueError):
        HttpServerConfig(**keys)  # type: ignore[arg-type]


def test_a_certificate_without_its_key_is_refused() -> None:
    with pytest.raises(ValueError, match="go together"):
        HttpServerConfig(tls_cert_file=Path("server.pem"))
    with pytest.raises(ValueError, match="needs tls_cert_file"):
        HttpServerConfig(tls_client_ca_file=Path("ca.pem"))
