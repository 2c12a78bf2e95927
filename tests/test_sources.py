"""docs/sources.md: each requirement of the systems that this one carries on has a test, or a reason."""

import ast
import re
from pathlib import Path
from typing import Final, NamedTuple

TESTS: Final = Path(__file__).parent
STATES: Final = re.compile(r"done(: .+)?|(differs|part|refused): .+")
UNTESTED: Final = "—"
"""Stands in place of tests, where nothing is built: the state says why."""
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


WORDS: Final = [TESTS / "data" / "requirements.md", TESTS / "data" / "hard-cases.md"]
"""The lists of requirements, as they were given: the page repeats their words, and never edits them."""


class Source(NamedTuple):
    """A line of the page."""

    id: str
    words: str
    shown_by: str
    state: str

    @property
    def tests(self) -> list[str]:
        """The tests that it names, each as `file::name`."""
        return re.findall(r"`([^`]+)`", self.shown_by)


def sources() -> list[Source]:
    """The lines of the page."""
    rows = re.findall(r"^\| ([A-Z]+-\d+ \| .+) \|$", PAGE.read_text(), re.MULTILINE)
    return [Source(*re.split(r" (?<!\\)\| ", row)) for row in rows]


def given() -> dict[str, str]:
    """The words of each requirement, by its id: a line of a list, or the cells of a row, with a dot between them."""
    lists = "\n".join(path.read_text() for path in WORDS)
    lines = dict(re.findall(r"^- ([A-Z]+-\d+) (.+)$", lists, re.MULTILINE))
    rows = dict(re.findall(r"^\| (D-\d+) \| (.+) \|$", lists, re.MULTILINE))
    return lines | {id: " · ".join(re.split(r" (?<!\\)\| ", row)) for id, row in rows.items()}


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


def test_the_page_has_the_words_of_the_source() -> None:
    """What is asked for is never edited until it fits what was built: the state says what differs."""
    words = given()

    assert seeds() == set(words)
    assert [] == [
        source.id for source in sources() if source.words.replace("\\|", "|") != words[source.id].replace("\\|", "|")
    ]


def test_each_line_has_a_state() -> None:
    """Done, or what differs, what is missing, or why it is refused."""
    assert [] == [source.id for source in sources() if not STATES.fullmatch(source.state)]


def test_each_line_has_tests_or_a_reason() -> None:
    """Only what is refused, or asks for nothing, has no test."""
    unanswered = [
        source
        for source in sources()
        if not re.fullmatch(r"`[^`]+::\w+`(, `[^`]+::\w+`)*", source.shown_by)
        and not (source.shown_by == UNTESTED and source.state.startswith(("refused: ", "done: ")))
    ]

    assert [] == unanswered


def test_the_tests_of_a_line_exist() -> None:
    """A test that is renamed or removed takes its line along."""
    named = {test for source in sources() for test in source.tests if source.shown_by != UNTESTED}
    files = {name.partition("::")[0] for name in named}
    there = {f"{file}::{name}" for file in files if (TESTS / file).exists() for name in functions(TESTS / file)}

    assert len(named) > 150
    assert set() == named - there
