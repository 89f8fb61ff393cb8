"""The OAP as a program: configuration, modules, one line when it serves, a clean end."""

from __future__ import annotations

import logging
import signal
from collections.abc import Callable, Mapping
from pathlib import Path

from skyfarer.base.errors import ConfigError, SkyfarerError
from skyfarer.oap.boot.config import Application, construct, load_application, unshared
from skyfarer.oap.boot.effective import effective
from skyfarer.oap.boot.providers.core import CoreProvider
from skyfarer.oap.boot.settings import CoreConfig, SharingServerConfig
from skyfarer.oap.boot.settling import settled
from skyfarer.oap.core.modes import RunningMode
from skyfarer.oap.core.modules import Modules
from skyfarer.telemetry import logs

STOP_TIMEOUT_S = 30.0
MODE = "SKYFARER_MODE"

log = logging.getLogger(__name__)


def run(config: Path | None, environ: Mapping[str, str], mode: str | None = None) -> int:
    """Serves until SIGTERM or SIGINT, or ends when all is made; the exit code. A ConfigError is
    raised, what has begun by then is stopped. Where no mode is given the environment says it."""
    running = _mode(environ.get(MODE, "") if mode is None else mode)
    application = load_application(config, environ)
    logs.configure("oap", environ.get("SKYFARER_LOG_LEVEL", "INFO"))
    for chatty in ("py4j", "uvicorn"):
        logging.getLogger(chatty).setLevel(logging.WARNING)
    for warning in application.warnings:
        log.warning("%s", warning)
    providers = construct(application)
    for warning in unshared(providers):
        log.warning("%s", warning)
    core = next((p for p in providers if isinstance(p, CoreProvider)), None)
    if core is None:
        raise ConfigError("module 'core' is turned off, and nothing can run without it")
    core.effective = effective(application)
    core.mode = running
    _on_signal(_told_to_stop)
    modules = Modules(providers, STOP_TIMEOUT_S)
    try:
        if running is RunningMode.INIT:
            modules.install()
            print("skyfarer oap: the tables of storage are made", flush=True)
            return 0
        modules.start()
        _on_signal(core.fate.end)
    except _ToldToStop:
        left = modules.stop(STOP_TIMEOUT_S)
        log.info("stopped while starting")
        return 1 if left else 0
    except ConfigError:
        raise
    except SkyfarerError as error:
        log.error("cannot start: %s", error)
        return 1
    with settled():
        print(_ready(application), flush=True)
        failure = core.fate.wait()
    log.info("stopping")
    left = modules.stop(STOP_TIMEOUT_S)
    if failure:
        log.error("ended: %s", failure)
    return 1 if failure or left else 0


class _ToldToStop(BaseException):
    """By a signal, while it starts: whatever the main thread does then is broken off."""


def _told_to_stop() -> None:
    _on_signal(lambda: None)  # what has begun is being stopped: once is enough
    raise _ToldToStop


def _on_signal(act: Callable[[], None]) -> None:
    for name in (signal.SIGTERM, signal.SIGINT):
        signal.signal(name, lambda _signal, _frame: act())


def _mode(asked: str) -> RunningMode:
    try:
        return RunningMode(asked)
    except ValueError:
        raise ConfigError(f"{MODE} is {asked!r}; there are: init, no-init") from None


def _ready(application: Application) -> str:
    core = application.config(CoreConfig)
    configs = (one.config for one in application.chosen)
    own = next((one for one in configs if isinstance(one, SharingServerConfig)), None)
    grpc = own if own is not None and own.gRPCPort else core
    http = own if own is not None and own.restPort else core
    scheme = "https" if core.restSSLEnabled else "http"
    agents = (
        f"agents at {grpc.gRPCHost}:{grpc.gRPCPort} (gRPC)"
        f" and {http.restHost}:{http.restPort} (HTTP)"
    )
    if core.role == "Aggregator":
        agents = "an Aggregator, without receivers"
    queries = f"{scheme}://{core.restHost}:{core.restPort}/graphql"
    return f"skyfarer oap is ready: {agents}, queries at {queries}"
