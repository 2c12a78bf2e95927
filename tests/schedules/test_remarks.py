"""What people are told of planned times where the clocks change."""

import pytest

from lowkiq_lambda.schedules.clock_changes import ClockChange, clock_changes, remarks
from lowkiq_lambda.schedules.times import parse_at, parse_cron, parse_every
from tests.schedules.moments import at, utc


def test_the_changes_of_a_zone_are_found_to_the_second() -> None:
    """Those of two years, and none for a zone that has none."""
    start, end = at("2026-01-01"), at("2027-06-01")

    assert [
        ClockChange(int(at("2026-03-29 01:00")), 3_600.0, 7_200.0),
        ClockChange(int(at("2026-10-25 01:00")), 7_200.0, 3_600.0),
        ClockChange(int(at("2027-03-28 01:00")), 3_600.0, 7_200.0),
    ] == [*clock_changes("Europe/Berlin", start, end)]
    assert [] == [*clock_changes("Asia/Tokyo", start, end)]
    assert [] == [*clock_changes("UTC", start, end)]


@pytest.mark.parametrize(
    ("text", "tz", "told"),
    [
        (
            "30 2 * * *",
            "Europe/Berlin",
            [
                "2026-03-29 01:00: in place of 02:30, which the clocks leave out",
                "2026-10-25 00:30: the clocks repeat this time: it fires the first time",
            ],
        ),
        (
            "15,45 30 2 * 3 *",
            "Europe/Berlin",
            ["2026-03-29 01:00:15: in place of 02:30:15, 02:30:45, which the clocks leave out"],
        ),
        ("*/10 2 * 3 *", "Europe/Berlin", ["2026-03-29 01:00: the clocks leave out 02:00 to 02:50"]),
        (
            "0 * * 10 *",
            "Europe/Berlin",
            [
                "2026-10-25 00:00: the clocks repeat this time: the first of two",
                "2026-10-25 01:00: the clocks repeat this time: the second of two",
            ],
        ),
        (
            "15 2 * 10 *",
            "Australia/Lord_Howe",
            ["2026-10-03 15:30: in place of 02:15, which the clocks leave out"],
        ),
        ("0 12 * * *", "Europe/Berlin", []),
        ("30 2 * * *", "UTC", []),
    ],
)
def test_a_remark_says_what_the_clocks_do(text: str, tz: str, told: list[str]) -> None:
    """In the words of the zone, at the moment that it is about."""
    found = remarks(parse_cron(text, tz), at("2026-01-01"), at("2027-01-01"))

    assert told == [f"{utc(remark.at)}: {remark.text}" for remark in found]


def test_remarks_are_of_the_time_that_was_asked_for() -> None:
    """A change that has passed is heard of while the clocks repeat its hour, and one that comes before it does."""
    cron = parse_cron("*/30 2 * * *", "Europe/Berlin")

    in_the_second_pass = remarks(cron, at("2026-10-25 01:10"), at("2026-10-25 12:00"))
    in_the_first_pass = remarks(cron, at("2026-10-24 12:00"), at("2026-10-25 00:00"))

    assert ["2026-10-25 01:30"] == [utc(remark.at) for remark in in_the_second_pass]
    assert ["2026-10-25 00:00"] == [utc(remark.at) for remark in in_the_first_pass]


def test_only_expressions_go_by_the_clocks() -> None:
    """Periods and moments are the same in each zone."""
    start, end = at("2026-01-01"), at("2027-01-01")

    assert [] == remarks(parse_every(1_800, tz="Europe/Berlin"), start, end)
    assert [] == remarks(parse_at(at("2026-03-29 01:00"), "Europe/Berlin"), start, end)
