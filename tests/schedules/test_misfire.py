"""What becomes of planned times that have come: they fire or are missed, each of them once."""

from itertools import pairwise
from typing import Final, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lowkiq_lambda.schedules.misfire import MOST_FIRED, MOST_MISSED, SKIP_GRACE, Decision, Missed, decide
from lowkiq_lambda.schedules.times import Times, parse_at, parse_cron, parse_every
from tests.schedules.moments import at, between, utc

MINUTE: Final = 60.0
HOUR: Final = 3_600.0
DAY: Final = 86_400.0
START: Final = at("2026-03-28 23:00")
"""Two hours before the clocks change in Berlin."""
HOURLY: Final = parse_cron("0 * * * *")
MINUTELY: Final = parse_cron("* * * * *")


def told(decision: Decision) -> tuple[list[str], list[str], str | None]:
    """The decision, with its moments in words."""
    fire, missed, next_at = decision
    return [*map(utc, fire)], [*map(utc, missed)], None if next_at is None else utc(next_at)


def test_nothing_is_due_before_the_first_planned_time() -> None:
    """A look before it says when it comes, and decides nothing."""
    decision = decide(HOURLY, at("2026-01-01 10:00"), at("2026-01-01 10:59:59"), "once", HOUR)

    assert ([], [], "2026-01-01 11:00") == told(decision)


@pytest.mark.parametrize("policy", ["once", "skip", "all"])
def test_a_planned_time_fires_from_its_moment_on(policy: Missed) -> None:
    """In the second of it, and a tick later too, whatever the policy is."""
    for late in (0.0, 60.0):
        decision = decide(HOURLY, at("2026-01-01 10:00"), at("2026-01-01 11:00") + late, policy, HOUR)
        assert (["2026-01-01 11:00"], [], "2026-01-01 12:00") == told(decision)


@pytest.mark.parametrize(
    ("policy", "grace", "fire", "missed"),
    [
        ("once", HOUR, ["13:00"], ["11:00", "12:00"]),
        ("once", 20 * MINUTE, [], ["11:00", "12:00", "13:00"]),
        ("once", 30 * MINUTE, ["13:00"], ["11:00", "12:00"]),
        ("skip", DAY, [], ["11:00", "12:00", "13:00"]),
        ("all", DAY, ["11:00", "12:00", "13:00"], []),
        ("all", 1.5 * HOUR, ["12:00", "13:00"], ["11:00"]),
        ("all", 20 * MINUTE, [], ["11:00", "12:00", "13:00"]),
    ],
)
def test_an_outage_of_three_hours(policy: Missed, grace: float, fire: list[str], missed: list[str]) -> None:
    """C-8, X-6: nobody looked from 10:00 to 13:30; what is later than its grace is decided too, and never fires."""
    decision = decide(HOURLY, at("2026-01-01 10:00"), at("2026-01-01 13:30"), policy, grace)

    expected = [f"2026-01-01 {hour}" for hour in fire], [f"2026-01-01 {hour}" for hour in missed]
    assert (*expected, "2026-01-01 14:00") == told(decision)


def test_skip_fires_what_a_tick_was_late_for() -> None:
    """C-8: 120 seconds are no outage, as a tick comes once a minute; more are."""
    floor, planned = at("2026-01-01 10:00"), at("2026-01-01 11:00")

    assert (planned,) == decide(HOURLY, floor, planned + SKIP_GRACE, "skip", DAY).fire
    assert (planned,) == decide(HOURLY, floor, planned + SKIP_GRACE + 1, "skip", DAY).missed


def test_all_catches_up_in_parts() -> None:
    """A hundred firings at once, the oldest first; the next decision goes on with the rest, at once."""
    floor, now = START, START + 250 * MINUTE
    fired: list[float] = []
    for count in (MOST_FIRED, MOST_FIRED, 50):
        decision = decide(MINUTELY, floor, now, "all", DAY)
        assert count == len(decision.fire)
        assert () == decision.missed
        fired += decision.fire
        floor = fired[-1]
        assert floor + MINUTE == decision.next_at

    assert between(MINUTELY, START, now) == fired


