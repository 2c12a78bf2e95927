"""Which records of an event come again."""

from itertools import permutations

import pytest

from lowkiq_lambda.aws.ingesting import Failures
from lowkiq_lambda.aws.sources import Record


def failures_of(groups: str) -> Failures:
    """None yet, of records named by their positions, each of a group; `.` is none."""
    return Failures([Record(str(n), None if group == "." else group, list) for n, group in enumerate(groups)])


@pytest.mark.parametrize("order", [*permutations((1, 3, 5))])
def test_p3_of_a_group_all_behind_the_first_failure_comes_again(order: tuple[int, ...]) -> None:
    """P3: in whatever order failures are told, a record between two of them is not acknowledged."""
    failures = failures_of("aaaaaaa")
    for position in order:
        failures.add(position, ValueError(str(position)))

    assert list("123456") == failures.identifiers
    assert "1" == str(failures.first)


def test_p3_a_failure_holds_no_other_group() -> None:
    """Records of another group, and those of none, come again alone."""
    failures = failures_of("ab.ab.")
    for position in (2, 3, 1):
        failures.add(position, ValueError())

    assert list("1234") == failures.identifiers
