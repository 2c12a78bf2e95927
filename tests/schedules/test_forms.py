"""Forms of other schedulers: each is taken as what it stands for, or refused with the form to write instead."""

from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lowkiq_lambda import DeclarationError, Lowkiq
from lowkiq_lambda.schedules.expression import BOUNDS
from lowkiq_lambda.schedules.times import parse_cron
from tests.kit.handlers import Notes
from tests.kit.workers import declare
from tests.schedules.moments import at, between

ZONES: Final = (
    "UTC",
    "Europe/Berlin",
    "America/New_York",
    "Australia/Lord_Howe",
    "Africa/Cairo",
    "America/Santiago",
    "Asia/Kolkata",
    "Pacific/Apia",
)
TWINS: Final = {
    # Days on which clocks change are among them, and few others, as each time is evaluated.
    "@midnight": "0 0 * * *",
    "@annually": "0 0 1 1 *",
    "@noon": "0 12 * * *",
    "30 22-4 * 3,10 SUN": "30 0,1,2,3,4,22,23 * 3,10 SUN",
    "0 22-4/3 1 * *": "0 22,1,4 1 * *",
    "50-10/5 2 1 * *": "50,55,0,5,10 2 1 * *",
    "50-10 3 * 4 7": "0-10,50-59 3 * 4 0",
    "0 2 * 3,10 FRI-MON": "0 2 * 3,10 FRI,SAT,SUN,MON",
    "0 2 * * 6-7/7": "0 2 * * 6",
    "0 2 * 3 7-2": "0 2 * 3 0,1,2",
    "0 2 * 3 7-4/2": "0 2 * 3 0,2,4",
    "0 3 28-2 * *": "0 3 28,29,30,31,1,2 * *",
    "0 3 1 NOV-FEB *": "0 3 1 11,12,1,2 *",
    "0 2 * * SUN#-1": "0 2 * * 0L",
    "0 2 * * 7#-1,MON#1": "0 2 * * 0L,1#1",
    "0 2 -1 * *": "0 2 L * *",
    "0 2 15,-1 * *": "0 2 15,L * *",
    "0 2 ? * SUN#1": "0 2 * * SUN#1",
    "0 2 1 * ?": "0 2 1 * *",
    "15,45 0 2 ? 3,10 SAT-SUN": "15,45 0 2 * 3,10 0,6",
}
START: Final = at("2020-01-01")
END: Final = at("2030-01-01")


@pytest.mark.parametrize("tz", ZONES)
def test_a_form_fires_as_its_expanded_twin(tz: str) -> None:
    """Over ten years, with the changes of clocks and the day that Samoa left out; the digest is that of the times."""
    for form, twin in TWINS.items():
        cron, plain = parse_cron(form, tz), parse_cron(twin, tz)
        if "@" in form:
            assert (tz, form, plain.digest) == (tz, form, cron.digest)
            continue
        planned = between(cron, START, END)
        assert planned
        assert (form, between(plain, START, END)) == (form, planned)
        assert (form, plain.digest) == (form, cron.digest)
        assert form == cron.text
        cron.check_declared()


