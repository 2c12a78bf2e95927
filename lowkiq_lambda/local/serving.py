"""The server of an app that a program runs, and the queues of the embedded one that are declared anew."""

import logging
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

from lowkiq_lambda.app import Lowkiq
from lowkiq_lambda.base.address import EMBEDDED, is_embedded
from lowkiq_lambda.base.errors import BackendError, QueueMismatch
from lowkiq_lambda.declare.worker import Worker
from lowkiq_lambda.providers.embedded.shared import attached
from lowkiq_lambda.settings.development import refuse_in_deployment

logger = logging.getLogger(__name__)


def server_for(app: Lowkiq, data_dir: Path | None, default: Path) -> Path:
    """Give the app a server, the embedded one where it names none; the folder for files.

    Raises ConfigError and EmbeddedServerError.
    """
    url = app.config.redis_url
    if not app.config.names_server:
        refuse_in_deployment("No Redis is named", os.environ)
        app.core.configure(redis_url=EMBEDDED)
    if data_dir is not None and app.config.redis is None and (url is None or is_embedded(url)):
        app.core.configure(redis_url=f"{EMBEDDED}{data_dir.absolute()}")
    embedded = attached(app.core.connections.url) if app.config.redis is None else None
    return embedded.data_dir if embedded else data_dir or default


def redeclare_empty_queues(app: Lowkiq) -> None:
    """Declare anew each queue that is declared otherwise now, if it has no jobs and no other process uses the server.

    For an embedded server only; whatever cannot be declared anew stays as it is, and is told by its first use.
    """
    server = attached(app.core.connections.url)
    if server is None:
        return
    with server.others() as others, suppress(BackendError):
        if not others:
            for worker in app.workers:
                _redeclare_if_empty(app, worker)


def _redeclare_if_empty(app: Lowkiq, worker: type[Worker[Any]]) -> None:
    try:
        app.core.queues.agreed(worker)
    except QueueMismatch as error:
        with suppress(QueueMismatch):
            app.operate(worker).redeclare()
            logger.warning(
                "queue %r has no jobs, and was declared anew: with %s instead of %s",
                worker.queue_name,
                error.declared,
                error.stored,
            )
