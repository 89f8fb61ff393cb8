"""A real ZooKeeper, one server, from Debian's libzookeeper-java, whose jar names those it needs."""

from __future__ import annotations

import os
import socket
from collections.abc import Sequence
from pathlib import Path

from skyfarer.oap.pipeline.java import java_home
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
OPTIONS = ("-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")


class ZooKeeperServer(Server):
    def __init__(self, directory: Path) -> None:
        super().__init__(directory, "zookeeper")
        self._java = java_home(os.environ, directory) / "bin" / "java"

    def is_ready(self) -> bool:
        """It listens before it serves, and leaves whoever comes in between without an answer."""
        with socket.create_connection(("127.0.0.1", self.port), PROBE_TIMEOUT_S) as asked:
            asked.sendall(b"srvr")
            return b"Mode: " in asked.makefile("rb").read()

    def command(self) -> Sequence[str]:
        properties = self.directory / "zookeeper.cfg"
        properties.write_text(PROPERTIES.format(tick=TICK_MS, data=self.data, port=self.port))
        jars = ":".join(str(JARS / name) for name in ("zookeeper.jar", "slf4j-simple.jar"))
        main = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
        return [str(self._java), *OPTIONS, "-cp", jars, main, str(properties)]
