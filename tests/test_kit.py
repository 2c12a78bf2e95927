"""The tests have one kit: each thing has one name, and no suite imports from another."""

import ast
from collections import defaultdict
from functools import cache
from pathlib import Path

TESTS = Path(__file__).parent


@cache
def sources() -> list[tuple[str, ast.Module]]:
    """Each file of the tests, by its path."""
    return [(path.relative_to(TESTS).as_posix(), ast.parse(path.read_text())) for path in sorted(TESTS.rglob("*.py"))]


@cache
def imported(tree: ast.Module) -> set[str]:
    """The modules of the tests that it takes something from, without `tests.`."""
    found = [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    return {module.removeprefix("tests.") for module in found if module.startswith("tests.")}


def test_no_class_of_the_tests_is_defined_twice() -> None:
    """A name that is known from one suite means the same in every other."""
    places = defaultdict(list)
    for path, tree in sources():
        for node in tree.body:
            if isinstance(node, ast.ClassDef):
                places[node.name].append(path)

    assert {} == {name: paths for name, paths in places.items() if len(paths) > 1}


def test_suites_share_what_is_in_the_kit_and_nothing_else() -> None:
    """A change of one suite breaks no other."""
    strange = {
        (path, module)
        for path, tree in sources()
        for module in imported(tree)
        if module.split(".")[0] not in {"kit", path.split("/")[0]}
    }

    assert set() == strange


def test_no_test_is_imported() -> None:
    """Helpers that several files need have a file without tests."""
    strange = {
        (path, module) for path, tree in sources() for module in imported(tree) if "test_" in module.rpartition(".")[2]
    }

    assert set() == strange
