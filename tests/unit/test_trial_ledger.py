"""The checker of the trial: it finds what it looks for, and forgives what is allowed."""

import json
from typing import Any

from local.trial.ledger import Verdict, judged


def rows(*rows: list[Any]) -> list[str]:
    """A ledger."""
    return [json.dumps(row) for row in rows]


def start(id: str, run: str, *numbers: int) -> list[Any]:
    """The row of a start by the first package."""
    return ["start", id, run, list(numbers), 1]


def end(id: str, run: str) -> list[Any]:
    """The row of an end."""
    return ["end", id, run]


def found(verdict: Verdict) -> tuple[int, int, int, int]:
    """How many were lost, out of order, at once, and repeated."""
    return len(verdict.lost), len(verdict.out_of_order), len(verdict.overlaps), verdict.repeats


def test_what_is_done_once_and_in_order_is_good() -> None:
    """Also of two ids beside each other."""
    verdict = judged(
        {"a": 3, "b": 1},
        rows(
            start("a", "1", 1, 2), start("b", "2", 1), end("a", "1"), end("b", "2"), start("a", "3", 3), end("a", "3")
        ),
    )

    assert verdict.is_good
    assert (4, {1: 4}) == (verdict.done, verdict.releases)


def test_a_repeat_is_no_fault() -> None:
    """A process that died left a start without an end; its payloads come again, and in order."""
    verdict = judged({"a": 2}, rows(start("a", "1", 1, 2), start("a", "2", 1, 2), end("a", "2")))

    assert verdict.is_good
    assert (0, 0, 0, 2) == found(verdict)


def test_each_fault_is_found() -> None:
    """A payload that is missing at the end, one that is left out in the middle, and two runs of an id at once."""
    lost = judged({"a": 2, "b": 1}, rows(start("a", "1", 1), end("a", "1")))
    skipped = judged({"a": 3}, rows(start("a", "1", 1), end("a", "1"), start("a", "2", 3, 2), end("a", "2")))
    overlapping = judged({"a": 2}, rows(start("a", "1", 1), start("a", "2", 2), end("a", "2"), end("a", "1")))

    assert [(2, 0, 0, 0), (0, 1, 0, 1), (0, 0, 1, 0)] == [found(each) for each in (lost, skipped, overlapping)]
    assert {False} == {each.is_good for each in (lost, skipped, overlapping)}
