"""Planted faults are found in their class, and mended handlers pass; each kind of fault is needed for one of them."""

import re
import sys
from collections.abc import Collection
from typing import Any

import pytest

from lowkiq_lambda.testing import AppUnderTest
from lowkiq_lambda.testing.fuzz.plan import KINDS, FaultKind
from lowkiq_lambda.testing.fuzz.report import FuzzFailed, FuzzReport
from lowkiq_lambda.testing.fuzz.run import fuzz
from tests.fuzz import planted
from tests.fuzz.fuzzing import options_of

PLANTED = [
    ("Counter", "repeat"),
    ("Mail", "effect mail"),
    ("MailAfterCommit", "effect mail"),
    ("LastWins", "late"),
    ("ReadThenWrite", "two holders"),
    ("AddsAndReads", "repeat"),
    ("AddsAndReads", "two holders"),
    ("Partial", "repeat"),
    ("ThereAndBack", "merging"),
    ("FirstOfMany", "batch"),
    ("CatchesAll", "swallows death"),
    ("RefusesRepeats", "morgue"),
    ("Pages", "repeat"),
    ("Awaited", "repeat"),
    ("MarksFirst", "repeat"),
]
MENDED = [
    "CounterMended",
    "MailMended",
    "LastWinsMended",
    "PartialMended",
    "PagesMended",
    "AwaitedMended",
    "MarksMended",
]
IN_EACH_CHECK = 120
IN_THE_NIGHT = 1_000
SWITCHED_OFF: list[tuple[str, str, dict[str, Any]]] = [
    ("ReadThenWrite", "two holders", {"faults": {*KINDS} - {"freeze"}}),
    ("Counter", "repeat", {"faults": ()}),
    ("Counter", "repeat", {"faults": ["freeze"]}),
    ("Partial", "repeat", {"faults": ["freeze", "after_handler"]}),
    ("ThereAndBack", "merging", {"merges": False}),
    ("CatchesAll", "swallows death", {"faults": {*KINDS} - {"die"}}),
    ("MailAfterCommit", "effect mail", {"faults": {*KINDS} - {"die", "fail"}}),
]


def fuzzed(kit: AppUnderTest, name: str, **options: Any) -> FuzzReport:
    """The report of a planted handler."""
    return fuzz(kit.app, kit.clock, getattr(planted, name), options_of(name, **options))


def classes(report: FuzzReport) -> list[str]:
    """The classes of what was found."""
    return [finding.fault_class for finding in report.findings]


@pytest.mark.parametrize(("name", "fault_class"), PLANTED)
def test_a_planted_fault_is_found(lowkiq: AppUnderTest, name: str, fault_class: str) -> None:
    """In its class, within 100 scenarios, and its plan shows it again."""
    report = fuzzed(lowkiq, name)
    [finding] = [one for one in report.findings if one.fault_class == fault_class]
    again = fuzzed(lowkiq, name, plan=finding.plan)

    assert finding.scenario <= 100
    assert [fault_class] == classes(again)
    assert finding.story == again.findings[0].story


@pytest.mark.parametrize("name", MENDED)
def test_a_mended_handler_ends_as_a_plain_run(lowkiq: AppUnderTest, name: str) -> None:
    """Whatever happens to its process."""
    report = fuzzed(lowkiq, name, scenarios=IN_EACH_CHECK)

    assert [] == report.findings
    assert IN_EACH_CHECK == report.scenarios
    assert report.lines["die"] <= report.lines[""]
    assert report.faults["freeze"] > 10


@pytest.mark.nightly("a thousand scenarios; 120 of them are in each check")
@pytest.mark.parametrize("name", MENDED)
def test_a_mended_handler_passes_a_thousand(lowkiq: AppUnderTest, name: str) -> None:
    """Random ones with up to two faults among them."""
    report = fuzzed(lowkiq, name, scenarios=IN_THE_NIGHT)

    assert ([], IN_THE_NIGHT) == (report.findings, report.scenarios)


@pytest.mark.parametrize(("name", "fault_class", "options"), SWITCHED_OFF)
def test_without_a_kind_of_fault_the_handler_that_needs_it_is_not_found(
    lowkiq: AppUnderTest, name: str, fault_class: str, options: dict[str, Any]
) -> None:
    """So each kind is there for a reason."""
    assert fault_class not in classes(fuzzed(lowkiq, name, scenarios=60, **options))


