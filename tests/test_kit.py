"""The tests have one kit: each thing has one name, and no suite imports from another."""

import ast
from collections import defaultdict
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

TESTS = Path(__file__).parent
HISTORY = "proof.history"
"""The format of histories and their checker: it is published, and all suites that do harm are judged by it."""
PROVEN = {"chaos", "models", "mutants", "properties"}
"""Suites that `make proof` runs for longer."""

pytestmark = pytest.mark.xdist_group("kit")  # all files are read once


class FileOfTests(NamedTuple):
    """What these tests ask of a file. Its tree is not kept: many trees cost the garbage collector more than reading."""

    path: str
    classes: list[str]
    """Those of the module itself."""
    imported: set[str]
    """The modules of the tests that something is taken from, without `tests.`."""


@cache
def sources() -> list[FileOfTests]:
    """Each file of the tests."""
    return [read(path) for path in sorted(TESTS.rglob("*.py"))]


def read(path: Path) -> FileOfTests:
    """One file."""
    tree = ast.parse(path.read_text())
    classes = [node.name for node in tree.body if isinstance(node, ast.ClassDef)]
    modules = [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    imported = {module.removeprefix("tests.") for module in modules if module.startswith("tests.")}
    return FileOfTests(path.relative_to(TESTS).as_posix(), classes, imported)


def test_no_class_of_the_tests_is_defined_twice() -> None:
    """A name that is known from one suite means the same in every other."""
    places = defaultdict(list)
    for source in sources():
        for name in source.classes:
            places[name].append(source.path)

    assert {} == {name: paths for name, paths in places.items() if len(paths) > 1}


def suite_of(source: FileOfTests) -> str:
    """Its folder."""
    return source.path.split("/")[0]


def test_suites_share_what_is_in_the_kit_and_nothing_else() -> None:
    """A change of one suite breaks no other; the checker of histories is for all, and the proof runs others."""
    strange = {
        (source.path, module)
        for source in sources()
        for module in source.imported
        if module.split(".")[0] not in {"kit", suite_of(source), *(PROVEN if suite_of(source) == "proof" else ())}
        and not module.startswith(HISTORY)
    }

    assert set() == strange


def test_no_test_is_imported() -> None:
    """Helpers that several files need have a file without tests."""
    strange = {
        (source.path, module)
        for source in sources()
        for module in source.imported
        if "test_" in module.rpartition(".")[2]
    }

    assert set() == strange
