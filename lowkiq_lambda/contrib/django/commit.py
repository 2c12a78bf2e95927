"""Pushes that wait for the commit of a transaction: what is rolled back pushes nothing."""

from collections.abc import Iterable
from typing import Any, Unpack

from django.db import transaction

from lowkiq_lambda.app import Lowkiq
from lowkiq_lambda.base.clock import SystemClock
from lowkiq_lambda.base.errors import DeclarationError
from lowkiq_lambda.contrib.checking import frozen_jobs
from lowkiq_lambda.declare.options import JobOptions
from lowkiq_lambda.declare.pushable import AnyWorker
from lowkiq_lambda.declare.worker import worker_of


def push_on_commit(
    worker: AnyWorker,
    id: str | int,
    payload: Any = "",  # noqa: ANN401 - what the worker takes
    *,
    using: str | None = None,
    robust: bool = False,
    **options: Unpack[JobOptions],
) -> None:
    """`push` once the transaction commits, and never if it is rolled back; at once outside of a transaction.

    The job is checked and kept as it is now; a `delay` counts from the commit. `using`: the database. `robust`: an
    error of the push is logged by Django; else it is raised where the transaction ends, which has committed then, and
    later callbacks are not called. Raises JobError, DeclarationError.
    """
    job = {"id": id, "payload": payload, **{name: value for name, value in options.items() if value is not None}}
    push_many_on_commit(worker, [job], using=using, robust=robust)


def push_many_on_commit(
    worker: AnyWorker,
    jobs: Iterable[Any],
    *,
    using: str | None = None,
    robust: bool = False,
) -> None:
    """`push_many` once the transaction commits: for several jobs, in one push. Else as `push_on_commit`."""
    declared = worker_of(worker)
    app = declared.app
    if not isinstance(app, Lowkiq):
        raise DeclarationError(f"{declared.__name__} is not bound to an app: decorate it with @app.worker.")
    frozen = frozen_jobs(app, declared, jobs, SystemClock().time())
    transaction.on_commit(lambda: app.push_many(declared, frozen), using=using, robust=robust)
