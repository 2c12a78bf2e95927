"""Assertions stand where one that fails fails the test."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
HANDLERS = {"perform", "perform_job", "retry_in", "retries_exhausted"}

NESTED = """
def test_order():
    def handle(batch):
        if batch:
            assert batch == expected
    app.worker(handle)
"""
METHOD = """
class Checking(Worker):
    def perform(self, batch):
        assert batch
"""
DECORATED = """
@app.worker(shards_count=2)
def check(batch):
    assert batch
"""
FAILING = """
def test_order():
    def handle(batch):
        pytest.fail("out of order")
"""
HONEST = """
class Stage:
    def check(self):
        assert self.done

def test_order():
    handled = []
    app.worker(handled.append)
    assert expected == handled
"""


def swallowed(tree: ast.AST, *, in_function: bool = False, in_handler: bool = False) -> Iterator[int]:
    """The lines that assert in functions that others than the test may call: an engine catches what they raise."""
    for node in ast.iter_child_nodes(tree):
        if in_handler and _asserts(node):
            yield getattr(node, "lineno", 0)
        is_function = isinstance(node, FUNCTIONS)
        is_handler = is_function and (in_function or _is_handler(node, tree))
        yield from swallowed(node, in_function=in_function or is_function, in_handler=in_handler or is_handler)


def _asserts(node: ast.AST) -> bool:
    return isinstance(node, ast.Assert) or (isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.fail")


def _is_handler(node: ast.AST, parent: ast.AST) -> bool:
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return True
    is_declared = any(".worker" in ast.unparse(decorator) for decorator in node.decorator_list)
    return is_declared or (isinstance(parent, ast.ClassDef) and node.name in HANDLERS)


@pytest.mark.parametrize(
    ("source", "lines"), [(NESTED, [5]), (METHOD, [4]), (DECORATED, [4]), (FAILING, [4]), (HONEST, [])]
)
def test_an_assertion_in_a_handler_is_found(source: str, lines: list[int]) -> None:
    """Nested functions, methods of workers and declared functions count; a helper of the tests does not."""
    assert lines == list(swallowed(ast.parse(source)))


def test_handlers_record_and_tests_assert() -> None:
    """No assertion stands in a handler, where the engine takes what it raises for a failure of the job."""
    found = {
        f"{path.relative_to(TESTS)}:{line}"
        for path in sorted(TESTS.rglob("*.py"))
        for line in swallowed(ast.parse(path.read_text()))
    }

    assert set() == found
