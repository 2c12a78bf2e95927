"""The folder that the site is built of: the pages at their places, with links that lead to these places."""

import os.path
import re
import shutil
from pathlib import Path, PurePosixPath
from typing import Final

from docs_build.pages import PICTURES, pages, place_of, source_page

CODE: Final = re.compile(r"(^[ >]*```.*?^[ >]*```[^\n]*$|`[^`\n]*`)", re.DOTALL | re.MULTILINE)
COMMENT: Final = re.compile(r"<!--.*?-->", re.DOTALL)
LINK: Final = re.compile(r"(?<=\]\()(?![a-z]+:|#)([^)#\s]+)((?:#[^)\s]*)?)(?=\))")


def stage(root: Path, folder: Path) -> None:
    """Write the pages of a repository below a folder that is empty or absent, with all that they link to."""
    linked: set[PurePosixPath] = set()
    for file, place in pages(root):
        write(folder / place, mended((root / file).read_text(), file, place, linked))
    for target in linked - {file for file, _ in pages(root)}:
        if target.suffix in PICTURES:
            (folder / place_of(target)).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(root / target, folder / place_of(target))
        elif (root / target).exists():  # the check of links tells of those that are absent
            write(folder / place_of(target), source_page(root, target))


def write(path: Path, text: str) -> None:
    """Write a file, in folders that may be absent."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def mended(text: str, file: PurePosixPath, place: PurePosixPath, linked: set[PurePosixPath]) -> str:
    """A page's text as it reads at its place; what it links to is added to `linked`.

    Its lines keep their numbers, so that what the builder tells of a line is true of the file.
    """

    def target(match: re.Match[str]) -> str:
        to = PurePosixPath(os.path.normpath(file.parent / match[1]))
        linked.add(to)
        return os.path.relpath(place_of(to), place.parent) + match[2]

    # A comment may hold blocks of code, so comments go first.
    without_comments = COMMENT.sub(lambda match: "\n" * match[0].count("\n"), text)
    return "".join(part if CODE.fullmatch(part) else LINK.sub(target, part) for part in CODE.split(without_comments))
