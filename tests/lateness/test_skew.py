"""Which ids are frequent, as drains count it: how right, who pays, what is kept, and what follows from it."""

from random import Random
from typing import Any, Final

import pytest

from lowkiq_lambda.engine.skew import FREQUENT, SkewCounter, read_shares
from lowkiq_lambda.jobs.job import digest
from lowkiq_lambda.operate.lateness.hot_ids import hot_of, read_hot, weigh
from lowkiq_lambda.simulate import Trace
from lowkiq_lambda.store.server.pipelines import send_each
from lowkiq_lambda.store.shard.keys import ShardRef, queue_key
from lowkiq_lambda.testing import ManualClock
from lowkiq_lambda.views.lateness import HourDigest, mean_skew
from tests.kit.apps import MakeApp
from tests.kit.playing import Played

BEGIN: Final = 1_800_000_000.0 // 3_600 * 3_600


@pytest.fixture
def play(make_app: MakeApp, clock: ManualClock, queue_name: str) -> Any:
    """A queue at the begin of an hour, with these settings of the app and of the worker."""
    clock.set_wall(BEGIN)

    def played(*, skew: bool = True, **fields: Any) -> Played:
        return Played(make_app(namespace=queue_name, skew=skew), clock, queue_name, **fields)

    return played


def shares_of(played: Played, *hours: float) -> dict[str, float] | None:
    """What is kept of these hours."""
    return read_shares(played.app.core.backend, played.worker.queue_name, hours, 1.0)


def push_some(played: Played) -> None:
    """Ten payloads, of which six are under one id."""
    played.push([7], payloads=6)
    played.push(range(4))


def test_the_digest_of_an_hour_has_the_shares_of_frequent_ids_and_no_name(play: Any) -> None:
    """They are counted in memory, and kept by name for two hours."""
    played = play()
    played.minute()
    push_some(played)
    played.minute()
    played.minute()
    assert {"7": 0.6, "0": 0.1, "1": 0.1, "2": 0.1, "3": 0.1} == shares_of(played, BEGIN)
    played.clock.advance(3_600)
    played.minute()

    (hour,) = played.app.operate(played.worker).hours()

    assert (6_000, *[1_000] * 4) == hour.skew
    assert (0.6, 0.1, 0.1, 0.1, 0.1) == mean_skew([hour])
    backend = played.app.core.backend
    key = queue_key(played.worker.queue_name, f"skew:{BEGIN // 3_600:.0f}", backend.prefix)
    assert 0 < backend.client.ttl(key) <= 7_200


@pytest.mark.parametrize(("skew", "shards", "is_counted"), [(False, 5, False), (True, 5, True), (False, "auto", True)])
def test_only_those_count_that_are_asked_to(play: Any, skew: bool, shards: Any, is_counted: bool) -> None:  # noqa: FBT001 - of the test
    """By the setting, or for a queue with a count of its own; for others no key is written."""
    played = play(skew=skew, shards_count=shards)
    push_some(played)
    played.minute()
    push_some(played)
    played.minute()
    played.minute()
    keys = played.app.core.backend.client.keys(f"*{{{played.worker.queue_name}}}:skew:*")

    assert int(is_counted) == len(keys)
    assert is_counted == (shares_of(played, BEGIN) is not None)


def test_the_hour_that_is_over_is_written_with_the_next(play: Any) -> None:
    """What was counted at its end, and not yet written, is not counted for the next one."""
    played = play()
    counter = SkewCounter(played.worker.queue_name, played.clock)
    counter.note({"early": 3})
    played.clock.advance(3_600)
    counter.note({"late": 1})
    backend = played.app.core.backend
    send_each(backend.client, [*counter.commands(backend.prefix)])

    assert [{"early": 1.0}, {"late": 1.0}] == [shares_of(played, BEGIN), shares_of(played, BEGIN + 3_600)]
    assert [] == [*counter.commands(backend.prefix)]


def test_processes_that_drain_one_queue_add_up(play: Any) -> None:
    """Each has a field of its own, which it writes over."""
    played = play()
    backend, name = played.app.core.backend, played.worker.queue_name
    counters = [SkewCounter(name, played.clock) for _ in range(2)]
    for counter, sizes in zip(counters, ({"a": 3, "b": 1}, {"a": 2, "c": 2}), strict=True):
        for _ in range(2):
            counter.note(sizes)
            send_each(backend.client, [*counter.commands(backend.prefix)])

    assert {"a": 10 / 16, "c": 4 / 16, "b": 2 / 16} == shares_of(played, BEGIN)


