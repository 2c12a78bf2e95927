"""Functions and a queue that is resharded: drains are started where the jobs are, and no schedule fails."""

from typing import Any

import pytest

from lowkiq_lambda.aws.events import BadEvent, selected
from lowkiq_lambda.aws.fan_out import start_drains
from lowkiq_lambda.aws.tick import Tick
from lowkiq_lambda.aws.ticking import tick_alone
from lowkiq_lambda.base.errors import BackendUnavailable
from lowkiq_lambda.settings.aws import Settings
from lowkiq_lambda.store.shard.moving import MovingShards
from lowkiq_lambda.testing import ManualClock
from tests.aws.functions import DrainFunction, FunctionContext
from tests.aws.invocations import Invocations
from tests.aws.minutes import TICK
from tests.kit.apps import MakeApp
from tests.kit.handlers import Notes, failing
from tests.kit.moving import Both
from tests.kit.workers import declare, jobs_of

IDS = [str(number) for number in range(20)]
"""Ids of all shards."""


@pytest.fixture
def both(make_app: MakeApp, queue_name: str) -> Both:
    """Two processes with one queue."""
    return Both(make_app, queue_name)


def test_a_tick_starts_drains_for_shards_that_it_did_not_know(both: Both) -> None:
    """A tick of a process that knows the old shards finds them closed, and starts drains for the new ones."""
    both.worker.push_many(jobs_of(IDS))
    both.there.operate(both.mover).reshard(to=6)
    invocations = Invocations()
    queue = both.here.core.queues.agreed(both.worker)
    tick = Tick(both.here, Settings(idle="start"), invocations, "drain", lambda: 30.0, queues=[queue])

    started: Any = start_drains(tick)

    assert {"due": 6, "started": 6} == started
    assert {"queue": both.name, "shard": 5} in invocations.events
    assert {} == tick.problems


def test_an_event_for_a_shard_that_was_announced_is_no_error(both: Both) -> None:
    """A schedule for a shard that the queue gets or had, and does not have now, drains nothing."""
    both.there.operate(both.mover).reshard(to=6)
    both.there.core.drains.drainer.learn([both.name], 0.0)
    shards = both.there.core.drains.drainer.shards()
    most = {both.name: both.there.core.queues[both.name].shards.layout.most}

    assert [] == selected({"shard": 7}, shards, {both.name: 8})
    assert [5] == [shard.index for shard in selected({"queue": both.name, "shard": 5}, shards, most)]
    with pytest.raises(BadEvent, match="count from 0 to 5"):
        selected({"shard": 6}, shards, most)


def test_a_warm_function_obeys_an_event_for_a_shard_that_the_queue_was_given_since(
    drain: DrainFunction, both: Both, clock: ManualClock
) -> None:
    """A fan-out knows of shards before each environment does: the first event for one is no error."""
    drain.install(both.here)
    drain()
    both.there.operate(both.mover).reshard(to=6)
    both.mover.push_many(jobs_of(IDS))
    clock.advance(60)

    told = [drain({"queue": both.name, "shard": index}) for index in (5, 4, 3, 2, 1, 0)]

    assert len(IDS) == sum(each["counts"]["done"] for each in told)


def test_deaths_are_told_once_though_a_mover_died_between_two_counts(
    drain: DrainFunction, make_app: MakeApp, queue_name: str, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For as long as nobody goes on, what a group has counted stands in its old shards and in its new ones."""
    app, there = make_app(), make_app()
    worker = declare(app, queue_name, failing(*IDS, "1st", "2nd"), shards_count=4, max_retry_count=0)
    mover = declare(there, queue_name, failing(), shards_count=4)
    drain.install(app)
    drain(TICK)
    worker.push_many(jobs_of(IDS))
    drain()
    drain(TICK)

    def die(*_arguments: object) -> None:
        raise BackendUnavailable("the mover is over")

    with monkeypatch.context() as patch:
        patch.setattr(MovingShards, "forget_counters", die)
        with pytest.raises(BackendUnavailable):
            there.operate(mover).reshard(to=6)
    clock.advance(10)
    drain(TICK)
    there.operate(mover).reshard(to=6)
    for job_id in ("1st", "2nd"):
        worker.push_many(jobs_of([job_id]))
        drain()
        clock.advance(60)
        drain(TICK)

    assert [0.0, len(IDS), 0.0, 1.0, 1.0] == drain.values("dead")


@pytest.mark.parametrize("settings", [{}, {"idle": "start"}, {"queues": "-{0}"}], ids=["", "fans out", "others"])
def test_a_tick_names_shards_without_a_schedule(
    make_app: MakeApp, queue_name: str, caplog: pytest.LogCaptureFixture, settings: dict[str, str]
) -> None:
    """Five schedules and eight shards: nothing would drain three of them, but for the tick or another function."""
    app = make_app()
    worker = declare(app, queue_name, Notes(), shards_count=5)
    given: dict[str, Any] = {name: value.format(queue_name) for name, value in settings.items()}
    ticking = Settings(scheduled_shards="0,1,2,3,4", **given)

    tick_alone(app, ticking, FunctionContext(30.0), Invocations())
    before = [message for message in caplog.messages if "no schedule" in message]
    app.operate(worker).reshard(to=8)
    tick_alone(app, ticking, FunctionContext(30.0), Invocations())

    sentence = (
        f"{queue_name}: shards 5, 6, 7 have no schedule, and housekeeping starts no drains. Deploy with the "
        "ShardIndexes that `lowkiq stack schedules indexes` prints, or with Idle=start."
    )
    told = [message for message in caplog.messages if "no schedule" in message]
    assert ([], [] if settings else [sentence]) == (before, told)
