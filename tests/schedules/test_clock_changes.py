"""Cron expressions where the clocks change: the table of docs/schedules.md."""

from itertools import islice
from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lowkiq_lambda.schedules.times import parse_cron
from tests.schedules.moments import at, between, clock_changes, local_date, utc

DAY: Final = 86_400.0
HOUR: Final = 3_600.0
ZONES: Final = (
    "Europe/Berlin",
    "America/New_York",
    "Australia/Lord_Howe",
    "Africa/Cairo",
    "America/Santiago",
    "America/St_Johns",
    "Africa/Casablanca",
    "America/Havana",
    "Asia/Beirut",
    "Europe/Dublin",
)
CHANGES: Final = {tz: [change for year in (2025, 2026, 2027) for change in clock_changes(tz, year)] for tz in ZONES}
EXPRESSIONS: Final = (
    "30 2 * * *",
    "30 1 * * *",
    "15 0 * * *",
    "*/30 2 * * *",
    "0,30 0-3 * * *",
    "0 * * * *",
    "*/7 * * * *",
    "0 30 2 * * *",
    "15,45 30 1 * * *",
    "45 23 * * *",
    "0 0 * * *",
    "10 3 * * *",
)

TABLE: Final = [
    # The clocks of Berlin go from 02:00 to 03:00, and from 03:00 back to 02:00.
    ("30 2 * * *", "Europe/Berlin", "2026-03-29", ["2026-03-29 01:00"]),
    ("30 2 * * *", "Europe/Berlin", "2026-10-25", ["2026-10-25 00:30"]),
    ("0,30 2 * * *", "Europe/Berlin", "2026-03-29", ["2026-03-29 01:00"]),
    ("0,30 2 * * *", "Europe/Berlin", "2026-10-25", ["2026-10-25 00:00", "2026-10-25 00:30"]),
    ("*/30 2 * * *", "Europe/Berlin", "2026-03-29", []),
    (
        "*/30 2 * * *",
        "Europe/Berlin",
        "2026-10-25",
        ["2026-10-25 00:00", "2026-10-25 00:30", "2026-10-25 01:00", "2026-10-25 01:30"],
    ),
    ("0 30 2 * * *", "Europe/Berlin", "2026-03-29", ["2026-03-29 01:00"]),
    ("0 30 2 * * *", "Europe/Berlin", "2026-10-25", ["2026-10-25 00:30"]),
    ("15,45 30 2 * * *", "Europe/Berlin", "2026-03-29", ["2026-03-29 01:00:15", "2026-03-29 01:00:45"]),
    # Those of Lord Howe by half an hour.
    ("45 1 * * *", "Australia/Lord_Howe", "2026-04-05", ["2026-04-04 14:45"]),
    ("15 2 * * *", "Australia/Lord_Howe", "2026-10-04", ["2026-10-03 15:30"]),
    # In Santiago and Cairo midnight is left out.
    ("0 0 * * *", "America/Santiago", "2026-09-06", ["2026-09-06 04:00"]),
    ("15 0 * * *", "Africa/Cairo", "2026-04-24", ["2026-04-23 22:00"]),
    # Samoa left out the 30th of December 2011.
    ("0 0 * * *", "Pacific/Apia", "2011-12-31", ["2011-12-30 10:00"]),
    ("0 12 30 12 *", "Pacific/Apia", "2011-12-31", ["2011-12-30 10:00"]),
]


@pytest.mark.parametrize(("text", "tz", "day", "planned"), TABLE)
def test_a_day_on_which_the_clocks_change(text: str, tz: str, day: str, planned: list[str]) -> None:
    """C-2, X-3: by the wall clock each planned time comes once, late where it is left out; a star goes by real time."""
    cron = parse_cron(text, tz)
    local_day = [
        moment for moment in between(cron, at(day) - 2 * DAY, at(day) + 2 * DAY) if local_date(moment, tz) == day
    ]

    assert planned == [utc(moment) for moment in local_day]


def test_the_second_pass_of_an_hour_does_not_bring_back_the_first() -> None:
    """Asked in it, the next planned time lies on the next day: cronsim alone answers with one that has passed."""
    found = parse_cron("30 2 * * *", "Europe/Berlin").after(at("2026-10-25 01:15"))

    assert "2026-10-26 01:30" == utc(next(found))


def test_each_minute_has_no_gap_where_the_clocks_change() -> None:
    """Three hours around either change have 180 minutes."""
    cron = parse_cron("* * * * *", "Europe/Berlin")
    for day in ("2026-03-29", "2026-10-25"):
        start = at(day) - HOUR
        assert [start + 60.0 * minute for minute in range(1, 181)] == between(cron, start, start + 3 * HOUR)


@pytest.mark.parametrize(
    ("text", "start", "planned"),
    [
        ("0 0 29 2 *", "2026-01-01", ["2028-02-29 00:00", "2032-02-29 00:00"]),
        ("0 0 31 * *", "2026-01-31", ["2026-03-31 00:00", "2026-05-31 00:00"]),
        ("0 0 13 * 5", "2026-02-06", ["2026-02-13 00:00", "2026-02-20 00:00"]),
        ("0 0 13 * 5", "2026-04-10", ["2026-04-13 00:00", "2026-04-17 00:00"]),
        ("0 0 L * *", "2026-02-01", ["2026-02-28 00:00", "2026-03-31 00:00"]),
        ("0 0 LW * *", "2026-01-01", ["2026-01-30 00:00", "2026-02-27 00:00"]),
        ("0 0 * * 5L", "2026-01-01", ["2026-01-30 00:00", "2026-02-27 00:00"]),
        ("0 9 * * MON#1", "2026-01-01", ["2026-01-05 09:00", "2026-02-02 09:00"]),
        ("59 59 23 31 12 *", "2016-01-01", ["2016-12-31 23:59:59", "2017-12-31 23:59:59"]),
        ("0 9 * * MON/2", "2026-01-01", ["2026-01-02 09:00", "2026-01-04 09:00"]),
        ("@weekly", "2026-01-01", ["2026-01-04 00:00", "2026-01-11 00:00"]),
        ("*/20 * * * * *", "2026-01-01 00:00:20", ["2026-01-01 00:00:40", "2026-01-01 00:01"]),
    ],
)
def test_days_that_not_every_month_has(text: str, start: str, planned: list[str]) -> None:
    """X-3: months without the day are left out; day of the month and of the week together mean either of the two."""
    assert planned == [utc(moment) for moment in islice(parse_cron(text).after(at(start)), 2)]


def test_times_end_with_the_year_9999() -> None:
    """Neither the last times that a calendar has, nor a question beyond them, is an error."""
    daily = parse_cron("0 0 * * *", "Europe/Berlin")

    assert ["9999-12-30 23:00"] == [utc(moment) for moment in daily.after(at("9999-12-30 12:00"))]
    assert [] == list(daily.after(1e12))


@settings(deadline=None)
@given(st.data())
def test_the_moment_of_the_question_changes_no_answer(data: st.DataObject) -> None:
    """Around any change of clocks the times after a moment are those that were foretold before: no state is needed."""
    tz = data.draw(st.sampled_from(ZONES))
    change = data.draw(st.sampled_from(CHANGES[tz]))
    cron = parse_cron(data.draw(st.sampled_from(EXPRESSIONS)), tz)
    moment = change + data.draw(st.floats(-3 * HOUR, 3 * HOUR))
    end = change + 27 * HOUR

    foretold = between(cron, change - 5 * HOUR, end)

    assert sorted({*foretold}) == foretold
    assert [planned for planned in foretold if planned > moment] == between(cron, moment, end)