@pytest.mark.parametrize(
    ("faults", "expected"),
    [(KINDS, {"repeat", "two holders"}), ({*KINDS} - {"freeze"}, {"repeat"}), (["freeze"], {"two holders"})],
)
def test_two_faults_of_a_handler_are_two_findings(
    lowkiq: AppUnderTest, faults: Collection[FaultKind], expected: set[str]
) -> None:
    """None hides behind the other one, and each plan has the faults alone that the fuzz may have."""
    report = fuzzed(lowkiq, "AddsAndReads", faults=faults)

    assert expected == {*classes(report)}
    for finding in report.findings:
        again = fuzzed(lowkiq, "AddsAndReads", plan=finding.plan)
        assert {*again.faults} <= {*faults}


def test_without_versions_no_version_is_late(lowkiq: AppUnderTest) -> None:
    """A handler whose last write wins is right, as far as one process has the id."""
    faults = {*KINDS} - {"freeze"}

    assert [] == classes(fuzzed(lowkiq, "LastWins", scenarios=60, versions=False, faults=faults))


def test_a_job_that_pushes_itself_never_ends(lowkiq: AppUnderTest) -> None:
    """The fuzz ends with that finding."""
    report = fuzzed(lowkiq, "PushesItself")

    assert (["never ends"], 1) == (classes(report), report.scenarios)


def test_a_push_that_comes_twice(lowkiq: AppUnderTest) -> None:
    """A counter that survives repeats of a job may count an equal push again: only if asked for."""
    report = fuzzed(lowkiq, "CounterMended", scenarios=60, duplicates=True)

    assert [] == classes(report)
    assert "repeat" in classes(fuzzed(lowkiq, "Counter", scenarios=60, duplicates=True))


def test_a_finding_fails_the_test_with_its_story(lowkiq: AppUnderTest) -> None:
    """In plain words, with the line of the user's code, both ends, an advice, and the plan."""
    with pytest.raises(FuzzFailed) as failure:
        lowkiq.fuzz(planted.ReadThenWrite, **options_of("ReadThenWrite"))

    text = str(failure.value)
    assert "ReadThenWrite ends differently (two holders): scenario " in text
    assert "drain, and the process stands still before planted.py:" in text
    assert "if row is None or row[0] <= version:; its lease ends" in text
    assert "expected  {'1': 'sent'}\n  actual    {'1': 'new'}" in text
    assert "advice: put the condition into the write itself" in text
    assert 'replay: [["push","1",{"status":"new"},1.0],["drain","freeze",0,"planted.py:ReadThenWrite.perform+' in text


def test_a_green_report_says_what_a_fuzz_cannot_see(lowkiq: AppUnderTest) -> None:
    """And never that a handler is safe."""
    text = str(lowkiq.fuzz(planted.CounterMended, **options_of("CounterMended", scenarios=20)))

    assert (None, None, None) == sys.exc_info()
    assert re.match(
        r"CounterMended: no difference in 20 scenarios in \d+\.\d s: 20 of \d\d\d systematic ones; "
        r"all of them take some \d+ seconds\n  \d+ faults: died at \d, failed at \d, stood still at \d of \d+ lines\n",
        text,
    ), text
    assert "It refutes and never proves. It does not see deaths within C code" in text
    assert "safe" not in text


def test_a_death_between_two_calls_of_a_line(lowkiq: AppUnderTest) -> None:
    """No line shows it; a watched function has points before its call and before its answer, in plans, too."""
    kinds = ["die"]
    assert [] == classes(fuzzed(lowkiq, "CallsTwice", scenarios=60, faults=kinds))

    report = fuzzed(lowkiq, "CallsTwice", scenarios=60, faults=kinds, watch=["tests.fuzz.planted.note"])

    [finding] = report.findings
    assert "drain, and the process dies before the answer of tests.fuzz.planted.note" in finding.story[1]
    again = fuzzed(lowkiq, "CallsTwice", plan=finding.plan, watch=["tests.fuzz.planted.note"])
    assert finding.story == again.findings[0].story
    assert "note" == planted.note.__name__
