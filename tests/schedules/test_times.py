"""Planned times of periods and moments, and what is refused as planned times."""

from datetime import UTC, datetime, timedelta
from itertools import islice, pairwise
from typing import Final

import pytest
from cronsim import CronSim, CronSimError
from hypothesis import given, settings
from hypothesis import strategies as st

from lowkiq_lambda.base.errors import DeclarationError
from lowkiq_lambda.schedules.expression import ALIASES, fields_of
from lowkiq_lambda.schedules.times import Times, parse_at, parse_cron, parse_every, parse_times
from tests.schedules.moments import at, utc


def test_a_period_is_counted_from_1970() -> None:
    """X-22, X-21: neither a start nor a deploy moves it, so every 48 hours come also where deploys are daily."""
    two_days = parse_every(timedelta(days=2), offset=timedelta(minutes=5))
    foretold = [utc(moment) for moment in islice(two_days.after(at("2026-01-01")), 3)]

    assert ["2026-01-01 00:05", "2026-01-03 00:05", "2026-01-05 00:05"] == foretold
    assert "2026-01-05 00:05" == utc(next(two_days.after(at("2026-01-03 17:11"))))


@settings(deadline=None)
@given(
    period=st.floats(1.0, 1e6),
    part=st.floats(0.0, 0.99),
    moment=st.floats(0.0, 4e9),
)
def test_a_period_leaves_no_moment_out(period: float, part: float, moment: float) -> None:
    """The times after any moment begin within a period, ascend by it, and do not depend on where one asks."""
    every = parse_every(period, period * part)

    found = [*islice(every.after(moment), 3)]

    assert moment < found[0]
    assert found[0] - period <= moment or found[0] - period == pytest.approx(moment)
    assert [pytest.approx(period, abs=1e-5)] * 2 == [later - one for one, later in pairwise(found)]
    assert found[1:] == [*islice(every.after(found[0]), 2)]


def test_a_period_comes_also_just_after_the_question() -> None:
    """The last moment before a planned time, divided by the period, is rounded up to it."""
    assert 1_058_986_637.1 == next(parse_every(97.3).after(1_058_986_637.0999999))


def test_an_expression_has_five_fields_or_six_and_goes_by_utc() -> None:
    """X-3: with six the seconds come first; the zone is UTC where none is given."""
    noon = at("2026-01-01 12:00")
    found = {text: [*islice(parse_cron(text).after(noon), 2)] for text in ("30 12 * * *", "20,40 30 12 * * *")}

    half_past = noon + 1_800.0
    assert {
        "30 12 * * *": [half_past, half_past + 86_400.0],
        "20,40 30 12 * * *": [half_past + 20.0, half_past + 40.0],
    } == found
    assert half_past - 3_600.0 + 86_400.0 == next(parse_cron("30 12 * * *", "Europe/Berlin").after(noon))


def test_a_moment_comes_once() -> None:
    """X-21: it comes after any earlier moment, and not after itself."""
    year = parse_at(datetime(2026, 12, 31, 23, tzinfo=UTC))

    assert [at("2026-12-31 23:00")] == list(year.after(0.0))
    assert [] == list(year.after(at("2026-12-31 23:00")))


