"""A real etcd, one member, from Debian's etcd-server."""

from __future__ import annotations

import json
import shutil
import urllib.request
from base64 import b64encode
from collections.abc import Sequence
from pathlib import Path

from skyfarer.testing.programs import free_port
from third_parties.certificates import Shown
from third_parties.servers import Server

TIMEOUT_S = 120.0


class EtcdServer(Server):
    """Its HTTP gateway is for what an operator does."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory, "etcd")
        self._peers = f"http://127.0.0.1:{free_port()}"

    def is_ready(self) -> bool:
        with urllib.request.urlopen(f"http://{self.plain}/health", timeout=TIMEOUT_S) as response:
            return bool(json.load(response)["health"] == "true")

    def command(self) -> Sequence[str]:
        found = shutil.which("etcd")
        assert found, "the tests need Debian's etcd-server"
        urls = ",".join(self.urls())
        return [
            *(found, "--data-dir", str(self.data), "--log-level", "error", "--logger", "zap"),
            *("--listen-client-urls", urls, "--advertise-client-urls", urls),
            *("--listen-peer-urls", self._peers, "--initial-advertise-peer-urls", self._peers),
            *("--initial-cluster", f"default={self._peers}"),
            # An election is waited for at every start; a lease lasts at least 1.5 of these.
            *("--heartbeat-interval", "50", "--election-timeout", "500"),
        ]

    @property
    def plain(self) -> str:
        """Where it answers without TLS."""
        return self.address

    def urls(self) -> Sequence[str]:
        return [f"http://{self.plain}"]

    def ask_for_passwords(self, user: str, password: str) -> None:
        """`user` may do anything, and from now on nobody may without a password."""
        self._post("auth/user/add", name="root", password=password)
        self._post("auth/user/grant", user="root", role="root")
        if user != "root":
            self._post("auth/user/add", name=user, password=password)
            self._post("auth/user/grant", user=user, role="root")
        self._post("auth/enable")

    def delete(self, key: bytes, range_end: bytes) -> None:
        ends = (b64encode(end).decode() for end in (key, range_end))
        self._post("kv/deleterange", **dict(zip(("key", "range_end"), ends, strict=True)))

    def add_user(self, name: str, password: str, token: str) -> None:
        self._post("auth/user/add", token, name=name, password=password)

    def token(self, name: str, password: str) -> str:
        return str(self._post("auth/authenticate", name=name, password=password)["token"])

    def _post(self, path: str, token: str = "", **body: str) -> dict[str, object]:
        headers = {"Authorization": token} if token else {}
        request = urllib.request.Request(
            f"http://{self.plain}/v3/{path}", json.dumps(body).encode(), headers
        )
        with urllib.request.urlopen(request, timeout=TIMEOUT_S) as response:
            answer: dict[str, object] = json.load(response)
        return answer


class SecuredEtcdServer(EtcdServer):
    """Its port is one for TLS, and whoever comes must show a certificate of the authority."""

    def __init__(self, directory: Path, ca: Path, shown: Shown) -> None:
        super().__init__(directory)
        self._ca, self._shown = ca, shown
        self._plain = free_port()

    @property
    def plain(self) -> str:
        return f"127.0.0.1:{self._plain}"

    def urls(self) -> Sequence[str]:
        return [f"https://{self.address}", *super().urls()]

    def command(self) -> Sequence[str]:
        return [
            *super().command(),
            *("--cert-file", str(self._shown.certificate), "--key-file", str(self._shown.key)),
            *("--client-cert-auth", "--trusted-ca-file", str(self._ca)),
        ]
