"""The OAP as a program: configuration, modules, one line when it serves, a clean end."""

from __future__ import annotations

import logging
import signal
from collections.abc import Mapping
from pathlib import Path

from skyfarer.base.errors import ConfigError, SkyfarerError
from skyfarer.oap.boot.config import Application, construct, load_application
from skyfarer.oap.boot.providers.core import CoreProvider
from skyfarer.oap.boot.settings import CoreConfig, SharingServerConfig
from skyfarer.oap.core.modules import Modules
from skyfarer.telemetry import logs

STOP_TIMEOUT_S = 30.0

log = logging.getLogger(__name__)


def run(config: Path | None, environ: Mapping[str, str]) -> int:
    """Serves until SIGTERM or SIGINT; the exit code. A ConfigError is raised, what has begun by
    then is stopped."""
    application = load_application(config, environ)
    logs.configure("oap", environ.get("SKYFARER_LOG_LEVEL", "INFO"))
    for chatty in ("py4j", "uvicorn"):
        logging.getLogger(chatty).setLevel(logging.WARNING)
    for warning in application.warnings:
        log.warning("%s", warning)
    providers = construct(application)
    core = next((p for p in providers if isinstance(p, CoreProvider)), None)
    if core is None:
        raise ConfigError("module 'core' is turned off, and nothing can run without it")
    for name in (signal.SIGTERM, signal.SIGINT):
        signal.signal(name, lambda _signal, _frame: core.fate.end())
    modules = Modules(providers, STOP_TIMEOUT_S)
    try:
        modules.start()
    except ConfigError:
        raise
    except SkyfarerError as error:
        log.error("cannot start: %s", error)
        return 1
    print(_ready(application), flush=True)
    failure = core.fate.wait()
    log.info("stopping")
    left = modules.stop(STOP_TIMEOUT_S)
    if failure:
        log.error("ended: %s", failure)
    return 1 if failure or left else 0


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