@pytest.mark.parametrize(
    ("text", "tz", "sentence"),
    [
        (
            "0 4 * *",
            "UTC",
            "cron '0 4 * *' is not an expression: it must have five fields, such as '0 4 * * MON-FRI', ",
        ),
        ("0 0 0 4 * * *", "UTC", "is not an expression"),
        ("", "UTC", "cron '' is not an expression"),
        ("every day at five", "UTC", "cron 'every day at five' is not an expression: it must have five fields"),
        ("every day at five o'clock", "UTC", "is not an expression"),
        ("@reboot", "UTC", "cron '@reboot' is refused: entries belong to an app, not to a process."),
        (
            "@dayly",
            "UTC",
            "cron '@dayly' is not an alias: there are @hourly, @daily, @midnight, @noon, @weekly, @monthly, @yearly, ",
        ),
        (
            "0 4 * * * Europe/Berlin",
            "UTC",
            "cron '0 4 * * * Europe/Berlin' names the zone 'Europe/Berlin', and tz is 'UTC': give one.",
        ),
        ("CRON_TZ=Asia/Tokyo 0 4 * * *", "UTC", "names the zone 'Asia/Tokyo', and tz is 'UTC': give one."),
        ("0 4 Europe/Berlin * * *", "UTC", "names a zone: give it as tz instead, not as 'Europe/Berlin'."),
        (
            "0 4 ? * ?",
            "UTC",
            "cron '0 4 ? * ?' has a '?', which stands for * in one of the two fields of days: write *.",
        ),
        ("? 4 * * *", "UTC", "cron '? 4 * * *' has a '?', which"),
        ("0 MON * * *", "UTC", "cron '0 MON * * *' cannot have 'MON' as its hour: there are 0 to 23."),
        (4, "UTC", "cron must be a text of five fields"),
        ("0 4 * * *", "", "tz must be the name of a time zone, such as 'Europe/Berlin', not ''."),
        ("0 4 * * *", "../etc/passwd", "tz must be the name of a time zone"),
        ("0 4 * * *", None, "tz must be the name of a time zone"),
        ("0 4 * * *", "localtime", "tz 'localtime' may mean another zone on another machine"),
        ("0 4 * * *", "posixrules", "tz 'posixrules' may mean another zone"),
        ("0 4 * * *", "right/Europe/Berlin", "tz 'right/Europe/Berlin' may mean another zone"),
        (
            "*/90 * * * *",
            "UTC",
            "cron '*/90 * * * *' cannot have a step of 90 as its minute: steps begin anew after 60.",
        ),
        ("0 0-23/25 * * *", "UTC", "cannot have a step of 25 as its hour: steps begin anew after 24."),
        (f"*/{'9' * 5_000} * * * *", "UTC", "characters] "),
        (f"{'x' * 5_000} 4 * * *", "UTC", "characters] "),
        (f"{','.join(['0'] * 100_000)} 4 * * *", "UTC", " has 200007 characters: 500 are enough for any times"),
    ],
)
def test_a_declaration_refuses_what_has_not_the_form(text: object, tz: str, sentence: str) -> None:
    """X-3: natural language, a zone in the line and @reboot are refused, in a sentence, and nothing is evaluated."""
    with pytest.raises(DeclarationError) as refused:
        parse_cron(text, tz)

    assert sentence in str(refused.value)


@pytest.mark.parametrize(
    ("text", "tz", "sentence"),
    [
        ("61 4 * * *", "UTC", "cron '61 4 * * *' cannot have '61' as its minute: there are 0 to 59."),
        ("60 0 4 * * *", "UTC", "cron '60 0 4 * * *' cannot have '60' as its second: there are 0 to 59."),
        (
            "0 4 * * FOO",
            "UTC",
            "cron '0 4 * * FOO' cannot have 'FOO' as its day-of-week: there are 0 to 7, SUN to SAT, 5L, MON#1.",
        ),
        ("0 4 * * FRI-FOO", "UTC", "cannot have 'FRI-FOO' as its day-of-week: "),
        ("0 24 * * *", "UTC", "cron '0 24 * * *' cannot have '24' as its hour: there are 0 to 23; midnight is 0."),
        ("*/0 4 * * *", "UTC", "cannot have '*/0' as its minute: "),
        ("0 0 30 2 *", "UTC", "cron '0 0 30 2 *' never comes: February has no 30th."),
        ("0 0 31 4,6,9 *", "UTC", "cron '0 0 31 4,6,9 *' never comes: April, June and September have no 31st."),
        ("0 0 * 2 MON#5", "Mars/Olympus", "tz 'Mars/Olympus' is not a time zone that is known here"),
        ("0 4 * * *", "Europe", "tz 'Europe' is not a time zone that is known here"),
        ("0 4 * * *", "Europe/Berln", "is not a time zone that is known here: did you mean 'Europe/Berlin'?"),
    ],
)
def test_a_check_refuses_what_cannot_work(text: str, tz: str, sentence: str) -> None:
    """X-8: what has the form may still have a wrong number, an unknown zone, or no day that fits."""
    cron = parse_cron(text, tz)

    for check in (cron.check, cron.check_declared):
        with pytest.raises(DeclarationError) as refused:
            check()
        assert sentence in str(refused.value)