@given(place=st.integers(0, 4), ends=st.tuples(st.integers(0, 59), st.integers(0, 59)), step=st.integers(1, 7))
def test_any_range_counts_from_its_first_number_on(place: int, ends: tuple[int, int], step: int) -> None:
    """Also over the end of its field: as if its numbers were written one by one."""
    least, most = [*BOUNDS.values()][1 + place]
    circle = [*range(least, 7 if place == 4 else most + 1)]
    begin, end = (number % len(circle) for number in ends)
    turned = [*circle[begin:], *circle[:begin]]
    numbers = turned[: (end - begin) % len(circle) + 1 : step]
    fields = ["0", "0", "*" if place == 4 else "1", "*", "*"]

    def digest_with(text: str) -> str:
        return parse_cron(" ".join([*fields[:place], text, *fields[place + 1 :]])).digest

    steps = "" if step == 1 else f"/{step}"
    assert digest_with(",".join(map(str, numbers))) == digest_with(f"{circle[begin]}-{circle[end]}{steps}")


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        ("0 9 * * * Europe/Berlin", "0 9 * * *"),
        ("CRON_TZ=Europe/Berlin 0 9 * * *", "0 9 * * *"),
        ("TZ=Europe/Berlin  0 9 * * *", "0 9 * * *"),
        ("0 0 9 * * * Europe/Berlin", "0 0 9 * * *"),
        ("@noon Europe/Berlin", "@noon"),
    ],
)
def test_an_expression_may_name_its_zone(text: str, fields: str) -> None:
    """It is the entry's zone; said a second time it must be the same one."""
    for cron in (parse_cron(text), parse_cron(text, "Europe/Berlin")):
        assert (fields, "Europe/Berlin") == (cron.text, cron.tz)
    with pytest.raises(DeclarationError, match="names the zone 'Europe/Berlin', and tz is 'UTC': give one"):
        parse_cron(text, "UTC")


REFUSED: Final = {
    "@every 10m": "write app.every(timedelta(minutes=10), …).",
    "@every 1h30m": "write app.every(timedelta(hours=1, minutes=30), …).",
    "45m": "write app.every(timedelta(minutes=45), …).",
    "0 9 1W * *": "write 1, or LW, the last one.",
    "0 9 * * mon%2": "write app.every(timedelta(weeks=2), …, offset=…).",
    "0 9 * * mon%2+1": "write app.every(timedelta(weeks=2), …, offset=…).",
    "rate(5 minutes)": "write app.every(timedelta(minutes=5), …).",
    "cron(0 18 ? * MON-FRI *)": "did you mean '0 18 ? * MON-FRI'?",
    "cron(0 9 ? * 2#1 *)": "did you mean '0 9 ? * 1#1'?",
    "cron(0 9 ? * 6L *)": "did you mean '0 9 ? * 5L'?",
    "cron(0 9 1 1 ? 2027)": "write the five fields before it, and app.at for a moment that comes once.",
    "every minute": "did you mean '* * * * *'?",
    "every 15 minutes": "did you mean '*/15 * * * *'?",
    "every 90 minutes": "write app.every(timedelta(minutes=90), …).",
    "every hour": "did you mean '0 * * * *'?",
    "every day at 14:30": "did you mean '30 14 * * *'?",
    "daily at midnight": "did you mean '0 0 * * *'?",
    "at 9 pm": "did you mean '0 21 * * *'?",
    "every weekday at 9": "did you mean '0 9 * * MON-FRI'?",
    "weekends at noon": "did you mean '0 12 * * SAT,SUN'?",
    "every monday at 9:05": "did you mean '5 9 * * MON'?",
    "every Tuesday and Thursday at 10:15 pm": "did you mean '15 22 * * TUE,THU'?",
    "first monday of the month at 8": "did you mean '0 8 * * MON#1'?",
    "the last Friday of each month at 12 am": "did you mean '0 0 * * FRI#-1'?",
    "first day of the month at 6": "did you mean '0 6 1 * *'?",
    "15th of the month": "did you mean '0 0 15 * *'?",
    "last day of the month at 23:59": "did you mean '59 23 L * *'?",
    "every day at 25": "it must have five fields",
    "every quarter": "it must have five fields",
}


@pytest.mark.parametrize(("text", "offer"), REFUSED.items())
def test_what_is_refused_comes_with_the_form_to_write(text: str, offer: str) -> None:
    """And that form is taken: no phrase is ever guessed, because one that is guessed wrongly fires for years."""
    app = Lowkiq()
    worker = declare(app, "orders", Notes())
    with pytest.raises(DeclarationError) as refused:
        app.cron(text, worker, id="nightly")

    assert str(refused.value).endswith(offer) or offer in str(refused.value)
    assert [] == app.schedules.declared
    if offer.startswith("did you mean"):
        app.cron(offer.split("'")[1], worker, id="nightly")
