"""What the site is called, and the order of its pages, as mkdocs.yml has it."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, TypeAlias

import yaml

Entry: TypeAlias = "str | dict[str, str | list[Entry]]"


class Placed(NamedTuple):
    """A page in the nav: the headings above it, its name there if it has one, its place on the site."""

    sections: tuple[str, ...]
    title: str | None
    place: str


class Contents(NamedTuple):
    """The site in a few words, and its pages from first to last."""

    name: str
    description: str
    nav: list[Placed]


def read_contents(config: Path) -> Contents:
    """The contents by a mkdocs.yml."""
    read = yaml.safe_load(config.read_text())
    return Contents(read["site_name"], read["site_description"], list(flat(read["nav"], ())))


def flat(entries: list[Entry], sections: tuple[str, ...]) -> Iterator[Placed]:
    """The pages of a part of the nav."""
    for entry in entries:
        if isinstance(entry, str):
            yield Placed(sections, None, entry)
            continue
        for title, inside in entry.items():
            if isinstance(inside, str):
                yield Placed(sections, title, inside)
            else:
                yield from flat(inside, (*sections, title))