@pytest.mark.parametrize("text", ["0 0 29 2 *", "0 0 * 2 MON#5", "0 0 31 1,2 *", *ALIASES])
def test_a_check_takes_what_comes_seldom(text: str) -> None:
    """Days that only leap years have, and aliases, are not refused."""
    parse_cron(text).check()
    parse_cron(text).check_declared()


TERMS: Final = st.one_of(
    st.sampled_from(
        [
            *("*", "*/0", "*/2", "L", "LW", "5L", "8L", "MON#1", "MON#6", "MON#-1", "7#5", "-1", "JAN", "SAT-SUN"),
            *("DEC-MAR", "MAR-DEC"),
        ]
    ),
    st.integers(0, 61).map(str),
    st.builds("{}-{}".format, st.integers(0, 61), st.integers(0, 61)),
    st.builds("{}-{}/{}".format, st.integers(0, 31), st.integers(0, 31), st.integers(0, 7)),
    st.builds("{}/{}".format, st.integers(0, 61), st.integers(0, 7)),
)


@given(fields=st.lists(st.lists(TERMS, min_size=1, max_size=2).map(",".join), min_size=5, max_size=6))
def test_a_declaration_knows_what_an_evaluation_refuses(fields: list[str]) -> None:
    """Whatever has the form: numbers, ranges and steps are judged as by the library that is not imported for that."""
    text = " ".join(fields)
    try:
        cron = parse_cron(text)
    except DeclarationError:
        return
    answers = []
    plain = " ".join(fields_of(text))
    for judge in (lambda: CronSim(plain, datetime(2026, 1, 1, tzinfo=UTC)), cron.check_declared):
        try:
            judge()
        except (CronSimError, DeclarationError):
            answers.append("rejected")
        else:
            answers.append("taken")

    assert answers[0] == answers[1]


@pytest.mark.parametrize(
    ("period", "offset", "sentence"),
    [
        (0, 0, "every must be from 1 to 31,622,400 seconds, not 0.0."),
        (True, 0, "every must be a timedelta or a number of seconds, not True."),
        ("10", 0, "not '10'."),
        (float("nan"), 0, "not nan."),
        (timedelta(days=400), 0, "not 34560000.0."),
        (60, "1", "offset must be a timedelta or a number of seconds, not '1'."),
        (60, 60, "offset must be from 0 to less than the period, not 60.0."),
        (60, -1, "offset must be from 0 to less than the period, not -1.0."),
    ],
)
def test_a_period_is_a_number_of_seconds(period: object, offset: object, sentence: str) -> None:
    """It has a least and a most, and an offset within it."""
    with pytest.raises(DeclarationError) as refused:
        parse_every(period, offset)

    assert sentence in str(refused.value)


def test_a_moment_names_its_zone() -> None:
    """A datetime of no zone would mean another moment on each machine; a number must be in seconds."""
    with pytest.raises(DeclarationError, match="at must name its zone"):
        parse_at(datetime(2026, 12, 31, 23))  # noqa: DTZ001 - it is refused for that
    for moment in (1e12, 86_400, "2026-12-31"):
        with pytest.raises(DeclarationError, match="at must be a datetime that names its zone"):
            parse_at(moment)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("00 4 * * *", "0 4 * * *"),
        ("0 4 * * 7", "0  4 * * sun"),
        ("@daily", "0 0 * * *"),
        ("*/20 * * * *", "*/20 */1 * * *"),
        ("0 0 4 * * *", "0 4 * * *"),
        ("0 0 1 jan *", "@yearly"),
    ],
)
def test_the_same_times_have_the_same_digest(one: str, other: str) -> None:
    """An expression that is only written in another way is not another entry."""
    assert parse_cron(one).digest == parse_cron(other).digest


def test_other_times_have_another_digest() -> None:
    """So do another zone, a star where clocks change, and days that must both fit instead of either."""
    values: list[Times] = [
        parse_cron("0 4 * * *"),
        parse_cron("0 4 * * *", "Europe/Berlin"),
        parse_cron("0,30 4 * * *"),
        parse_cron("*/30 4 * * *"),
        parse_cron("0 4 1 * 1"),
        parse_cron("0 4 1-31 * 1"),
        parse_cron("0 4 * * 1"),
        parse_cron("0 4 L * 1"),
        parse_every(600),
        parse_every(600, 30),
        parse_at(at("2026-01-01")),
    ]

    assert len(values) == len({value.digest for value in values})


