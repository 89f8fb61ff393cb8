"""Calls a function in a fresh interpreter that holds its module and what that imports, no more.

A fork costs what the process weighs, to make and to end: from pytest, which holds every plugin and
every test, more than twice as much as from a process that holds the room under test.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

_PROGRAM: Final = """
import json, sys
from importlib import import_module
module, function, arguments = sys.argv[1:]
print(json.dumps(getattr(import_module(module), function)(*json.loads(arguments))))
"""


def called_in_small_process(function: Callable[..., Any], *arguments: object) -> Any:
    """Arguments and answer are what JSON can hold. An exception there is printed to our standard
    error and is a CalledProcessError here."""
    module = sys.modules[function.__module__]
    assert module.__file__ is not None
    root = Path(module.__file__).parents[module.__name__.count(".")]
    names = [module.__name__, function.__name__]
    command = [sys.executable, "-c", _PROGRAM, *names, json.dumps(arguments)]
    return json.loads(subprocess.run(command, cwd=root, stdout=subprocess.PIPE, check=True).stdout)
