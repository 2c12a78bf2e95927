"""Functions and a queue that is resharded: drains are started where the jobs are, and no schedule fails."""

from typing import Any

import pytest

from lowkiq_lambda.aws.events import BadEvent, selected
from lowkiq_lambda.aws.fan_out import start_drains
from lowkiq_lambda.aws.settings import Settings
from lowkiq_lambda.aws.tick import Tick
from tests.aws.invocations import Invocations
from tests.kit.apps import MakeApp
from tests.kit.moving import Both
from tests.kit.workers import jobs_of

IDS = [str(number) for number in range(20)]
"""Ids of all shards."""


@pytest.fixture
def both(make_app: MakeApp, queue_name: str) -> Both:
    """Two processes with one queue."""
    return Both(make_app, queue_name)


def test_a_dispatcher_starts_drains_for_shards_that_it_did_not_know(both: Both) -> None:
    """A tick of a process that knows the old shards finds them closed, and starts drains for the new ones."""
    both.worker.perform_async(jobs_of(IDS))
    both.there.reshard(both.mover, to=6)
    invocations = Invocations()
    queue = both.here.queue_of(both.worker)
    tick = Tick(both.here, Settings(fan_out=True, drain_function="drain"), invocations, "tick", lambda: 30.0, [queue])

    started: Any = start_drains(tick)

    assert {"due": 6, "started": 6} == started
    assert {"queue": both.name, "shard": 5} in invocations.events
    assert {} == tick.problems


def test_an_event_for_a_shard_that_was_announced_is_no_error(both: Both) -> None:
    """A schedule for a shard that the queue gets or had, and does not have now, drains nothing."""
    both.there.reshard(both.mover, to=6)
    both.there.drainer.learn([both.name], 0.0)
    shards = both.there.drainer.shards()
    most = {both.name: both.there.queues[both.name].shards.layout.most}

    assert [] == selected({"shard": 7}, shards, {both.name: 8})
    assert [5] == [shard.index for shard in selected({"queue": both.name, "shard": 5}, shards, most)]
    with pytest.raises(BadEvent, match="count from 0 to 5"):
        selected({"shard": 6}, shards, most)
