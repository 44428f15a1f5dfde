"""Build the documentation into build/docs and check its links: `python .docs`."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from links import faults
from pages import write_pages
from sphinx.cmd.build import build_main

HERE = Path(__file__).parent
BUILD = HERE.parent / "build"


def main() -> int:
    """Write pages, render them with every warning an error, and follow every link."""
    source, target = BUILD / "docs-source", BUILD / "docs"
    write_pages(source)
    shutil.rmtree(target, ignore_errors=True)
    options = ["-q", "-b", "html", "-E", "-j", "auto", "-W", "--keep-going", "-c", str(HERE)]
    failed = build_main([*options, "-d", str(BUILD / "docs-cache"), str(source), str(target)])
    broken = faults(target)
    print("\n".join(broken) or f"docs  {target.relative_to(HERE.parent)}/index.html", file=sys.stderr)
    return 1 if failed or broken else 0


if __name__ == "__main__":
    sys.exit(main())
