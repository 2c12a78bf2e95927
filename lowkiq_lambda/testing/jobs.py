"""Jobs with a cursor, run without Redis: by the loop that drains them, stopped where a test wants them to be."""

from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Final

from lowkiq_lambda.declare.worker import Worker, is_generator
from lowkiq_lambda.engine.batch import BatchJob
from lowkiq_lambda.engine.iteration import Iteration, dump_cursor, iterate
from lowkiq_lambda.jobs.job import NEVER_FAILED
from lowkiq_lambda.jobs.progress import JobProgress
from lowkiq_lambda.jobs.retry import Later
from lowkiq_lambda.store.shard.lease_replies import NO_REQUESTS, Requests

_MOST_IN_VAIN: Final = 1_000
"""Runs to the same cursor, one after the other, until a job counts as one that never ends."""
_MOST_WITHOUT_A_CURSOR: Final = 10_000
"""Runs to no new cursor, one after the other: more, as a job may find in its database what is left to do."""


@dataclass(frozen=True, slots=True)
class Ran:
    """One run of a job.

    `cursor`: what it yielded last, as the next run gets it. `items`: how often its cursor changed. `ended`: whether it
    came to its end. `later`: the `Later` that it raised.
    """

    cursor: Any
    items: int
    ended: bool
    later: Later | None = None


def run_job(
    worker: type[Worker[Any]],
    payloads: Sequence[Any],
    cursor: Any = None,  # noqa: ANN401 - any JSON
    *,
    stop_after: int | None = None,
    job_id: str = "job",
) -> Ran:
    """Run a job from its cursor to its end, or until it has yielded `stop_after` times.

    The payloads are copied, and the cursor goes through JSON, as in a drain. A job that is stopped is closed, so its
    `finally` runs. Raises TypeError for a worker whose `perform_job` is not a generator, CursorError for a cursor
    that cannot be kept, and what the job raises.
    """
    return _run(worker, payloads, cursor, stop_after, job_id, is_first=cursor is None)


def _run(  # noqa: PLR0913 - as run_job
    worker: type[Worker[Any]],
    payloads: Sequence[Any],
    cursor: Any,  # noqa: ANN401 - any JSON
    stop_after: int | None,
    job_id: str,
    *,
    is_first: bool,
) -> Ran:
    if not is_generator(worker):
        raise TypeError(f"run_job takes a worker whose perform_job is a generator, not {worker.__name__}")
    iteration = Iteration(JobProgress(None if cursor is None else dump_cursor(cursor), worker.cursor_version))
    iteration.is_first = is_first
    scores = [float(position) for position in range(len(payloads))]
    job = BatchJob(
        job_id,
        deepcopy(list(payloads)),
        scores,
        due_at=0.0,
        retry_count=NEVER_FAILED,
        error=None,
        repeated=False,
        context=_Context(),
        cursor=iteration.cursor,
        iteration=iteration,
    )
    later, reason = None, None
    try:
        reason = iterate(worker(), job, iteration, _stop_after(stop_after))
    except Later as raised:
        later = raised
    return Ran(iteration.cursor, iteration.progress.items, ended=reason is None and later is None, later=later)


def run_through(
    worker: type[Worker[Any]], payloads: Sequence[Any], *, every: int = 1, job_id: str = "job"
) -> list[Ran]:
    """Run a job to its end, stopped at each `every`-th item and gone on with; all its runs, in order.

    A test compares what the job has done with what it does in one go: `run_job(worker, payloads)`. A job that raises
    `Later` goes on at once. Raises AssertionError for a job that ends a thousand runs in a row at the same cursor, as
    one does that begins anew each time, or ten thousand at no new cursor, and what `run_job` raises.
    """
    runs: list[Ran] = []
    in_vain, without, seen_ids = 0, 0, set[bytes]()
    while not runs or not runs[-1].ended:
        cursor = runs[-1].cursor if runs else None
        ran = _run(worker, payloads, cursor, every, job_id, is_first=not runs)
        runs.append(ran)
        # A job that yields no cursor may keep its place somewhere else.
        stays = ran.cursor == cursor and (ran.later or cursor is not None)
        in_vain = in_vain + 1 if stays and not ran.ended else 0
        without = without + 1 if (end := dump_cursor(ran.cursor)) in seen_ids else 0
        seen_ids.add(end)
        if without == _MOST_WITHOUT_A_CURSOR and not ran.ended:
            raise AssertionError(
                f"{worker.__name__} ended {without:,} runs in a row at no new cursor: does it yield any?"
            )
        if in_vain == _MOST_IN_VAIN:
            why = f"raised Later: {ran.later}" if ran.later else "does it go on from job.cursor?"
            raise AssertionError(f"{worker.__name__} ended {in_vain:,} runs in a row at the cursor {cursor!r}: {why}")
    return runs


def _stop_after(count: int | None) -> Callable[[Iteration], str | None]:
    if count is not None and count < 1:
        raise ValueError(f"a job is stopped after one item or more, not {count}")
    yields = 0

    def after_item(_iteration: Iteration) -> str | None:
        nonlocal yields
        yields += 1
        return "stopped by the test" if yields == count else None

    return after_item


class _Context:
    """There is time, and a lease."""

    token: int = 1
    requests: Requests = NO_REQUESTS

    def remaining(self) -> float:
        """Seconds that are left."""
        return 60.0

    def stopping(self) -> bool:
        """Never: a test stops a job where it yields."""
        return False
