"""The report: how much was tried, in lines that a terminal can show."""

from collections import Counter

import pytest

from lowkiq_lambda.testing import AppUnderTest
from lowkiq_lambda.testing.fuzz.report import FuzzFinding, FuzzReport
from lowkiq_lambda.testing.fuzz.run import fuzz
from tests.fuzz import planted
from tests.fuzz.fuzzing import options_of

PLAN = '[["push","1",{"change":"a","points":5},1.0],["drain","after_handler",0]]'
ADVICE = "  advice: keep a record of what was done, in the same transaction as the work, and read a page about it"
FINDING = FuzzFinding("repeat", ["  1. push id '1'", ADVICE], "", PLAN, 10, 1)
PARTLY = FuzzReport("Add", 0, 100, 100, 186, 2.0, findings=[FINDING])


@pytest.mark.parametrize(
    ("report", "line"),
    [
        (
            FuzzReport("Add", 0, 1, 1, 412, 0.25),
            "Add: no difference in 1 scenario in 0.2 s: 1 of 412 systematic ones; ",
        ),
        (FuzzReport("Add", 0, 206, 206, 412, 3.0), "systematic ones; all of them take some 6 seconds\n"),
        (FuzzReport("Add", 0, 500, 412, 412, 6.0), "in 6.0 s: all 412 systematic ones, and 88 random ones\n"),
        (FuzzReport("Add", 0, 413, 412, 412, 6.0), "all 412 systematic ones, and 1 random one\n"),
        (FuzzReport("Add", 0, 9, 9, 9, 1.0, faults=Counter(die=1)), "\n  1 fault\n"),
        (PARTLY, "(repeat): scenario 10, shrunk in 1 try to:"),
        (PARTLY, "\n  tried: 100 scenarios in 2.0 s: 100 of 186 "),
        (FuzzReport("Add", 0, 1, seconds=0.1, is_replay=True, findings=[FINDING]), "\n  tried: 1 scenario in 0.1 s"),
    ],
)
def test_a_report_says_how_much_was_tried(report: FuzzReport, line: str) -> None:
    """Whether a finding is among it or not: a hundred scenarios are not all."""
    assert line in str(report)


def test_lines_are_as_long_as_the_terminal_is_wide() -> None:
    """But for a plan, which is copied."""
    lines = PARTLY.text(60).splitlines()

    assert f"  replay: {PLAN}" in lines
    assert "  advice: keep a record of what was done, in the same" in lines
    assert "     transaction as the work, and read a page about it" in lines
    assert [f"  replay: {PLAN}"] == [line for line in lines if len(line) > 60]


def test_all_systematic_scenarios_are_as_many_as_are_tried_in_the_end(lowkiq: AppUnderTest) -> None:
    """Those that a shorter fuzz has left out are counted."""
    short, whole = (
        fuzz(lowkiq.app, lowkiq.clock, planted.Counter, options_of("Counter", scenarios=scenarios, faults=["fail"]))
        for scenarios in (10, 1_000)
    )

    assert 10 == short.systematic < short.all_systematic
    assert short.all_systematic == whole.all_systematic == whole.systematic == whole.scenarios


def test_what_comes_again_is_what_came_before(lowkiq: AppUnderTest) -> None:
    """Other payloads beside it make another call."""
    plan = (
        '[["push","1",{"status":"new"},1.0],["drain","after_handler",0],["push","1",{"status":"paid"},2.0],'
        '["drain","after_handler",0]]'
    )

    report = fuzz(lowkiq.app, lowkiq.clock, planted.CountsPayloads, options_of("CountsPayloads", plan=plan))

    new, paid = "Status(status='new')", "Status(status='paid')"
    [calls] = [line for line in report.findings[0].story if "calls" in line]
    assert f"{{'1': [{new}]}}; {{'1': [{new}, {paid}]}}; again {{'1': [{new}]}}; {{'1': [{paid}]}}" in calls
