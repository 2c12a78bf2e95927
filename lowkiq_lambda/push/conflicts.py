"""Jobs that were dropped, as their id had work: calls the functions and observers of the app, or raises."""

import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lowkiq_lambda.base.errors import Conflict, JobError
from lowkiq_lambda.declare.worker import Worker
from lowkiq_lambda.jobs.job import Pushed
from lowkiq_lambda.jobs.unique import Unique, terms_of

logger = logging.getLogger(__name__)


def _dropped(
    worker: type[Worker[Any]], jobs: Sequence[Mapping[str, Any]], results: Sequence[Pushed | None]
) -> Iterator[tuple[int, Mapping[str, Any], Pushed, Unique]]:
    for position, (job, pushed) in enumerate(zip(jobs, results, strict=True)):
        if pushed and pushed.dropped:
            yield position, job, pushed, terms_of(job, worker.unique)


def call_on_conflict(
    worker: type[Worker[Any]],
    jobs: Sequence[Mapping[str, Any]],
    results: Sequence[Pushed | None],
    observers: Sequence[Any],
) -> None:
    """Call the functions and the observers of dropped jobs. Their exceptions are logged, as others are written."""
    hooks = [hook for observer in observers if (hook := getattr(observer, "conflict", None))]
    for _, job, pushed, unique in _dropped(worker, jobs, results):
        for hook in hooks:
            _call(hook, worker, job, pushed)
        if callable(unique.on_conflict):
            _call(unique.on_conflict, job, pushed)


def _call(hook: Any, *arguments: object) -> None:  # noqa: ANN401 - a function of the user's
    try:
        hook(*arguments)
    except Exception:
        logger.exception("a function that a conflict calls raised")


def raise_conflicts(worker: type[Worker[Any]], jobs: Sequence[Mapping[str, Any]], results: Sequence[Pushed]) -> None:
    """Raise Conflict if a job that was dropped asks for it."""
    raising = [position for position, _, _, unique in _dropped(worker, jobs, results) if unique.on_conflict == "raise"]
    if raising:
        first = results[raising[0]]
        more = f" ({len(raising):,} jobs of the call)" if len(raising) > 1 else ""
        text = f"The job {first.id!r} was dropped, as its id has work: {first.dropped}{more}."
        raise Conflict(text, positions=raising, results=results)


def refuse_functions(jobs: Sequence[Mapping[str, Any]]) -> None:
    """Raises JobError for a function on a job that another process pushes."""
    for position, job in enumerate(jobs):
        if callable(job.get("on_conflict")):
            text = "another process pushes this job later, and cannot have a function: declare `unique` on the worker"
            raise JobError(text, position=position, field="on_conflict")
