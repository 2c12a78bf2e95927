"""The report says what a replay came to, and hides nothing."""

from dataclasses import replace

from local.demo.history import Change, History
from local.demo.replay import Counts
from local.demo.report import Report
from local.demo.table import Difference

CHANGES = [Change(seq, path, str(seq)) for seq, path in ((1, "a"), (1, "b"), (2, "a"))]
GOOD = Report(
    history=History("somewhere", "0123456789abcdef", CHANGES, {"a": "2", "b": "1"}),
    counts=Counts(batches=2, retries=1, interruptions=1),
    seconds=0.5,
    applied=3,
    repeated=1,
    out_of_order=0,
    missing=[],
    different=[],
)


def told(report: Report) -> str:
    """The whole report."""
    return "\n".join([report.summary, *report.explanation()])


def test_a_good_end_is_told_in_one_line_and_explained() -> None:
    """The first line has the figures; the second what they were compared with."""
    first, second, _third = told(GOOD).splitlines()
    assert first == "3 changes, 2 files, state equal, retries 1, interruptions 1, 6 jobs/s"
    assert "the 2 files that git ls-tree lists for commit 0123456789ab" in second
    assert GOOD.is_good


def test_differing_files_are_named_ten_at_most() -> None:
    """Each with what was found and what git has, without a control character of its name."""
    different = [Difference(f"file {n:02}", None, "1") for n in range(11)] + [Difference("tab\t", "1", None)]
    report = replace(GOOD, different=different)
    assert not report.is_good
    assert "state DIFFERS" in told(report)
    assert "12 files differ" in told(report)
    assert "file 09: 1, in git none" in told(report)
    assert "file 10" not in told(report)
    assert "and 2 more" in told(report)
    assert r"'tab\t': none, in git 1" in told(replace(GOOD, different=different[-1:]))


def test_an_equal_state_does_not_hide_what_went_wrong_on_the_way() -> None:
    """Changes that were lost, out of order or overlapping make the end a bad one."""
    for bad, words in (
        (replace(GOOD, missing=CHANGES[2:]), "1 changes were never applied, the first of a in commit 2"),
        (replace(GOOD, out_of_order=2), "2 changes ran out of order"),
        (replace(GOOD, counts=Counts(overlaps=3)), "3 times a file was begun while it still ran"),
    ):
        assert not bad.is_good
        assert words in told(bad)
        assert "No change was lost" not in told(bad)