def test_a_count_is_never_too_high_and_little_too_low(play: Any) -> None:
    """With far more ids than counters the frequent ones are known to a thousandth of all payloads."""
    played = play()
    counter, numbers = SkewCounter(played.worker.queue_name, played.clock), Random(1)
    trace = Trace.of_rates([1_000.0] * 2, ids=30_000, skew=1.1, seed=numbers.randrange(99))
    for number in trace.ids:
        counter.note({str(number): 1})
    backend = played.app.core.backend
    send_each(backend.client, [*counter.commands(backend.prefix)])
    shares = shares_of(played, BEGIN)

    assert shares is not None
    assert FREQUENT == len(shares)
    errors = [trace.ids.count(int(name)) / trace.jobs - share for name, share in shares.items()]
    assert 0 <= min(errors) <= max(errors) < 0.001


def test_a_trace_of_measured_shares_has_them() -> None:
    """The other ids share the rest alike."""
    trace = Trace.of_rates([100.0] * 10, ids=100, shares=(0.4, 0.2))
    first, second, third = (trace.ids.count(number) / trace.jobs for number in range(3))

    assert (first, second) == pytest.approx((0.4, 0.2), abs=0.01)
    assert third == pytest.approx(0.4 / 98, abs=0.002)
    assert {0, 1} == {*Trace.of_rates([10.0], ids=2, shares=(0.5, 0.3, 0.2)).ids}


def test_hours_in_which_nobody_counted_do_not_make_the_others_even() -> None:
    """The mean is of the payloads of those that were counted."""
    hours = [
        HourDigest(0.0, 3_600.0, n, n, n, 1.0, 1.0, 1.0, 0, 0, 5, None, None, None, skew)
        for n, skew in ((100, (6_000, 1_000)), (300, (2_000,)), (500, None))
    ]

    assert (0.3, 0.025) == mean_skew(hours)
    assert None is mean_skew(hours[2:])
    assert () == mean_skew([HourDigest(0.0, 60.0, 9, 9, 9, 1.0, 1.0, 1.0, 0, 0, 5, None, None, None, ())])


def shard_for(job_id: str) -> int:
    """The shard of the id, of two."""
    return digest(job_id) % 2


def test_an_id_that_is_not_due_now_weighs_by_its_share() -> None:
    """It is in flight, as always; by what is due alone more shards would seem to help."""
    shard = ShardRef("queue", 2, 0)
    ids = [str(number) for number in range(60)]
    due: list[dict[str, float]] = [{i: 1.0 for i in ids if shard_for(i) == number} for number in range(2)]
    before = hot_of(due, 4)
    weigh(due, [0, 1], shard, {"hot": 0.6})
    after = hot_of(due, 4)

    assert before is not None
    assert after is not None
    assert before.share < 0.7 < after.share
    assert "hot" == after.hottest
    assert 90.0 == pytest.approx(due[shard_for("hot")]["hot"])


def test_the_share_of_the_hottest_id_is_that_of_its_shard() -> None:
    """A twenty-fifth of all jobs is most of one of 80 shards."""
    due: list[dict[str, float]] = [{} for _ in range(80)]
    for number in range(8_000):
        due[digest(str(number)) % 80][str(number)] = 1.0
    others = len(due[digest("hot") % 80])
    due[digest("hot") % 80]["hot"] = 320.0

    hot = hot_of(due, 160)

    assert hot is not None
    assert ("hot", 320 / (320 + others)) == (hot.hottest, hot.part)
    assert hot.part > 0.7


def test_a_late_queue_keeps_the_load_of_an_id_that_is_seldom_due(play: Any) -> None:
    """Its shard stays as full with twice as many, and by the ids that are due alone it would not."""
    played = play(shards_count=2, concurrency=1)
    for _ in range(9):
        played.push(["hot"], payloads=50, waited=200.0)
        played.push((number for number in range(8) if shard_for(str(number)) == shard_for("hot")), waited=300.0)
        played.minute()
    played.push((number for number in range(100, 140)), waited=300.0)
    late = played.late()
    due = dict.fromkeys(map(str, range(100, 140)), 1.0)
    by_due = hot_of([{i: n for i, n in due.items() if shard_for(i) == number} for number in range(2)], 4)

    assert late.is_late
    assert by_due is not None
    assert by_due.share < 0.7
    look = read_hot(
        played.app.operate(played.worker).reader,
        [*played.app.core.queues[played.worker.queue_name].shards],
        played.clock.time(),
        counts=True,
    )
    assert look is not None
    assert look.share > 0.9
    assert "hot" == look.hottest
