"""Commands that pages name outside of what is run are commands that there are, with options that they have."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

import pytest

ROOT: Final = Path(__file__).parents[2]
REFERENCE: Final = ROOT / "docs" / "reference" / "cli.md"
"""It is made of the commands, as tests/test_reference.py proves."""
PAGES: Final = sorted({ROOT / "README.md", *ROOT.glob("docs/**/*.md"), *ROOT.glob("infra/*.md")} - {REFERENCE})
BLOCK: Final = re.compile(r"^```(?:text|console)\n(.*?)^```", re.MULTILINE | re.DOTALL)
LINE: Final = re.compile(r"^(?:\$ )?lowkiq ([a-z].*)$", re.MULTILINE)
INLINE: Final = re.compile(r"`lowkiq ([a-z][^`]*)`")


class Named(NamedTuple):
    """A command that a page names."""

    command: str
    options: tuple[str, ...]


def named(page: Path) -> Iterator[Named]:
    """Those of the page's blocks, and those within its sentences."""
    text = page.read_text()
    lines = [line for block in BLOCK.findall(text) for line in LINE.findall(block)]
    for line in [*lines, *INLINE.findall(re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL))]:
        yield Named(line.split()[0], tuple(re.findall(r"(?<!\S)--[a-z][a-z0-9-]*", line)))


@pytest.fixture(scope="module")
def reference() -> dict[str, str]:
    """What the reference says of each command, its sub-commands included."""
    sections = re.split(r"^## lowkiq ", REFERENCE.read_text(), flags=re.MULTILINE)[1:]
    return {section.splitlines()[0]: section for section in sections}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_of_a_page_are_there(page: Path, reference: dict[str, str]) -> None:
    """Also those in examples that cannot be run here, such as a pause of a queue in production."""
    found = [*named(page)]

    assert [] == [one.command for one in found if one.command not in reference]
    assert [] == [
        (one.command, option)
        for one in found
        for option in one.options
        if option != "--help" and f"`{option}`" not in reference[one.command]
    ]
