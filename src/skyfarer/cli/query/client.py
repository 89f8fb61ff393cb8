"""An OAP's public API over HTTP."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Mapping
from http.client import HTTPException, InvalidURL
from typing import Any, Final

from skyfarer.base.errors import ConfigError, PermanentError, RetryableError
from skyfarer.cli.query import defaults

TIMEOUT_S: Final = 30.0
ANSWER_BYTES_MAX: Final = 64 << 20

Data = dict[str, Any]


class Oap:
    """Blocks. One request at a time; nothing is kept open. ConfigError for what is no address."""

    def __init__(self, url: str) -> None:
        self.url = url.rstrip("/")
        if not self.url.startswith(("http://", "https://")):
            raise self._no_address()

    def ask(self, query: str, **variables: Any) -> Data:
        """The data. RetryableError when nobody answers or it is too early, PermanentError when the
        other side refuses, or is no OAP."""
        answer = self._post({"query": query, "variables": variables})
        if errors := answer.get("errors"):
            said = "; ".join(str(error.get("message")) for error in errors[:3])
            raise PermanentError(f"the OAP at {self.url} refuses: {said}")
        data = answer.get("data")
        if not isinstance(data, dict):
            raise self._stranger("without data")
        return data

    def _post(self, body: Mapping[str, Any]) -> Data:
        headers = {"Content-Type": "application/json"}
        try:
            request = urllib.request.Request(
                f"{self.url}/graphql", json.dumps(body).encode(), headers
            )
            # No proxy: it is a port of this machine or its network, whatever the environment says.
            opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
            with opener.open(request, timeout=TIMEOUT_S) as response:
                return self._read(response.read(ANSWER_BYTES_MAX))
        except urllib.error.HTTPError as error:
            raise self._refusal(error) from error
        except OSError as error:
            reason = getattr(error, "reason", error)
            raise RetryableError(
                f"no OAP answers at {self.url}: {reason};"
                " start one with 'skyfarer oap start', or say where it is with --url"
            ) from error
        except (ValueError, InvalidURL) as error:
            raise self._no_address() from error
        except HTTPException as error:
            raise self._stranger(f"no HTTP: {type(error).__name__}") from error

    def _read(self, content: bytes) -> Data:
        try:
            answer = json.loads(content)
        except ValueError:
            answer = None
        if not isinstance(answer, dict):
            raise self._stranger("no JSON")
        return answer

    def _refusal(self, error: urllib.error.HTTPError) -> Exception:
        with error:
            try:
                said = json.loads(error.read(ANSWER_BYTES_MAX))["errors"][0]["message"]
            except (OSError, ValueError, LookupError, TypeError):
                return self._stranger(f"HTTP {error.code}")
        if error.code == 503:
            return RetryableError(f"the OAP at {self.url} cannot answer now: {said}")
        return PermanentError(f"the OAP at {self.url} refuses: {said}")

    def _no_address(self) -> ConfigError:
        return ConfigError(f"--url {self.url!r} is no address such as {defaults.URL}")

    def _stranger(self, what: str) -> PermanentError:
        return PermanentError(
            f"what answers at {self.url} is no OAP ({what}); say where one is with --url"
        )
