"""Jobs that are pushed later are checked when they are given, so that a mistake is told to the code that made it."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from lowkiq_lambda.base.errors import JobError
from lowkiq_lambda.declare.worker import HOME, LATEST, Worker, count_of
from lowkiq_lambda.push.checking import NO_PAYLOAD, Checker
from lowkiq_lambda.push.conflicts import refuse_functions
from lowkiq_lambda.store.shard.chunks import NewJob
from lowkiq_lambda.store.shard.codec import dump_json, load_json

if TYPE_CHECKING:
    from lowkiq_lambda.app import Lowkiq


def check_jobs(app: "Lowkiq", worker: type[Worker[Any]], jobs: Iterable[Mapping[str, Any]], now: float) -> list[NewJob]:
    """The jobs as the store would take them at this time (Unix seconds), in order. Asks no server; raises JobError."""
    config, jobs = app.config, [*jobs]
    checker = Checker(
        count_of(worker),
        config.dump_payload,
        config.max_payload_bytes,
        now=lambda: now,
        by_tenant=worker.tenants == HOME,
        needs_score=worker.merge == LATEST,
        expires_in=worker.expires_in,
        unique=worker.unique,
    )
    by_shard = checker.check_all(jobs).by_shard
    refuse_functions(jobs)
    return sorted((new for shard in by_shard.values() for new in shard), key=lambda new: new.position)


def frozen_jobs(
    app: "Lowkiq", worker: type[Worker[Any]], jobs: Iterable[Mapping[str, Any]], now: float
) -> list[dict[str, Any]]:
    """The jobs as they are at this time, whatever becomes of their payloads. Raises JobError for a bad one."""
    if isinstance(jobs, Mapping):
        raise JobError("give a list of jobs, not one job: [{...}]")
    if worker.payload is None:
        jobs_at_once = [*jobs]
    else:
        from lowkiq_lambda.declare.payloads import plain_jobs  # noqa: PLC0415 - only where a type is declared: cold start

        jobs_at_once = [*plain_jobs(worker.payload, jobs)]
    check_jobs(app, worker, jobs_at_once, now)
    dump, load = app.config.dump_payload or dump_json, app.config.load_payload or load_json
    return [{**job, "payload": load(dump(job.get("payload", NO_PAYLOAD)))} for job in jobs_at_once]
