"""Edits of a declaration in development: nobody is asked to redeclare a queue that has nothing to lose."""

import logging
from contextlib import suppress
from typing import Any

from lowkiq_lambda.app import Lowkiq
from lowkiq_lambda.base.errors import BackendError, QueueMismatch
from lowkiq_lambda.declare.worker import Worker
from lowkiq_lambda.providers.embedded.shared import attached

logger = logging.getLogger(__name__)


def redeclare_empty_queues(app: Lowkiq) -> None:
    """Declare anew each queue that is declared otherwise now, if it has no jobs and nobody else uses the server.

    For an embedded server only; whatever cannot be declared anew stays as it is, and is told by its first use.
    """
    server = attached(app.core.redis_url)
    if server is None:
        return
    with server.others() as others, suppress(BackendError):
        if not others:
            for worker in app.workers:
                _redeclare_if_empty(app, worker)


def _redeclare_if_empty(app: Lowkiq, worker: type[Worker[Any]]) -> None:
    try:
        app.core.queue_of(worker)
    except QueueMismatch as error:
        with suppress(QueueMismatch):
            app.operate.redeclare(worker)
            logger.warning(
                "queue %r has no jobs, and was declared anew: with %s instead of %s",
                worker.queue_name,
                error.declared,
                error.stored,
            )
