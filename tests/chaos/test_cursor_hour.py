"""One hour of items through invocations of a minute, of which every third is killed."""

from random import Random

from lowkiq_lambda import BatchJob, Lowkiq
from lowkiq_lambda.testing import ManualClock
from tests.kit.deaths import Mortal, outlive
from tests.kit.iterating import Items, declare_items
from tests.kit.looks import counters, left_behind
from tests.kit.workers import jobs_of

HOUR = 3_600
MINUTE = 60.0


def test_an_hour_of_items_in_invocations_of_a_minute(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """P2, P5, J-13, J-44: all are done, a kill repeats the last one at most, and none of that is a retry."""
    rng, mortal = Random(5), Mortal(app)
    retry_counts, deaths = set[float](), list[int]()
    dies_at = -1

    def before(job: BatchJob, item: int) -> None:
        clock.advance(1.0)
        retry_counts.add(job.retry_count)
        if item == dies_at:
            mortal.die()

    items = Items(HOUR, before)
    worker = declare_items(app, queue_name, items)
    worker.push_many(jobs_of("a", payload="v"))
    orderly, ended_at = 0, list[float]()
    for invocation in range(200):
        began, following = clock.monotonic(), items.done[-1][1] + 1 if items.done else 0
        dies_at = following + rng.randrange(50) if invocation % 3 == 2 else -1
        counts = mortal.drain(MINUTE)
        if counts is None:
            deaths.append(dies_at)
            outlive(app, clock, worker)
        else:
            orderly += counts.get("checkpointed", 0)
            ended_at.append(clock.monotonic() - began)
        if items.ended:
            break

    done = [item for _, item in items.done]
    assert (list(range(HOUR)), ["a"]) == (sorted(set(done)), items.ended)
    assert sorted(deaths) == sorted(item for item in set(done) if done.count(item) > 1)
    assert len(done) == HOUR + len(deaths)
    assert ({-1.0}, orderly, len(deaths)) == (retry_counts, counters(app, worker)["checkpointed"], len(deaths))
    assert max(ended_at) <= MINUTE
    assert len(deaths) > 15
    assert {} == left_behind(app, worker)
