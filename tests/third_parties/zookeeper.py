"""A real ZooKeeper, one server, from Debian's libzookeeper-java, whose jar names those it needs."""

from __future__ import annotations

import os
import socket
from collections.abc import Sequence
from pathlib import Path

from skyfarer.oap.pipeline.java import java_home
from skyfarer.testing.programs import free_port
from third_parties.servers import Server

PROBE_TIMEOUT_S = 10.0
JARS = Path("/usr/share/java")
TICK_MS = 250
"""A session lasts 2 to 20 of them, whatever its client asks for."""
PROPERTIES = """
tickTime={tick}
dataDir={data}
clientPort={port}
clientPortAddress=127.0.0.1
admin.enableServer=false
4lw.commands.whitelist=srvr
"""
SECURED = """
secureClientPort={port}
secureClientPortAddress=127.0.0.1
serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory
ssl.keyStore.location={shown}
ssl.trustStore.location={ca}
ssl.clientAuth=need
"""
NETTY = tuple(f"netty-{name}.jar" for name in ("codec", "resolver", "transport-native-unix-common"))
"""What the jar does not name, and TLS needs."""
OPTIONS = ("-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")


def serves(port: int) -> bool:
    """It listens before it serves, and leaves whoever comes in between without an answer."""
    with socket.create_connection(("127.0.0.1", port), PROBE_TIMEOUT_S) as asked:
        asked.sendall(b"srvr")
        return b"Mode: " in asked.makefile("rb").read()


class ZooKeeperServer(Server):
    def __init__(self, directory: Path) -> None:
        super().__init__(directory, "zookeeper")
        self._java = java_home(os.environ, directory) / "bin" / "java"

    def is_ready(self) -> bool:
        return serves(self.port)

    def properties(self) -> str:
        return PROPERTIES.format(tick=TICK_MS, data=self.data, port=self.port)

    def command(self) -> Sequence[str]:
        properties = self.directory / "zookeeper.cfg"
        properties.write_text(self.properties())
        jars = ":".join(str(JARS / name) for name in ("zookeeper.jar", "slf4j-simple.jar", *NETTY))
        main = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
        return [str(self._java), *OPTIONS, "-cp", jars, main, str(properties)]


class SecuredZooKeeperServer(ZooKeeperServer):
    """Its port is one for TLS, and whoever comes must show a certificate of the authority; `plain`
    is another, without."""

    def __init__(self, directory: Path, ca: Path, shown: Path) -> None:
        super().__init__(directory)
        self._ca, self._shown = ca, shown
        self._plain = free_port()

    @property
    def plain(self) -> str:
        return f"127.0.0.1:{self._plain}"

    def properties(self) -> str:
        whole = PROPERTIES.format(tick=TICK_MS, data=self.data, port=self._plain)
        return whole + SECURED.format(port=self.port, shown=self._shown, ca=self._ca)

    def is_ready(self) -> bool:
        return serves(self._plain)
