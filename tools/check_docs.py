"""Checks the documentation: every relative link leads somewhere, every named source path exists."""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
LINK = re.compile(r"\]\((?!https?:|#)([^)#\s]+)(?:#[^)]*)?\)")
SOURCE = re.compile(r"`((?:src|tests|benchmarks|tools|docs)/[\w./-]+\.\w+)`")


def problems(page: Path) -> list[str]:
    text = page.read_text()
    links = [(page.parent / link, link) for link in LINK.findall(text)]
    sources = [(ROOT / name, name) for name in SOURCE.findall(text)]
    missing = [name for path, name in links + sources if not path.exists()]
    return [f"{page.relative_to(ROOT)}: {name} does not exist" for name in missing]


def main() -> int:
    pages = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]
    found = [line for page in sorted(pages) for line in problems(page)]
    print("\n".join(found) or f"{len(pages)} pages, every link leads somewhere")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