def test_the_zone_of_a_period_is_for_people() -> None:
    """It changes no planned time, so it changes no digest."""
    assert parse_every(600, tz="Europe/Berlin").digest == parse_every(600).digest


@pytest.mark.parametrize(
    ("times", "text", "explained"),
    [
        (parse_cron("0 9 * * MON#1"), "0 9 * * MON#1", "At 09:00 on the first Monday of the month"),
        (parse_cron("*/15 * * * *"), "*/15 * * * *", "Every 15th minute of every hour"),
        (parse_cron("*/45 * * * *"), "*/45 * * * *", "At minutes 0 and 45 of every hour"),
        (parse_cron("0-59/45 * * * *"), "0-59/45 * * * *", "At minutes 0 and 45 of every hour"),
        (parse_cron("10-50/20 * * * *"), "10-50/20 * * * *", "Every 20th minute from 10 through 50 of every hour"),
        (parse_cron("*/50 * * * * *"), "*/50 * * * * *", "At seconds 0 and 50 of every minute"),
        (parse_cron("0 */5 * * *"), "0 */5 * * *", "At minute 0 past hours 0, 5, 10, 15, and 20"),
        (parse_cron("0 0 1 */5 *"), "0 0 1 */5 *", "At 00:00 on the first day of January, June, and November"),
        (
            parse_cron("0 0 */15 * 1"),
            "0 0 */15 * 1",
            "At 00:00 on the first, the 16th, and the 31st day of month if it's on Monday",
        ),
        (parse_cron("0 0 */1 * *"), "0 0 */1 * *", "At 00:00 every day"),
        (parse_cron("0 0 13 * 5"), "0 0 13 * 5", "At 00:00 on the 13th day of month or on Friday"),
        (parse_cron("0 0 13 * *"), "0 0 13 * *", "At 00:00 on the 13th day of every month"),
        (parse_cron("0 0 22 * *"), "0 0 22 * *", "At 00:00 on the 22nd day of every month"),
        (parse_every(600), "600", "Every 10 min"),
        (parse_every(90_061.5, 30), "90061.5+30", "Every 1 d 1 h 1 min 1.5 s, 30 s after its beginning"),
        (
            parse_at(datetime(2026, 12, 31, 23, tzinfo=UTC)),
            "2026-12-31T23:00:00+00:00",
            "Once, at 2026-12-31T23:00:00+00:00",
        ),
    ],
)
def test_a_value_comes_back_from_its_text(times: Times, text: str, explained: str) -> None:
    """Kind, text and zone are the value: Redis and files keep these."""
    found = parse_times(times.kind, text)

    assert times == found
    assert (text, explained) == (found.text, found.explain())
    spelt = f"{text} UTC" if times.kind == "cron" else f"{explained[0].lower()}{explained[1:]}"
    assert spelt == found.declared


@settings(deadline=None)
@given(st.floats(1.0, 1e7), st.floats(0.0, 0.99))
def test_any_period_comes_back_from_its_text(period: float, part: float) -> None:
    """To the last digit, so that the digest stays."""
    every = parse_every(period, period * part)

    assert every == parse_times("every", every.text)


@pytest.mark.parametrize(
    ("kind", "text", "sentence"),
    [
        ("daily", "0 4 * * *", "the kind of an entry's times must be cron, every or at, not 'daily'."),
        ("every", "ten", "'ten' is not the text of times of the kind 'every'."),
        ("at", "tomorrow", "'tomorrow' is not the text of times of the kind 'at'."),
        ("cron", 4, "the text of an entry's times must be a text, not 4."),
        ("at", "2026-12-31T23:00:00", "at must name its zone"),
    ],
)
def test_a_text_of_no_times_is_refused(kind: object, text: object, sentence: str) -> None:
    """Whatever stands in a file or in Redis, the error is a sentence."""
    with pytest.raises(DeclarationError) as refused:
        parse_times(kind, text)

    assert sentence in str(refused.value)
