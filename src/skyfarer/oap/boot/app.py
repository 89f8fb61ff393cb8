"""The OAP as a program: configuration, modules, one line when it serves, a clean end."""

from __future__ import annotations

import logging
import signal
from collections.abc import Mapping
from pathlib import Path

from skyfarer.base.errors import ConfigError, SkyfarerError
from skyfarer.oap.boot.config import construct, load_application
from skyfarer.oap.boot.providers.core import CoreProvider
from skyfarer.oap.boot.settings import CoreConfig
from skyfarer.oap.core.modules import Modules
from skyfarer.telemetry import logs

STOP_TIMEOUT_S = 30.0

log = logging.getLogger(__name__)


def run(config: Path | None, environ: Mapping[str, str]) -> int:
    """Serves until SIGTERM or SIGINT; the exit code. A ConfigError is raised before any start."""
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
    except SkyfarerError as error:
        log.error("cannot start: %s", error)
        return 1
    address = application.config(CoreConfig)
    print(
        f"skyfarer oap is ready: agents at {address.gRPCHost}:{address.gRPCPort} (gRPC), "
        f"queries at http://{address.restHost}:{address.restPort}/graphql",
        flush=True,
    )
    failure = core.fate.wait()
    log.info("stopping")
    left = modules.stop(STOP_TIMEOUT_S)
    if failure:
        log.error("ended: %s", failure)
    return 1 if failure or left else 0
