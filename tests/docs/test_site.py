"""The site of the docs is built without a fault, and its checks find the faults that there may be."""

from pathlib import Path, PurePosixPath

import pytest

from docs_build import links, markdown
from docs_build.__main__ import unplaced
from docs_build.llms import first_sentence
from docs_build.nav import Contents, Placed, read_contents
from docs_build.pages import pages
from docs_build.staging import mended

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.xdist_group("docs_site")


def test_every_page_is_on_the_site(site: Path) -> None:
    """Each file of Markdown is a page, which reads as it does on GitHub, and whose links lead somewhere."""
    places = [place for _, place in pages(ROOT)]

    assert PurePosixPath("index.md") in places
    assert [] == [place for place in places if not (site / place).with_suffix(".html").is_file()]


def test_code_that_a_page_links_to_is_on_the_site(site: Path) -> None:
    """The site needs no host of code: it shows the file."""
    assert "AWS::Serverless" in (site / "source" / "template.yaml.html").read_text()


def test_programs_find_every_page(site: Path) -> None:
    """llms.txt names each page of the nav with its first sentence, and llms-full.txt holds its text."""
    listed = (site / "llms.txt").read_text().splitlines()
    whole = (site / "llms-full.txt").read_text()

    for placed in read_contents(ROOT / "mkdocs.yml").nav:
        assert 1 == sum(f"]({placed.place}): " in line for line in listed)
        assert (site / placed.place).read_text().strip() in whole


def write(folder: Path, **files: str) -> Path:
    """A folder with these files; of a name, `_` is a dot."""
    for name, text in files.items():
        (folder / name.replace("_", ".")).write_text(text)
    return folder


def test_a_link_on_the_site_that_leads_nowhere_is_found(tmp_path: Path) -> None:
    """An absent file, an absent anchor and a script from elsewhere are faults, and nothing else is."""
    write(
        tmp_path,
        a_html='<a href="b.html#there">1</a> <a href="b.html#gone">2</a> <a href="c.html">3</a> <a href="#">4</a>',
        b_html='<p id="there"><a href="https://example.org">5</a><script src="https://example.org/x.js"></script></p>',
    )

    assert [
        "a.html: b.html#gone names no part of that page",
        "a.html: c.html names no file",
        "b.html: loads https://example.org/x.js from elsewhere",
    ] == list(links.broken_links(tmp_path))


def test_a_link_on_github_that_leads_nowhere_is_found(tmp_path: Path) -> None:
    """Anchors are those of GitHub: small letters, a hyphen for each space, a number where a heading repeats."""
    write(
        tmp_path,
        a_md="[1](b.md#what-it-does) [2](b.md#what-it-does-1) [3](b.md#a--b) [4](b.md#what) [5](c.md) `[6](d.md)`",
        b_md="# What it *does*\n\n## What it does\n\n## `a` & b\n",
    )

    assert ["a.md: b.md#what names no part of that page", "a.md: c.md names no file"] == list(
        markdown.broken_links(tmp_path, [PurePosixPath("a.md"), PurePosixPath("b.md")])
    )


def test_what_a_reader_sees_is_counted_alike() -> None:
    """A list that GitHub makes and the site does not is a difference; the theme around the article is none."""
    text = "Text:\n\n- one\n- two\n\n| a |\n| - |\n| b |\n"
    html = (
        "<nav><ul><li>page</li></ul></nav><article><p>Text:</p><ul><li>one</li><li>two</li></ul>"
        "<table><tr><th>a</th></tr><tr><td>b</td></tr></table></article><ul></ul>"
    )

    assert {"lists": 1, "items": 2, "rows": 2} == markdown.Page(text).shape == links.Page(html).shape
    assert markdown.Page(text).shape != links.Page("<article><p>Text: - one - two</p></article>").shape


def test_links_lead_to_the_places_of_pages() -> None:
    """A page of docs/ keeps its links to others; those that leave it, and those of pages elsewhere, are mended."""
    linked: set[PurePosixPath] = set()
    text = (
        "[1](cli.md#x) [2](../template.yaml)\n<!-- a\ncomment -->\n```text\n[3](../README.md)\n```\n[4](../README.md#y)"
    )

    read = mended(text, PurePosixPath("docs/a.md"), PurePosixPath("a.md"), linked)

    assert "[1](cli.md#x) [2](source/template.yaml.md)\n\n\n```text\n[3](../README.md)\n```\n[4](index.md#y)" == read
    assert {PurePosixPath("docs/cli.md"), PurePosixPath("template.yaml"), PurePosixPath("README.md")} == linked


def test_the_nav_is_read_in_its_order(tmp_path: Path) -> None:
    """Headings lie in one another, and a page may have a name of its own."""
    nav = "nav:\n  - index.md\n  - Guides:\n      - Push:\n          - First: a.md\n      - b.md\n"
    write(tmp_path, nav_yml=f"site_name: Name\nsite_description: Words\n{nav}")
    placed = [
        Placed((), None, "index.md"),
        Placed(("Guides", "Push"), "First", "a.md"),
        Placed(("Guides",), None, "b.md"),
    ]

    assert Contents("Name", "Words", placed) == read_contents(tmp_path / "nav.yml")


def test_a_page_that_the_nav_does_not_have_once_is_found() -> None:
    """One that is absent, and one that stands there twice."""
    nav = [Placed((), None, str(place)) for _, place in pages(ROOT)]

    assert [] == list(unplaced(nav))
    assert ["docs/cli.md: the nav of mkdocs.yml has cli.md 0 times, not once"] == list(
        unplaced([placed for placed in nav if placed.place != "cli.md"])
    )
    assert ["README.md: the nav of mkdocs.yml has index.md 2 times, not once"] == list(
        unplaced([*nav, Placed((), None, "index.md")])
    )


def test_the_first_sentence_of_a_page_is_prose() -> None:
    """Code, tables and links are not part of it."""
    text = "# Title\n\n```text\nFirst.\n```\n\n| a |\n| - |\n\n**`push` takes [one](b.md) job. It returns.**\n"

    assert "`push` takes one job." == first_sentence(text)
