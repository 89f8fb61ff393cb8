"""Compiles our .proto sources into skyfarer.wire.generated.

protoc derives a module's import path from the path of its .proto file. The sources are therefore
presented to it under the package that will hold the modules, by a virtual include root, and import
each other by that path; no generated line needs repair.

Imports nothing of Skyfarer, since it runs before Skyfarer can be imported.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

PACKAGE = Path("skyfarer/wire/generated")


class StubsError(Exception):
    """The stubs could not be made; the text is one sentence for whoever ran the build."""


def generate(src: Path) -> None:
    """Brings src/skyfarer/wire/generated up to date with src/skyfarer/wire/proto.

    The old stubs stay whole until all new ones exist, and stay untouched when nothing changed, so
    programs started meanwhile import one or the other. Raises StubsError.
    """
    target = src / PACKAGE
    scratch = Path(tempfile.mkdtemp(prefix=".stubs-", dir=target.parent))
    try:
        _compile(src / "skyfarer/wire/proto", scratch)
        fresh = scratch / PACKAGE
        (fresh / "__init__.py").write_text('"""Made by tools/generate_stubs.py; do not edit."""\n')
        if _contents(fresh) != _contents(target):
            _swap(fresh, target, scratch / "old")
    finally:
        shutil.rmtree(scratch)


def _compile(proto: Path, out: Path) -> None:
    sources = sorted(proto.glob("*.proto"))
    if not sources:
        raise StubsError(f"There are no .proto files in {proto}.")
    include = f"--proto_path={PACKAGE}={proto}"
    _protoc([include, f"--python_out={out}", f"--pyi_out={out}"], sources)
    _protoc([include, f"--grpc_python_out={out}"], list(filter(_has_callable_services, sources)))


def _has_callable_services(source: Path) -> bool:
    """The v2 services really have no package: a stub of ours would call a path nobody serves."""
    text = source.read_text()
    return "\nservice " in text and "\npackage skywalking.v2;" not in text


def _protoc(options: Sequence[str], sources: Sequence[Path]) -> None:
    try:
        from grpc_tools import protoc
    except ImportError as error:
        raise StubsError(
            "grpcio-tools is needed to compile the .proto files: pip install grpcio-tools."
        ) from error
    if protoc.main(["protoc", *options, *(str(PACKAGE / source.name) for source in sources)]):
        raise StubsError("protoc refused the .proto files; its messages are above.")


def _contents(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.glob("*") if path.is_file()}


def _swap(fresh: Path, target: Path, old: Path) -> None:
    if target.exists():
        target.rename(old)
    fresh.rename(target)


def main() -> None:
    try:
        generate(Path(__file__).resolve().parent.parent / "src")
    except StubsError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
