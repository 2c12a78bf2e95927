"""What a child runs: the daemon of its app, under the orders of the parent."""

import logging
import os
import signal
import sys
import traceback
from pathlib import Path
from signal import SIGINT, SIGTERM, SIGTSTP, SIGTTIN
from types import FrameType
from typing import Final

from lowkiq_lambda.app import Lowkiq
from lowkiq_lambda.base.address import is_embedded
from lowkiq_lambda.base.errors import AppNotFound, ConfigError, DeclarationError, LowkiqError
from lowkiq_lambda.engine.pulse import resident_memory
from lowkiq_lambda.local.daemon import Daemon
from lowkiq_lambda.local.logs import set_up_logs
from lowkiq_lambda.local.process_runner import ProcessRunner
from lowkiq_lambda.local.processes.helping import ProcessDealer
from lowkiq_lambda.local.processes.messages import FAILED, MISUSED, Order, Status, Word
from lowkiq_lambda.local.processes.parent_link import ParentLink
from lowkiq_lambda.local.signals import Signals
from lowkiq_lambda.local.traces import TRACE_FILE
from lowkiq_lambda.providers.embedded.shared import attach
from lowkiq_lambda.settings.loading import load_app

logger = logging.getLogger(__name__)

FROM_TERMINAL: Final = (SIGINT, SIGTSTP, SIGTTIN)
"""What reaches the whole group of processes: a child is begun with these blocked."""
_SIGNALS: Final = {"stop": SIGTERM, "quiet": SIGTSTP, "traces": SIGTTIN}


def main(words: list[str]) -> int:
    """Run the child whose connection to the parent has the descriptor that is the last word; the exit code."""
    # While the app is imported, it is the parent who says what a Ctrl-C means.
    for number in FROM_TERMINAL:
        signal.signal(number, _leave_to_parent)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, FROM_TERMINAL)
    link = ParentLink(int(words[-1]))
    order = link.order()
    set_up_logs(order.log_level, order.log_format, sys.stderr, {"child": order.number})
    try:
        return _run(order, link)
    except LowkiqError as error:
        if isinstance(error, AppNotFound) and error.__cause__:
            traceback.print_exception(error.__cause__)
        logger.error("%s", error)  # noqa: TRY400 - the sentence says all
        return MISUSED if isinstance(error, AppNotFound | ConfigError | DeclarationError) else FAILED


def _run(order: Order, link: ParentLink) -> int:
    app = load_app(order.app, Lowkiq)
    order.overrides.apply(app)
    if is_embedded(app.config.redis_url):
        # The parent has told of it already.
        attach(app.config, os.environ, tell=False)
    daemon = Daemon(app, ProcessDealer(order.number, order.processes), order.nonce_prefix)
    trace_file = TRACE_FILE.replace(".", f".{order.number}.")
    runner = ProcessRunner(daemon, app.config.shutdown_timeout, Path(order.folder, trace_file), has_parent=True)

    with Signals([SIGTERM, *FROM_TERMINAL]) as signals:

        def obey(word: Word) -> None:
            if word == "now":
                runner.leave_at_once()
            else:
                signals.send(_SIGNALS[word])

        link.begin(obey, lambda: Status(daemon.state, resident_memory(), app.core.drainer.running))
        return runner.run_by(signals)


def _leave_to_parent(_number: int, _frame: FrameType | None) -> None:
    """Catches a signal that the parent gets, too."""
