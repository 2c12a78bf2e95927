"""The pictures of the docs are those that their code draws, and each stands on a page with words for it."""

import re
from pathlib import Path
from typing import Final

import pytest

from docs_build.pictures.drawing import Picture
from docs_build.pictures.gallery import PICTURES

DOCS: Final = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_is_the_one_that_its_code_draws(name: str) -> None:
    """`python -m docs_build.pictures` writes it anew; its title says what it shows."""
    drawn = PICTURES[name]().svg()
    (title,) = re.findall(r"<title[^>]*>(.*)</title>", drawn)

    assert (DOCS / "images" / f"{name}.svg").read_text() == drawn
    assert len(title.split()) > 20


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_stands_on_a_page_with_words(name: str) -> None:
    """A reader who does not see it gets its words."""
    texts = [page.read_text() for page in DOCS.glob("*.md")]
    words = [alt for text in texts for alt in re.findall(rf"!\[([^\]]+)\]\(images/{name}\.svg\)", text)]

    assert words
    assert all(len(alt.split()) > 10 for alt in words)


def test_words_that_do_not_fit_are_found() -> None:
    """A box that its words leave, and a box that leaves the picture, are errors of their author."""
    picture = Picture("a picture", 100)

    with pytest.raises(ValueError, match="do not fit"):
        picture.box((0, 0, 40, 20), "more words than there is room")
    with pytest.raises(ValueError, match="leaves the picture"):
        picture.box((440, 0, 40, 20), "out")
    with pytest.raises(ValueError, match="leave the picture"):
        picture.words(440, 10, "words")
