"""docs/sources.md: each requirement of the systems that this one carries on has a test, or a reason."""

import ast
import re
from pathlib import Path
from typing import Final, NamedTuple

TESTS: Final = Path(__file__).parent
REASONS: Final = ("later: ", "refused: ", "background: ")
ID: Final = re.compile(r"\b(D|L|LN|LB|A|B|J|U|S|SK|C|X)-(\d+)\b")
PAGE: Final = TESTS.parent / "docs" / "sources.md"


class Source(NamedTuple):
    """A line of the page."""

    id: str
    asks_for: str
    shown_by: str

    @property
    def tests(self) -> list[str]:
        """The tests that it names, each as `file::name`."""
        return re.findall(r"`([^`]+)`", self.shown_by)


def sources() -> list[Source]:
    """The lines of the page."""
    rows = re.findall(r"^\| (\S+-\d+) \| (.+?) \| (.+) \|$", PAGE.read_text(), re.MULTILINE)
    return [Source(*row) for row in rows]


def functions(path: Path) -> dict[str, str]:
    """The tests of a file, with their docstrings."""
    found = ast.walk(ast.parse(path.read_text()))
    tests = [node for node in found if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")]
    return {test.name: ast.get_docstring(test) or "" for test in tests}


def test_each_id_has_one_line() -> None:
    """No requirement is met twice, and none is left out that a test names."""
    ids = [source.id for source in sources()]
    named = {
        match[0]
        for path in TESTS.rglob("test_*.py")
        for docstring in functions(path).values()
        for match in ID.finditer(docstring)
    }

    assert len(set(ids)) == len(ids)
    assert set() == named - {*ids}


def test_each_line_has_tests_or_a_reason() -> None:
    """Nothing else is an answer."""
    unanswered = [
        source
        for source in sources()
        if not source.shown_by.startswith(REASONS)
        and not re.fullmatch(r"`[^`]+::\w+`(, `[^`]+::\w+`)*", source.shown_by)
    ]

    assert [] == unanswered


def test_the_tests_of_a_line_exist() -> None:
    """A test that is renamed or removed takes its line along."""
    named = {test for source in sources() if not source.shown_by.startswith(REASONS) for test in source.tests}
    files = {name.partition("::")[0] for name in named}
    there = {f"{file}::{name}" for file in files if (TESTS / file).exists() for name in functions(TESTS / file)}

    assert len(named) > 150
    assert set() == named - there
