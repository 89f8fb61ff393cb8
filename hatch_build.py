"""Build hook: the protocol stubs are generated from our .proto sources, for every install."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class StubsBuildHook(BuildHookInterface):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        sys.path.insert(0, str(Path(self.root) / "tools"))
        from generate_stubs import generate

        generate(Path(self.root) / "src")
