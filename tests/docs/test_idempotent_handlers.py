"""The handlers of docs/idempotent-handlers.md keep their word under repeats, deaths and late versions."""

import ast
import re
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any, Final

import pytest

from lowkiq_lambda.testing import AppUnderTest, OwnServer, app_under_test

PAGE: Final = Path(__file__).parents[2] / "docs" / "idempotent-handlers.md"
FUZZED: Final = 90
POINTS: Final = (None, "before_handler", "after_handler", "after_settle_sent")
"""Where the first process dies; None for nowhere."""


def declarations() -> str:
    """The code of the page without what it pushes, drains and asserts."""
    code = "\n".join(re.findall(r"^```python\n(.+?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL))
    kept = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.Assign)
    body = [
        node
        for node in ast.parse(code).body
        if (isinstance(node, kept) and "before" not in ast.unparse(node)) or "CREATE TABLE" in ast.unparse(node)
    ]
    return ast.unparse(ast.Module(body, []))


@pytest.fixture
def page(lowkiq_test_server: OwnServer) -> Iterator[tuple[dict[str, Any], AppUnderTest]]:
    """The names of the page, and its app on a server of the test."""
    names: dict[str, Any] = {}
    # Under the name of the page, so that a fuzz knows its lines as the project's.
    exec(compile(declarations(), str(PAGE), "exec"), names)  # noqa: S102 - the code of the page is what is tested
    with app_under_test(names["app"], lowkiq_test_server) as kit:
        yield names, kit
    names["database"].close()


def perform(kit: AppUnderTest, worker: Any, point: Any) -> None:
    """Drain, with a process that dies at that point, and until nothing waits."""
    with kit.crash_after(worker, point) if point else nullcontext():
        kit.drain()
    kit.drain()
    kit.advance(hours=1)
    kit.drain()
    kit.assert_empty(worker)


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize(
    "drains",
    [
        [[("new", 1), ("paid", 2), ("new", 3)]],
        [[("new", 1)], [("paid", 2), ("new", 3)]],
        [[("new", 3), ("paid", 2)], [("new", 1)]],
        [[("new", 1), ("paid", 2)], [("new", 3)], [("paid", 2)]],
    ],
    ids=["there and back", "in two", "late versions", "a version again"],
)
def test_the_newest_version_is_the_state(
    page: tuple[dict[str, Any], AppUnderTest], drains: Sequence[Sequence[tuple[str, int]]], point: str | None
) -> None:
    """The state is that of the newest version, whatever was pushed in which order, drained together, or died."""
    names, kit = page
    for pushes in drains:
        for status, version in pushes:
            names["sync_order"].push(17, {"status": status}, score=version)
        perform(kit, names["sync_order"], point)

    assert [("new", 3.0)] == names["database"].execute("SELECT status, version FROM orders").fetchall()


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("between", [False, True])
def test_each_change_is_added_once(
    page: tuple[dict[str, Any], AppUnderTest], point: str | None, *, between: bool
) -> None:
    """A change that is pushed or performed again adds nothing."""
    names, kit = page
    for change in ("c1", "c2", "c1"):
        names["add_points"].push("olga", {"id": change, "points": 5})
        if between:
            perform(kit, names["add_points"], point)
    perform(kit, names["add_points"], point)

    assert [(10,)] == names["database"].execute("SELECT total FROM points").fetchall()


@pytest.mark.parametrize("point", POINTS)
def test_each_invoice_is_paid_once(page: tuple[dict[str, Any], AppUnderTest], point: str | None) -> None:
    """The other side knows the key of a repeat, and each invoice has a key of its own."""
    names, kit = page
    names["pay_invoice"].push("invoice-7", {"amount": 40}, score=1)
    perform(kit, names["pay_invoice"], point)
    names["pay_invoice"].push("invoice-7", {"amount": 60}, score=2)
    perform(kit, names["pay_invoice"], point)

    assert {"invoice-7-1": 40, "invoice-7-2": 60} == names["sent"]


def test_no_scenario_of_a_fuzz_ends_differently(page: tuple[dict[str, Any], AppUnderTest]) -> None:
    """Each handler of the page passes what the page on fuzzing advises; its one connection leaves freezes out."""
    names, kit = page
    database = names["database"]

    def rows(table: str) -> set[Any]:
        return {*database.execute(f"SELECT * FROM {table}")}  # noqa: S608 - a name of the page

    orders = kit.fuzz(
        names["sync_order"],
        state=lambda: {*database.execute("SELECT id, status, version FROM orders")},
        payloads=[{"status": status} for status in ("new", "paid", "sent")],
        isolate=database,
        scenarios=FUZZED,
    )
    points = kit.fuzz(
        names["add_points"],
        state=lambda: (rows("points"), rows("applied")),
        payloads=[{"id": "c1", "points": 5}, {"id": "c2", "points": 7}],
        isolate=database,
        scenarios=FUZZED,
        duplicates=True,
    )
    payments = kit.fuzz(
        names["pay_invoice"],
        state=lambda: names["sent"],
        payloads=[{"amount": 40}, {"amount": 60}],
        isolate=names["sent"],
        outside=[names["pay"]],
        merges=False,
        scenarios=FUZZED,
    )

    for report in (orders, points, payments):
        assert report.faults["die"] > 0
        assert report.lines["die"] == report.lines["fail"]
