"""Build the site and judge it: `python -m docs_build [FOLDER]`, else below build/docs; exit code 1 for any fault."""

import sys
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Final

from docs_build import links, markdown
from docs_build.building import CONFIG, ROOT, build
from docs_build.llms import write_llms
from docs_build.nav import Placed, read_contents
from docs_build.pages import pages
from docs_build.searching import index

FOLDER: Final = ROOT / "build" / "docs"


def main(folder: Path) -> int:
    """Build below a folder, and tell of every fault."""
    folder.mkdir(parents=True, exist_ok=True)
    contents = read_contents(CONFIG)
    faults = [*unplaced(contents.nav), *markdown.broken_links(ROOT, [file for file, _ in pages(ROOT)])]
    if not faults:
        faults += build(folder)
    if not faults:
        write_llms(folder / "site", folder / "pages", contents)
        index(folder / "site")
        faults += chain(links.broken_links(folder / "site"), misread(folder))
    sys.stderr.writelines(f"{fault}\n" for fault in faults)
    return 1 if faults else 0


def unplaced(nav: list[Placed]) -> Iterator[str]:
    """A line for each page that stands not once in the nav."""
    places = [placed.place for placed in nav]
    for file, place in pages(ROOT):
        if places.count(str(place)) != 1:
            yield f"{file}: the nav of {CONFIG.name} has {place} {places.count(str(place))} times, not once"


def misread(folder: Path) -> Iterator[str]:
    """A line for each page whose tables, lists or blocks of code are not those that GitHub makes of the same text."""
    for file, place in pages(ROOT):
        text = (folder / "pages" / place).read_text()
        on_github = markdown.Page(text).shape
        on_site = links.Page((folder / "site" / place).with_suffix(".html").read_text()).shape
        if on_github != on_site and "\n::: " not in text:  # which only the site has docstrings for
            yield f"{file}: GitHub shows {dict(on_github)}, the site {dict(on_site)}"


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).absolute() if len(sys.argv) > 1 else FOLDER))
