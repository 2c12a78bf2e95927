"""The pages are short: in all, and each paragraph; and each says at its top why one reads it."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

DOCS: Final = Path(__file__).parents[2] / "docs"
PAGES: Final = sorted(page for page in DOCS.rglob("*.md") if "reference" not in page.parts and page.stem != "sources")
"""All but those that are generated, and the list of requirements."""
MOST_WORDS: Final = 82_000
MOST_LINES: Final = 6
_PROMISE: Final = re.compile(r"(With|After|At the end of) this page|Alarm: ")
_BLOCK: Final = re.compile(r"^[ >]*```.*?^[ >]*```|<!--.*?-->", re.DOTALL | re.MULTILINE)


def paragraphs(page: Path) -> Iterator[str]:
    """The paragraphs and points of lists, without code, tables, headings and pictures."""
    for block in re.split(r"\n\s*\n|\n(?=\s*(?:[-*]|\d+\.) )", _BLOCK.sub("", page.read_text())):
        text = block.strip("\n")
        if text.strip() and text.lstrip()[0] not in "#|!":
            yield text


def test_the_pages_have_few_words() -> None:
    """Readers find what they look for; a feature that adds a page takes away what others say of it."""
    assert sum(len(page.read_text().split()) for page in PAGES) <= MOST_WORDS


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(DOCS)))
def test_a_page_says_at_its_top_what_a_reader_can_do_after_it(page: Path) -> None:
    """In its first paragraph; of a runbook it is the alarm of its heading."""
    heading = page.read_text().partition("\n")[0]
    first = next(paragraphs(page))

    assert _PROMISE.search(f"{heading} {first}"), first


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(DOCS)))
def test_no_paragraph_is_long(page: Path) -> None:
    """Six lines are read at once."""
    assert [] == [text for text in paragraphs(page) if len(text.splitlines()) > MOST_LINES]
