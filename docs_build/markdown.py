"""Pages as GitHub reads them: their links and anchors, and their tables, lists and blocks of code."""

import os.path
import re
from collections import Counter
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Final

from markdown_it import MarkdownIt
from markdown_it.token import Token

READER: Final = MarkdownIt("commonmark").enable("table")
COUNTED: Final = {
    "heading_open": "headings",
    "bullet_list_open": "lists",
    "ordered_list_open": "lists",
    "list_item_open": "items",
    "tr_open": "rows",
    "fence": "blocks",
    "image": "pictures",
}


class Page:
    """One file of Markdown."""

    def __init__(self, text: str) -> None:
        self._tokens = READER.parse(text)

    @cached_property
    def anchors(self) -> set[str]:
        """The anchors of its headings, as GitHub names them."""
        seen: Counter[str] = Counter()
        anchors = set()
        for heading, inline in zip(self._tokens, self._tokens[1:], strict=False):
            if heading.type == "heading_open":
                slug = slug_of(inline)
                anchors.add(f"{slug}-{seen[slug]}" if seen[slug] else slug)
                seen[slug] += 1
        return anchors

    @cached_property
    def links(self) -> list[str]:
        """What it links to and shows, but for addresses of hosts."""
        addresses = [
            str(part.attrs.get("href") or part.attrs.get("src"))
            for part in self._parts()
            if part.type in ("link_open", "image")
        ]
        return [address for address in addresses if not re.match(r"[a-z]+:", address)]

    @cached_property
    def shape(self) -> Counter[str]:
        """How many of each thing it has that a reader sees at once."""
        return Counter(COUNTED[part.type] for part in self._parts() if part.type in COUNTED)

    def _parts(self) -> Iterator[Token]:
        for token in self._tokens:
            yield token
            yield from token.children or ()


def slug_of(inline: Token) -> str:
    """The anchor of a heading: its words, small, without punctuation, a hyphen for each space."""
    text = "".join(part.content for part in inline.children or ())
    return re.sub(r"[^\w\- ]", "", text.lower()).strip().replace(" ", "-")


def broken_links(root: Path, files: list[PurePosixPath]) -> Iterator[str]:
    """A line for each link of these files that leads nowhere in the repository, as GitHub shows it."""
    pages = {file: Page((root / file).read_text()) for file in files}
    for file, page in pages.items():
        for link in page.links:
            path, _, anchor = link.partition("#")
            target = PurePosixPath(os.path.normpath(file.parent / path)) if path else file
            if not (root / target).exists():
                yield f"{file}: {link} names no file"
            elif anchor and target in pages and anchor not in pages[target].anchors:
                yield f"{file}: {link} names no part of that page"
