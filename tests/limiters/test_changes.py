"""A limit that is changed while it is in use, a clock that is set back, and points that come back."""

from lowkiq_lambda import Concurrent, Rate
from tests.kit.apps import MakeApp
from tests.kit.servers import Server
from tests.limiters.asking import Limit, LimiterScript

_HOUR = 3600.0
_BEGINNING = _HOUR * 400_000
"""Of an hour."""


def test_a_longer_period_of_a_bucket_counts_from_the_next_one_on_anew(server: Server, queue_name: str) -> None:
    """Numbers of minutes are larger than those of hours: what a minute has spent is over with its hour."""
    by_minute = LimiterScript(server, queue_name, Limit("bucket", 2, 60.0))
    by_hour = LimiterScript(server, queue_name, Limit("bucket", 2, _HOUR))
    by_minute(_BEGINNING + 5)

    assert ["OK", _BEGINNING + 6, 0.0, 0.0] == by_hour(_BEGINNING + 6)
    status, seconds, *_ = by_hour(_BEGINNING + 7)
    assert ("FULL", _HOUR - 7) == (status, round(seconds))
    assert ["OK", _BEGINNING + _HOUR, 1.0, 0.0] == by_hour(_BEGINNING + _HOUR)


def test_a_shorter_period_of_a_bucket_counts_from_the_next_one_on_anew(server: Server, queue_name: str) -> None:
    """What the hour has spent is over with its minute."""
    by_hour = LimiterScript(server, queue_name, Limit("bucket", 2, _HOUR))
    by_minute = LimiterScript(server, queue_name, Limit("bucket", 2, 60.0))
    by_hour(_BEGINNING + 5, 2)

    assert ["OK", _BEGINNING + 60, 1.0, 0.0] == by_minute(_BEGINNING + 60)


def test_a_bucket_counts_on_after_the_clock_of_its_server_was_set_back(server: Server, queue_name: str) -> None:
    """The period in which that is seen keeps its count, and the next one begins with none."""
    asking = LimiterScript(server, queue_name, Limit("bucket", 2, 60.0), measured=True)
    asking(_BEGINNING + 365 * 24 * _HOUR, 2)

    status, seconds, *_ = asking(_BEGINNING + 5)

    assert ("FULL", 55) == (status, round(seconds))
    assert ["OK", _BEGINNING + 60, 1.0, 0.0] == asking(_BEGINNING + 60)


def test_points_come_back_to_a_leaky_limiter_whatever_the_fraction_of_their_date_is(
    server: Server, queue_name: str
) -> None:
    """The date of a grant is a rounded text."""
    free = set()
    for step in range(20):
        asking = LimiterScript(server, f"{queue_name}-{step}", Limit("leaky", 10, 10.0))
        now, doubt = _BEGINNING + step / 7, 0.001 + step / 7e5
        _, date, *_ = asking(now, 10, doubt=doubt)

        asking(now, 10, op="give", date=date, doubt=doubt)
        free.add(asking(now + 1, op="look")[2])

    assert {10.0} == free


def test_a_process_that_knows_the_time_badly_makes_no_clock_go_back(server: Server, queue_name: str) -> None:
    """A slow answer leaves seconds of doubt, also in a time that was measured for the call; the window stays full."""
    asking = LimiterScript(server, queue_name, Limit("rate", 10, 10.0), measured=True)
    asking(_BEGINNING, 10)
    asking(_BEGINNING, who="queue/1")

    asking(_BEGINNING + 0.1, doubt=1.5)

    status, *_, waiting = asking(_BEGINNING + 9.9)
    assert ("FULL", 1.0) == (status, waiting)


def test_what_was_set_for_a_limit_of_one_kind_is_not_for_one_of_another(make_app: MakeApp, queue_name: str) -> None:
    """Before a deploy and after it, or side by side: a rate of half a second is no time for a place to be held."""
    before = make_app().limiter(queue_name, Rate(100, per=1))
    before.set(Rate(100_001, per=0.5))
    after = make_app().limiter(queue_name, Concurrent(2, hold=30))

    assert [(False, Concurrent(2, hold=30)), (True, Rate(100_001, per=0.5))] == [
        (view.is_set, view.limit) for view in (after.explain(), before.explain())
    ]
    after.set(Concurrent(1, hold=9))
    before.reset()
    assert [(True, Concurrent(1, hold=9)), (False, Rate(100, per=1))] == [
        (view.is_set, view.limit) for view in (after.explain(), before.explain())
    ]
