"""One call that hangs costs itself: what its queue gets done later is as if it had never been."""

import asyncio
from collections import Counter
from itertools import count, islice

from lowkiq_lambda import Batch, Lowkiq, Rate
from lowkiq_lambda.aws.telemetry import summary
from lowkiq_lambda.engine.budget import Budget
from lowkiq_lambda.engine.loop import Loop
from lowkiq_lambda.jobs.job import shard_for
from lowkiq_lambda.testing import ManualClock
from tests.kit.apps import MakeApp
from tests.kit.beside import TIMEOUT, declare_threads
from tests.kit.coroutines import declare_async
from tests.kit.handlers import Notes
from tests.kit.waiting import eventually
from tests.kit.workers import declare, jobs_of

SECONDS = 20.0


def test_a_call_that_hung_slows_down_no_later_drain(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """P5: 50 at once, twenty a second, one hangs until the deadline: later invocations go on for all of their time."""

    async def handle(batch: Batch) -> None:
        done.update(batch.keys())
        if "hung" in batch:
            # So that others have ended before.
            await asyncio.sleep(0)
            clock.advance(SECONDS)
            await asyncio.sleep(TIMEOUT)
        clock.advance(0.05)

    done = Counter[str]()
    worker = declare_async(app, queue_name, handle, concurrency=50, rate=Rate(20, per=1))
    worker.push_many([{"id": "first"}])
    app.drain()
    worker.push_many([{"id": f"{number}"} for number in range(10)])
    worker.push_many([{"id": "hung"}])
    found = []
    for _ in range(7):
        done.clear()
        budget = Budget(clock, SECONDS)
        budget.is_hard = True
        drain = Loop(app.core.drains.drainer, lambda: app.core.queues.agreed(worker).shards).run(budget)
        found.append((drain.reason, sum(done.values())))
        app.operate(worker).waiting.delete(["hung"])
        worker.push_many([{"id": f"{number}"} for number in range(300)])
        clock.advance(40)

    assert ("out of time", True) == (found[0][0], found[0][1] <= 11)
    # Some 200, as each moves the clock and none knows when the visit looks at it; a prediction of 20 s would leave 20.
    assert all(performed >= 100 for _, performed in found[1:]), found


def test_a_call_that_hangs_keeps_no_ids_of_its_rate(make_app: MakeApp, clock: ManualClock, queue_name: str) -> None:
    """While it runs on in a shard where nothing else waits, all the others that may begin do so in another shard."""
    app, other, notes = make_app(), make_app(), Notes()
    hung, *more = ["hung", *islice((f"{n}" for n in count() if shard_for(f"{n}", 2) != shard_for("hung", 2)), 9)]
    fields = {"shards_count": 2, "batch_size": 1, "rate": Rate(10, per=36_000)}

    def hang(_batch: Batch) -> None:
        # It has looked for more, and found nothing.
        eventually(lambda: app.operate(worker).limits.explain().ids_left == len(more), TIMEOUT)
        worker.push_many([{"id": id} for id in more])
        other.core.drains.drainer.visit(other.core.queues.agreed(worker).shards[shard_for(more[0], 2)], Budget(clock))

    worker = declare_threads(app, queue_name, hang, **fields)
    declare(other, queue_name, notes, **fields)
    worker.push_many([{"id": hung}])
    app.core.drains.drainer.visit(app.core.queues.agreed(worker).shards[shard_for(hung, 2)], Budget(clock))

    assert sorted(more) == sorted(id for batch in notes.ids for id in batch)


def test_the_end_of_a_drain_names_its_prediction(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """Where no further batch is predicted to fit the answer and the line of the log tell for how long one would run."""
    notes = Notes(lambda _batch: clock.advance(8))
    worker = declare(app, queue_name, notes)
    worker.push_many(jobs_of("abc"))
    drain = Loop(app.core.drains.drainer, lambda: app.core.queues.agreed(worker).shards).run(Budget(clock, 10.0))

    assert ("out of time", {queue_name: 8.0}) == (drain.reason, drain.predictions)
    assert 8.0 == summary(drain)["queues"][queue_name]["predicted"]


def test_a_drain_that_ends_otherwise_names_none(app: Lowkiq, queue_name: str) -> None:
    """What is predicted is told where it decided."""
    worker = declare(app, queue_name, Notes())
    worker.push_many(jobs_of("abc"))
    drain = Loop(app.core.drains.drainer, lambda: app.core.queues.agreed(worker).shards).run(
        Budget(app.core.drains.drainer.clock, 10.0)
    )

    assert {} == drain.predictions
    assert "predicted" not in summary(drain)["queues"][queue_name]
