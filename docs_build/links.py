"""Links on the built site: each leads to a file that is there, and to a part of it that is there."""

from collections import Counter
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

POINTERS: Final = {("a", "href"), ("img", "src"), ("link", "href"), ("script", "src")}
LOADED: Final = {"img", "link", "script"}
COUNTED: Final = {
    **dict.fromkeys(("h1", "h2", "h3", "h4", "h5", "h6"), "headings"),
    **dict.fromkeys(("ul", "ol"), "lists"),
    "li": "items",
    "tr": "rows",
    "pre": "blocks",
    "img": "pictures",
}


class Page(HTMLParser):
    """What a page offers to links, and where it leads."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors: set[str] = {""}
        self.links: list[tuple[str, str]] = []
        self.shape: Counter[str] = Counter()
        """How many of each thing its article has that a reader sees at once."""
        self._in_article = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note the tag's id, and the address that it names."""
        self._in_article |= tag == "article"
        if self._in_article and tag in COUNTED:
            self.shape[COUNTED[tag]] += 1
        for name, value in attrs:
            if name == "id" and value:
                self.anchors.add(value)
            elif (tag, name) in POINTERS and value is not None:
                self.links.append((tag, value))

    def handle_endtag(self, tag: str) -> None:
        """What comes behind the article is the theme's."""
        if tag == "article":
            self._in_article = False


def broken_links(site: Path) -> Iterator[str]:
    """A line for each link of a site that leads nowhere, and for each thing that a page loads from elsewhere."""
    pages = {path: Page(path.read_text()) for path in sorted(site.rglob("*.html"))}
    for path, page in pages.items():
        for tag, link in page.links:
            url = urlsplit(link)
            if url.scheme or url.netloc:
                if tag in LOADED:
                    yield f"{path.relative_to(site)}: loads {link} from elsewhere"
                continue
            base = site if url.path.startswith("/") else path.parent
            target = (base / unquote(url.path).lstrip("/")).resolve() if url.path else path
            anchors = pages[target].anchors if target in pages else {""}
            if not target.is_file():
                yield f"{path.relative_to(site)}: {link} names no file"
            elif unquote(url.fragment) not in anchors:
                yield f"{path.relative_to(site)}: {link} names no part of that page"
