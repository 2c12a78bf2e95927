"""A bill of Cost Explorer: what is read of it, what is refused, and how far off an estimate is."""

from pathlib import Path

import pytest

from lowkiq_lambda.stack.advice.bill_files import BadBill, compared, read_bill

GOOD = """\ufeff"Service","Lambda($)","EventBridge($)","Tax($)","Total costs($)"
"Service total","3.65","0.5","1","5.15"
"2026-10-01","1.25","0.25","","1.5"
"2026-10-02","2.40","0.25","1","3.65"
"""


def written(folder: Path, text: str) -> Path:
    """A file with it."""
    path = folder / "costs.csv"
    path.write_text(text)
    return path


def test_the_days_are_added_up_and_totals_are_not(tmp_path: Path) -> None:
    """By service; a file without days is of a month."""
    bill = read_bill(written(tmp_path, GOOD))
    whole = read_bill(written(tmp_path, "".join(GOOD.splitlines(keepends=True)[:2])))

    assert ({"Lambda": 3.65, "EventBridge": 0.5, "Tax": 1.0}, 2) == (bill.services, bill.days)
    assert (bill.services, 0) == (whole.services, whole.days)


def test_the_estimate_of_as_many_days_is_compared(tmp_path: Path) -> None:
    """730 hours are a month; a service without an estimate is left out."""
    rows = {"Lambda, time": 30.0, "Lambda, requests": 6.5, "EventBridge Scheduler": 7.3}
    each = {one.service: one for one in compared(read_bill(written(tmp_path, GOOD)), rows)}

    assert ["Lambda", "EventBridge", "all of these"] == [*each]
    assert (2.4, 0.48) == pytest.approx((each["Lambda"].estimated, each["EventBridge"].estimated))
    assert (2.4 - 3.65) / 3.65 == pytest.approx(each["Lambda"].error)
    assert 4.15 == pytest.approx(each["all of these"].billed)


def test_of_a_service_that_was_not_billed_there_is_no_error(tmp_path: Path) -> None:
    """A share of nothing is not a number."""
    (one, _) = compared(read_bill(written(tmp_path, "Service,Lambda($)\n2026-10-01,0\n")), {"Lambda, time": 3.0})

    assert None is one.error


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "line 1: expected the first line"),
        ("at,id\n1,2\n", "line 1: expected the first line"),
        ("Service,Lambda($)\n", "there is no row"),
        ("Service,Lambda($)\n2026-10-01,1\n2026-10-02\n", "line 3: 1 columns, and the first line has 2"),
        ("Service,Lambda($)\n2026-10-01,much\n", "line 2: 'much' is not a number"),
        ("Service,Lambda($)\n2026-10-01,nan\n", "line 2: 'nan' is not a number"),
        ("Service,Lambda($)\nOctober,1\n", "line 2: 'October' is not a day"),
        ('Service,Lambda($)\n"2026-10-01,1\n', "line 2: "),
    ],
)
def test_what_is_no_bill_is_refused_with_its_line(tmp_path: Path, text: str, complaint: str) -> None:
    """The file is named, too."""
    path = written(tmp_path, text)
    with pytest.raises(BadBill, match=complaint) as refused:
        read_bill(path)

    assert str(path) in str(refused.value)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    """Or that is no text."""
    binary = tmp_path / "bill.csv"
    binary.write_bytes(b"\xff\xfe\x00")
    for path in (tmp_path / "none.csv", binary):
        with pytest.raises(BadBill, match="cannot be read"):
            read_bill(path)
