"""The advice as values: the pace of a month, the ways and their lag, the changes worth most, and break-even."""

import msgspec
import pytest

from lowkiq_lambda.stack.advice.advising import Advice, advise
from lowkiq_lambda.stack.advice.loads import ENOUGH, HOUR, MonthLoad, load_of
from lowkiq_lambda.stack.advice.ways import Options, WayName, ways_of
from lowkiq_lambda.stack.costs.prices import load as load_prices
from tests.kit.months import NOON, hour, hours_before, queue_of

OPTIONS = Options(256, 5, load_prices())


def advice(load: MonthLoad, now: WayName = "minute", target: float | None = None) -> Advice:
    """For a function of 256 MB."""
    return advise(load, OPTIONS, now, (), target)


def test_the_pace_is_that_of_this_month() -> None:
    """720 ids an hour are 525,600 in 730 hours, whatever was before; so far are the 48 hours that are known."""
    before = tuple(msgspec.structs.replace(one, ids=9_999) for one in hours_before(NOON - 20 * 24 * HOUR, 30, 720))
    load = load_of([queue_of((*before, *hours_before(NOON, 48, 720)))], NOON)

    assert (525_600, 48, 48) == (load.jobs, load.hours, load.of_month)
    assert load.job_seconds == pytest.approx(0.05)
    assert load.job_cpu == pytest.approx(0.0005)
    assert load.so_far == pytest.approx(48 / 730)


def test_a_young_app_has_cost_nothing_yet() -> None:
    """Ten minutes of it are known, on the 17th of the month; hours of the month before are none of this one."""
    ten_minutes = msgspec.structs.replace(hour(NOON - HOUR, 120), seconds=600.0)
    before = hours_before(NOON - 20 * 24 * HOUR, 30, 720)

    for hours in ((ten_minutes,), (*before, ten_minutes)):
        advised = advice(load_of([queue_of(hours)], NOON))
        assert advised.month > 1.0
        assert advised.so_far == pytest.approx(advised.month / 730 / 6)


def test_at_the_begin_of_a_month_the_weeks_before_count() -> None:
    """Until a day of it is known."""
    began = NOON - 396 * HOUR
    hours = (*hours_before(began, 100, 720), *hours_before(began + HOUR * (ENOUGH - 1), ENOUGH - 1, 7_200))
    load = load_of([queue_of(hours)], began + HOUR * (ENOUGH - 1))

    assert 100 + ENOUGH - 1 == load.hours


def test_an_hour_is_played_with_its_busiest_minute() -> None:
    """And no job is lost."""
    queue = queue_of((hour(NOON, 3_600, busiest=600),))

    rates = queue.rates()
    assert 10.0 == rates[0]
    assert 3_600 == pytest.approx(sum(rates) * 60)
    assert [] == queue_of(()).rates()


def test_the_busiest_hours_of_a_long_load_are_played_first() -> None:
    """Some minutes of each, as millions of jobs would take minutes to play."""
    busy = hour(NOON, 500_000)
    rates = queue_of((*hours_before(NOON, 50, 3_600), busy)).rates()

    assert max(rates) == rates[0] == pytest.approx(500_000 / 3_600, rel=0.01)
    assert sum(rates) * 60 < 60_000


def test_a_schedule_costs_least_and_a_daemon_is_the_soonest() -> None:
    """Half a minute and more in the mean, or nearly nothing."""
    ways = {way.kind: way for way in ways_of(load_of([queue_of(hours_before(NOON, 48, 720))], NOON), OPTIONS)}

    assert ways["minute"].dollars < ways["shards"].dollars < ways["task"].dollars
    assert 10.86 == pytest.approx(ways["task"].dollars, abs=0.01)
    assert 30 < (ways["minute"].p95 or 0.0) < 70
    assert (ways["task"].p95 or 0.0) < 1
    assert "a daemon of 10 threads" == ways["daemon"].name


def test_a_small_app_has_nothing_worth_a_change() -> None:
    """Not even where a part of it is saved."""
    told = advice(load_of([queue_of(hours_before(NOON, 48, 720))], NOON), "shards")

    assert not told.is_due
    assert all(not change.is_worth_it for change in told.changes)
    assert told.changes[0].saves >= told.changes[-1].saves > 0


def test_a_busy_app_of_functions_is_told_what_saves_most() -> None:
    """Ten open invocations in the mean: a task, or calls side by side, as they wait."""
    told = advice(load_of([queue_of(hours_before(NOON, 48, 720_000), shards=20)], NOON))

    assert told.is_due
    assert told.open_invocations == pytest.approx(10, rel=0.02)
    assert told.open_invocations > told.breaks_even
    assert 1.2 == pytest.approx(told.breaks_even, abs=0.05)
    assert "less than functions from 1.2 open ones on" in told.break_even
    assert "Managed Instances" in told.managed
    assert any(change.what.startswith("concurrency = 10") for change in told.changes)
    assert 3 >= len(told.changes)


def test_a_target_of_lag_leaves_out_what_misses_it() -> None:
    """The cheapest way is a schedule, and its p95 is most of a minute."""
    load = load_of([queue_of(hours_before(NOON, 48, 720))], NOON)

    assert any("one schedule" in change.what for change in advice(load, "task").changes)
    assert not any("schedule" in change.what for change in advice(load, "task", 5.0).changes)


def test_managed_instances_need_a_steady_load() -> None:
    """Nine hours of quiet, and one of a burst: they would stand idle."""
    bursts = tuple(hour(NOON - HOUR * place, 7_200_000 if place % 10 == 0 else 720) for place in range(48, 0, -1))

    assert not load_of([queue_of(bursts)], NOON).is_steady
    assert load_of([queue_of(hours_before(NOON, 48, 720))], NOON).is_steady


def test_nothing_is_known_of_an_app_without_hours() -> None:
    """That is said, and no lag is made up."""
    told = advice(load_of([queue_of((), rough=True)], NOON))

    assert "no hour is known" in told.unknown[0]
    assert {None} == {way.p95 for way in told.ways}
    assert not told.is_due


def test_rough_numbers_are_marked() -> None:
    """Those of history, and those of less than a week."""
    told = advice(load_of([queue_of(hours_before(NOON, 48, 720), rough=True)], NOON))

    assert "~ times of handlers" in told.unknown[0]
    assert "~ 48 hours are known" in told.unknown[1]


def test_an_hour_counts_as_far_as_it_was_watched() -> None:
    """Six minutes of 72 ids are the pace of 720 in an hour."""
    six_minutes = tuple(msgspec.structs.replace(one, seconds=360.0) for one in hours_before(NOON, 48, 72))
    whole = load_of([queue_of(hours_before(NOON, 48, 720))], NOON)

    part = load_of([queue_of(six_minutes)], NOON)

    assert 4.8 == pytest.approx(part.hours)
    assert whole.jobs == part.jobs
    assert whole.is_steady == part.is_steady


def test_the_same_load_has_the_same_advice() -> None:
    """Whatever is drawn is drawn by a seed."""
    load = load_of([queue_of(hours_before(NOON, 48, 720))], NOON)

    assert advice(load) == advice(load)
