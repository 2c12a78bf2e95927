"""Writes the reference pages anew; with `--check` it only tells which are not as the code says."""

import sys
from collections.abc import Sequence
from pathlib import Path

from lint.reference.pages import PAGES, is_current, place_of, write
from lint.reference.sources import ROOT


def main(words: Sequence[str], root: Path = ROOT) -> int:
    """The exit code: 1 where a page is not as the code says, and only that was asked."""
    stale = [name for name in PAGES if not is_current(name, root)]
    if "--check" in words:
        sys.stderr.write("".join(f"{place_of(name)} is not as the code says: make reference\n" for name in stale))
        return int(bool(stale))
    for name in stale:
        write(name, root)
        sys.stdout.write(f"wrote {place_of(name)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
