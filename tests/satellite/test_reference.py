from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_reference_page_is_what_the_source_says() -> None:
    tool = ROOT / "tools" / "satellite_reference.py"

    checked = subprocess.run(
        [sys.executable, str(tool), "--check"], capture_output=True, text=True, check=False
    )

    assert checked.returncode == 0, checked.stderr