@pytest.mark.parametrize("policy", ["once", "skip", "all"])
def test_a_year_of_absence_is_decided_at_once(policy: Missed) -> None:
    """Half a million planned times: the newest hundred missed ones are listed, and the floor moves behind all."""
    floor = at("2025-01-01")
    now = at("2026-01-01") + 1.0

    decision = decide(MINUTELY, floor, now, policy, 10 * MINUTE)

    fired = [now - 1.0 - MINUTE * back for back in (range(9, -1, -1) if policy == "all" else range(1))]
    assert fired == [*decision.fire]
    assert MOST_MISSED == len(decision.missed)
    assert [MINUTE] * MOST_MISSED == [later - one for one, later in pairwise((*decision.missed, fired[0]))]
    assert now - 1.0 + MINUTE == decision.next_at


def test_a_moment_comes_once_ever() -> None:
    """After it, whether it fired or was missed, there is nothing to wait for."""
    once = parse_at(START)

    assert Decision((), (), START) == decide(once, START - DAY, START - 1, "once", HOUR)
    assert Decision((START,), (), None) == decide(once, START - DAY, START, "all", HOUR)
    assert Decision((START,), (), None) == decide(once, START - DAY, START + 60, "once", HOUR)
    assert Decision((), (START,), None) == decide(once, START - DAY, START + DAY, "all", HOUR)
    assert Decision((), (), None) == decide(once, START, START + DAY, "once", HOUR)


def test_a_clock_that_goes_back_fires_nothing_again() -> None:
    """The floor may lie ahead of now: the first planned time after the floor is the next."""
    decision = decide(HOURLY, at("2026-01-01 12:00"), at("2026-01-01 09:30"), "all", DAY)

    assert ([], [], "2026-01-01 13:00") == told(decision)


class History(NamedTuple):
    """When somebody looked, in seconds from the start, and under which policy."""

    times: Times
    looks: list[float]
    policy: Missed
    grace: float


PERIODS: Final = st.sampled_from([MINUTE, 97.0, 10 * MINUTE, HOUR, 7_777.5])
ANY_TIMES: Final = st.one_of(
    st.builds(parse_every, PERIODS, st.floats(0.0, 59.0)),
    st.builds(parse_at, st.floats(START, START + DAY)),
    st.builds(
        parse_cron,
        st.sampled_from(["* * * * *", "*/10 * * * * *", "30 2 * * *", "*/30 2 * * *", "5,35 0-4 * * *", "15 3 * * *"]),
        st.sampled_from(["UTC", "Europe/Berlin"]),
    ),
)
LOOKS: Final = st.lists(st.one_of(st.floats(0.0, 150.0), st.floats(0.0, 4 * HOUR)), min_size=1, max_size=8)
"""Ticks and outages, by the seconds from one look to the next."""


@st.composite
def histories(draw: st.DrawFn) -> History:
    """Any of them."""
    looks, moment = [], START
    for wait in draw(LOOKS):
        moment += wait
        looks.append(moment)
    policy: Missed = draw(st.sampled_from(["once", "skip", "all"]))
    return History(draw(ANY_TIMES), looks, policy, draw(st.sampled_from([MINUTE, 10 * MINUTE, HOUR, DAY])))


@settings(deadline=None)
@given(histories())
def test_each_planned_time_is_decided_once(history: History) -> None:
    """X-6: in any history, decisions say of each planned time what a plain reading of the policy says, in order."""
    times, looks, policy, grace = history
    floor = START
    for now in looks:
        due = between(times, floor, now)
        fire, missed, next_at = decide(times, floor, now, policy, grace)

        in_grace = [planned for planned in due if planned >= now - (SKIP_GRACE if policy == "skip" else grace)]
        expected = in_grace[:MOST_FIRED] if policy == "all" else [planned for planned in in_grace if planned == due[-1]]
        undecided = in_grace[MOST_FIRED:] if policy == "all" else []
        others = {*expected, *undecided}
        passed = [planned for planned in due if planned not in others]
        assert expected == [*fire]
        assert passed[-MOST_MISSED:] == [*missed]
        assert next(iter([*undecided, *between(times, now, now + 4 * DAY)[:1]]), None) == next_at

        floor = max([floor, *fire, *missed])
        assert undecided == between(times, floor, now)
