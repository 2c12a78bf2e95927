"""docs/sources.md: each requirement of the systems that this one carries on has a test, or a reason."""

import ast
import re
from pathlib import Path
from typing import Final, NamedTuple

TESTS: Final = Path(__file__).parent
REASONS: Final = ("later: ", "refused: ", "background: ")
SEEDS: Final = {
    "D": "1-10",
    "L": "1-81",
    "LN": "1-16 20-27 30-38",
    "LB": "1-30",
    "A": "1-14 20-40",
    "B": "1-19",
    "J": "1-7 10-18 20-23 30-38 40-46",
    "U": "1-9",
    "S": "1-24",
    "SK": "1-12 20-22",
    "C": "1-19",
    "X": "1-11 20-26 30-36 40-43",
    "E": "1-100",
}
"""The numbers of the requirements, by the system that they are from; E are hard cases."""
ID: Final = re.compile(rf"\b({'|'.join(SEEDS)})-(\d+)\b")
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


def seeds() -> set[str]:
    """The ids of all requirements."""
    spans = [(system, span.split("-")) for system, numbers in SEEDS.items() for span in numbers.split()]
    return {f"{system}-{number}" for system, ends in spans for number in range(int(ends[0]), int(ends[-1]) + 1)}


def test_each_requirement_has_one_line() -> None:
    """None is left out, none is met twice, and none is made up."""
    ids = [source.id for source in sources()]

    assert len(set(ids)) == len(ids)
    assert seeds() == set(ids)


def test_no_test_names_what_has_no_line() -> None:
    """An id in a docstring can be looked up on the page."""
    ids = {source.id for source in sources()}
    named = {
        match[0]
        for path in TESTS.rglob("test_*.py")
        for docstring in functions(path).values()
        for match in ID.finditer(docstring)
    }

    assert len(named) > 300
    assert set() == named - ids


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
