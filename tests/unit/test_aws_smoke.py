"""The smoke run's refusals of an account that cannot be used, and its checker of the runs in a log."""

import json
from pathlib import Path

import pytest

from local.aws_smoke.__main__ import REFUSED, main
from local.aws_smoke.app.smoke import MARK
from local.aws_smoke.outside import judged_runs


@pytest.fixture(autouse=True)
def _no_account(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("AWS_PROFILE", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--region", "eu-west-1"], "There are no credentials of AWS. Set AWS_PROFILE, or AWS_ACCESS_KEY_ID"),
        (["--region", "eu-wst-1"], "AWS has no region 'eu-wst-1'. Did you mean eu-west-1"),
        ([], "No region is set. Give --region"),
        (["--region", "eu-west-1", "--parameter", "MemorySize"], "--parameter has 'MemorySize'"),
        (
            ["--region", "eu-west-1", "--parameter", "MemorySiz=1"],
            "has no parameter MemorySiz. Did you mean MemorySize",
        ),
    ],
)
def test_an_account_that_cannot_be_used_is_refused(
    words: list[str], sentence: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One sentence says what is missing, and nothing was made or built."""
    monkeypatch.setattr("sys.argv", ["aws_smoke", *words])

    with pytest.raises(SystemExit) as ended:
        main()

    assert REFUSED == ended.value.code
    printed = capsys.readouterr()
    assert ("", 1) == (printed.out, printed.err.count("\n"))
    assert sentence in printed.err


def line(token: int, *runs: tuple[str, list[int], int, int]) -> str:
    """A line of the app's log."""
    return json.dumps({MARK: runs, "token": token})


def test_the_runs_of_a_log_are_judged_by_their_times() -> None:
    """Lines of several environments come in any order; what no run has is lost."""
    lines = [line(2, ("a", [2, 3], 30, 40)), "START RequestId: 1", line(1, ("a", [1], 10, 20), ("b", [1], 21, 22))]

    good = judged_runs({"a": 3, "b": 1}, lines, in_order=True)
    lost = judged_runs({"a": 4, "b": 1}, lines, in_order=True)

    assert (True, 4) == (good.is_good, good.done)
    assert ["a: 3 of 4"] == lost.lost


@pytest.mark.parametrize(
    ("lines", "wrong"),
    [
        ([line(1, ("a", [2], 10, 20)), line(2, ("a", [1], 30, 40))], "a: 2 after 0"),
        ([line(1, ("a", [1], 10, 30)), line(2, ("a", [2], 20, 40))], "a: [2]"),
        ([line(2, ("a", [1], 10, 20)), line(1, ("a", [2], 30, 40))], "a: token 1 after 2"),
    ],
    ids=["order", "overlap", "token"],
)
def test_a_broken_promise_is_named(lines: list[str], wrong: str) -> None:
    """A payload too early, two runs at once, a token that falls."""
    verdict = judged_runs({"a": 2}, lines, in_order=True)

    assert not verdict.is_good
    assert any(each.startswith(wrong) for each in (*verdict.out_of_order, *verdict.overlaps)), verdict


def test_a_standard_inbox_is_not_blamed_for_its_order() -> None:
    """It keeps none; tokens and runs at once are judged all the same."""
    lines = [line(1, ("a", [2], 10, 20)), line(2, ("a", [1], 30, 40))]

    assert judged_runs({"a": 2}, lines, in_order=False).is_good
