"""Calls that fail as a whole, in the model and in the engine: who is tried alone, and who is charged without a run."""

from typing import Final

import msgspec
import pytest

from lowkiq_lambda import Batch, Lowkiq
from lowkiq_lambda.simulate import Choice, Compute, Outcome, Times, Trace, simulate
from lowkiq_lambda.testing import ManualClock
from tests.kit.apps import MakeApp
from tests.kit.workers import declare

BROKEN: Final = 40.0
"""Seconds of a breakdown, in which the first schedule comes, and not yet a retry."""
TIMES: Final = Times(fixed=0.001)


def sizes_of_engine(app: Lowkiq, name: str, clock: ManualClock, ids: int, batch: int) -> list[int]:
    """How many ids each call has: the first drain meets a breakdown, the others do not."""
    sizes: list[int] = []
    is_broken = [True]

    def handle(batch: Batch) -> None:
        sizes.append(len(batch))
        if is_broken[0]:
            raise ConnectionError("the shop is down")

    worker = declare(app, name, handle, shards_count=1, batch_size=batch)
    worker.push_many([{"id": number} for number in range(ids)])
    app.drain()
    is_broken[0] = False
    clock.advance(60.0)
    app.drain()
    return sizes


def simulated(ids: int, choice: Choice, until: float = BROKEN) -> Outcome:
    """All of them are pushed at once, and the breakdown begins."""
    trace = Trace.of_rows((0.0, number, 1) for number in range(ids))
    return simulate(trace, TIMES, msgspec.structs.replace(choice, breakdowns=((0.0, until),)))


@pytest.mark.parametrize(("ids", "batch"), [(5, 1), (2, 2), (3, 3), (20, 20), (40, 10), (120, 10)])
def test_as_many_calls_as_the_engine_makes(
    make_app: MakeApp, queue_name: str, clock: ManualClock, ids: int, batch: int
) -> None:
    """Three ids of a batch are tried alone, in a long row one, and the retries share batches again."""
    sizes = sizes_of_engine(make_app(), queue_name, clock, ids, batch)
    outcome = simulated(ids, Choice(shards=1, threads=1, batch=batch, compute="minute"))

    assert (len(sizes), sum(sizes)) == (outcome.calls, outcome.runs)


@pytest.mark.parametrize("concurrency", [1, 3])
def test_an_id_whose_failure_was_its_own_is_retried_alone(
    make_app: MakeApp, queue_name: str, clock: ManualClock, concurrency: int
) -> None:
    """As many calls as the engine makes, where each id fails once by itself."""
    app, sizes, done = make_app(), list[int](), set[str]()

    def handle(batch: Batch) -> None:
        sizes.append(len(batch))
        for job_id in batch:
            if job_id not in done:
                done.add(job_id)
                batch.fail(job_id, "broken")

    worker = declare(app, queue_name, handle, shards_count=1, batch_size=10)
    worker.push_many([{"id": number} for number in range(20)])
    app.drain()
    clock.advance(60.0)
    app.drain()
    trace = Trace.of_rows((0.0, number, 1) for number in range(20))
    choice = Choice(shards=1, threads=1, batch=10, concurrency=concurrency, compute="minute", failures=0.5)
    outcome = simulate(trace, TIMES, choice)

    assert [10] * 2 + [1] * 20 == sizes
    # By chance some of them fail more often, or never.
    assert 1 + (outcome.runs - 20) + 1 == outcome.calls


def test_the_delay_of_retries_grows() -> None:
    """After 15 seconds, 16 more and 31 more: the fifth call comes behind a breakdown of a minute and a half."""
    outcome = simulated(1, Choice(shards=1), until=90.0)

    assert 5 == outcome.calls
    assert 15 + 16 + 31 + 96 == pytest.approx(outcome.end, abs=0.1)


def test_a_breakdown_that_ends_meanwhile_leaves_the_others_to_run_alone() -> None:
    """The first that is done clears the group."""
    trace = Trace.of_rows((0.0, number, 1) for number in range(6))
    choice = Choice(shards=1, threads=1, batch=6, compute="minute", breakdowns=((0.0, 33.5),))
    outcome = simulate(trace, Times(fixed=1.0), choice)

    # All six, two alone that fail, four alone; and the two again, each alone.
    assert (1 + 6 + 2, 6 + 6 + 2) == (outcome.calls, outcome.runs)


@pytest.mark.parametrize("compute", ["daemon", "minute"])
@pytest.mark.parametrize("concurrency", [1, 4])
def test_each_job_of_a_breakdown_is_done_in_the_end(compute: Compute, concurrency: int) -> None:
    """Side by side too, and with pushes to ids that wait for their retry."""
    trace = Trace.of_rates([20.0] * 3, ids=300)
    choice = Choice(shards=3, batch=5, concurrency=concurrency, compute=compute, breakdowns=((30.0, 90.0),))
    outcome = simulate(trace, Times(fixed=0.02), choice)

    assert trace.jobs == outcome.jobs
    assert outcome.p95 > 10.0


@pytest.mark.parametrize("field", ["outages", "breakdowns"])
def test_spans_are_on_the_clock_of_the_trace(field: str) -> None:
    """So that they are where they belong in a part of it, and on a day."""
    begins = 0.0, 1_800_000_000.0
    traces = [Trace.of_rows((begin + 2.0 * n, n, 1) for n in range(60)) for begin in begins]
    choices = [msgspec.structs.replace(Choice(), **{field: ((begin + 40.0, begin + 60.0),)}) for begin in begins]
    part = traces[0].between(40.0, 120.0)

    early, late = map(simulate, traces, [TIMES] * 2, choices)
    of_part, plain = (simulate(part, TIMES, choice) for choice in (choices[0], Choice()))

    assert (early.calls, round(early.p95, 4)) == (late.calls, round(late.p95, 4))
    assert (of_part.calls, of_part.p95) > (plain.calls, plain.p95)
