"""Which metrics this OAP makes: the shipped definitions it is told to use, and the user's own.

    agent-analyzer.default.oalActiveFiles   names of shipped files: core, java-agent, …
    agent-analyzer.default.oalFiles         files of the user's, or directories of them

All of them are one plan, made once, before a port is taken. Whatever is wrong, in any file, is one
ConfigError with a line for each mistake.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from skyfarer.base.binding import nearest
from skyfarer.base.errors import ConfigError
from skyfarer.oap.oal.compiler import Text, compile_texts, listed, shipped
from skyfarer.oap.oal.parser import TEXT_CHARS_MAX
from skyfarer.oap.oal.plan import Plan

SUFFIX: Final = ".oal"
FILES_MAX: Final = 100
METRICS_MAX: Final = 2_000


def plan_from(active: Iterable[str], own: Iterable[Path]) -> Plan:
    """Blocks on the files. `active` are names of shipped files, `own` paths of further ones."""
    compiled = compile_texts((*_shipped(active), *map(read, _files(own))))
    if compiled.problems:
        raise ConfigError(f"definitions of metrics have mistakes:\n{listed(compiled.problems)}")
    metrics = len(compiled.metrics)
    if metrics > METRICS_MAX:
        raise ConfigError(f"{metrics} metrics are defined, more than {METRICS_MAX}")
    return compiled.plan


def read(file: Path) -> Text:
    """ConfigError for a file that cannot be read, or is not UTF-8."""
    try:
        # One more than the parser takes, so that it is the one to say what is too long.
        with file.open(encoding="utf-8") as text:
            return Text(str(file), text.read(TEXT_CHARS_MAX + 1))
    except OSError as error:
        raise ConfigError(f"{file} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{file} is not UTF-8; save it as such") from error


def _shipped(active: Iterable[str]) -> Iterator[Text]:
    known = {text.file.removesuffix(SUFFIX): text for text in shipped()}
    for name in dict.fromkeys(active):
        if name not in known:
            complaint = f"oalActiveFiles names '{name}', which does not come with the program"
            raise ConfigError(f"agent-analyzer.default: {complaint}{nearest(name, known)}")
        yield known[name]


def _files(own: Iterable[Path]) -> list[Path]:
    """A directory stands for its `.oal` files, by name; a file that is given twice counts once."""
    found: dict[Path, None] = {}
    for path in own:
        found.update(dict.fromkeys(_inside(path) if path.is_dir() else [path]))
    if len(found) > FILES_MAX:
        raise ConfigError(
            f"agent-analyzer.default: oalFiles are {len(found)} files, more than {FILES_MAX};"
            " join some of them"
        )
    return list(found)


def _inside(directory: Path) -> list[Path]:
    try:
        return sorted(path for path in directory.iterdir() if path.suffix == SUFFIX)
    except OSError as error:
        raise ConfigError(f"{directory} cannot be read: {error.strerror}") from error
