"""A daemon as a program: signals go in, an exit code comes out.

After `shutdown_timeout` the process leaves by `os._exit`: a Python thread cannot be stopped, and a job that
was given back while it still runs here would run twice at once.
"""

import logging
import os
import sys
from functools import partial
from pathlib import Path
from random import Random
from signal import SIGINT, SIGTERM, SIGTSTP, SIGTTIN
from signal import Signals as Signal
from threading import Thread
from time import monotonic
from typing import Final

from lowkiq_lambda.base.errors import BackendUnavailable
from lowkiq_lambda.local.daemon import Daemon
from lowkiq_lambda.local.outage import CHECK_URL, unreachable
from lowkiq_lambda.local.signals import Signals
from lowkiq_lambda.local.traces import thread_traces, write_traces
from lowkiq_lambda.store.server.faults import backoff

logger = logging.getLogger(__name__)

FORCED: Final = 1
"""The exit code where jobs had to be given back unfinished."""
ONE_REQUEST: Final = 0.1
"""Seconds in which signals to stop are one request: `timeout`, for one, tells the process and then its group."""


class ProcessRunner:
    """Runs one daemon in the main thread's program. `trace_file` is where traces of threads are written.

    `has_parent`: only the parent hurries it, by `leave_at_once`; a signal that comes again, as it reaches parent and
    child, is the same one.
    """

    def __init__(self, daemon: Daemon, shutdown_timeout: float, trace_file: Path, *, has_parent: bool = False) -> None:
        self._daemon = daemon
        self._shutdown_timeout = shutdown_timeout
        self._trace_file = trace_file
        self._has_parent = has_parent
        self._rng = Random()  # noqa: S311 - spreads attempts in time, protects nothing

    def run(self) -> int:
        """Start the daemon and let it run until a signal stops it; 0 if all running jobs finished.

        Ends the process instead of returning if the daemon broke off, or if handlers still run when
        `shutdown_timeout` is over or a second INT or TERM comes.
        """
        with Signals([SIGTERM, SIGINT, SIGTSTP, SIGTTIN]) as signals:
            return self.run_by(signals)

    def run_by(self, signals: Signals) -> int:
        """As `run`, by signals that are caught already."""
        self._daemon.obey = partial(_obey_by, signals)
        if not self._has_started(signals):
            return 0
        Thread(target=self._wake_at_the_end, args=(signals,), name="lowkiq-end", daemon=True).start()
        self._until_told_to_stop(signals)
        self._daemon.quiet()
        self._hear_out(signals)
        self._daemon.stop()
        if not self._has_ended_in_time(signals):
            self.leave_at_once()
        return 0

    def leave_at_once(self) -> None:
        """Give back what runs, and end the process. Other threads may call it, too."""
        logger.error("the process ends at once")
        for fields in self._daemon.running_jobs():
            logger.error("a handler still runs: its jobs are given back", extra=fields)
        # First: once they are given back, others begin these jobs very soon, and the process must be gone.
        self._daemon.give_up_pushes()
        self._daemon.abandon()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(FORCED)

    def _has_started(self, signals: Signals) -> bool:
        """Start the daemon; whether it started before a signal to stop.

        The daemon itself waits for an unreachable server, but the nodes of a cluster must be known for a start.
        """
        attempt = 0
        while True:
            try:
                self._daemon.start()
            except BackendUnavailable as error:
                if attempt == 0:
                    logger.error("%s", unreachable(error, CHECK_URL))  # noqa: TRY400 - no fault of ours
                signal = signals.next(backoff(attempt, self._rng))
                if signal in (SIGTERM, SIGINT):
                    return False
                attempt += 1
            else:
                return True

    def _wake_at_the_end(self, signals: Signals) -> None:
        self._daemon.join()
        signals.wake()

    def _until_told_to_stop(self, signals: Signals) -> None:
        while not self._daemon.join(0):
            signal = signals.next()
            if signal in (SIGTERM, SIGINT):
                # For a child, the parent has the signal.
                details = {} if self._has_parent else {"signal": signal.name}
                logger.info("told to stop", extra={**details, "timeout": self._shutdown_timeout})
                return
            self._obey(signal)

    def _hear_out(self, signals: Signals) -> None:
        ends_at = monotonic() + ONE_REQUEST
        while not self._daemon.join(0) and (left := ends_at - monotonic()) > 0:
            self._obey(signals.next(left))

    def _has_ended_in_time(self, signals: Signals) -> bool:
        ends_at = monotonic() + self._shutdown_timeout
        while not self._daemon.join(0):
            left = ends_at - monotonic()
            signal = signals.next(max(0.0, left))
            is_hurried = signal in (SIGTERM, SIGINT) and not self._has_parent
            if is_hurried or left <= 0:
                return self._daemon.join(0)
            self._obey(signal)
        return not self._daemon.broke_off

    def _obey(self, signal: Signal | None) -> None:
        if signal == SIGTSTP:
            self._daemon.quiet()
        elif signal == SIGTTIN:
            self._tell_traces()

    def _tell_traces(self) -> None:
        traces = thread_traces()
        try:
            write_traces(self._trace_file, traces)
            message = f"traces of all threads, written to {self._trace_file}"
        except OSError as error:
            message = f"traces of all threads ({error})"
        record = logger.makeRecord(logger.name, logging.WARNING, __file__, 0, message, (), None, sinfo=traces)
        logger.handle(record)


def _obey_by(signals: Signals, order: str) -> None:
    """Do what the order says as if a signal had come, with all that follows from it."""
    logger.info("ordered to %s", "stop" if order == "stop" else "be quiet")
    signals.send(SIGTERM if order == "stop" else SIGTSTP)
