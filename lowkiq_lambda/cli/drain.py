"""`lowkiq drain`: what is due is performed in this process, once."""

import sys
from typing import TYPE_CHECKING, Annotated, Any, Final

from cyclopts import Parameter

from lowkiq_lambda.base.errors import ConfigError, LowkiqError
from lowkiq_lambda.cli.codes import DONE, FAILED
from lowkiq_lambda.cli.output import say, write_json
from lowkiq_lambda.cli.parts import AppOption, command_app, flag, number
from lowkiq_lambda.cli.queues import app_of, worker_of
from lowkiq_lambda.cli.terminating import heeding_term
from lowkiq_lambda.declare.worker import Worker
from lowkiq_lambda.engine.budget import Budget
from lowkiq_lambda.local.logs import LogLevel, set_up_logs
from lowkiq_lambda.store.shard.keys import ShardRef

if TYPE_CHECKING:
    from lowkiq_lambda.app import Lowkiq
    from lowkiq_lambda.engine.loop import Loop

_HELP: Final = """
Perform the due jobs in this process until no job is due, and print the outcomes.

Jobs that other processes perform stay theirs, and jobs that are due later stay. If the time is over, \
a handler that runs still comes to its end.
"""
_EPILOGUE: Final = """
OUTCOMES are counted in ids
  done      performed to its end
  retried   failed, and waits for its next try
  dead      failed for the last time: its oldest payload went to the morgue
  blocked   failed for the last time, and waits until an operator unblocks it
  rejected  ended with Rejected, which is no failure, or discarded
  discarded a rule of the worker dropped a payload; part of rejected
  expired   payloads whose time was over, counted one by one
  returned  given back as it was before
  later     stopped on its way, and goes on at a later time
  suspected failed in a batch with others, and runs alone before that counts
  recovered had been left by a process that died

EXIT CODES
  0    All that was due was performed, or the time is over.
  1    A job died or is blocked, a handler ended the drain, or a queue was
       made with another declaration.
  2    The command line, the settings or the app cannot work.
  3    Redis cannot be reached.
  130  Ctrl-C: what ran was given back.
  143  TERM: the same.

EXAMPLES
  All that is due:
    lowkiq drain
  One queue, for a minute at most, for a program:
    lowkiq drain --queue SyncOrder --seconds 60 --json
"""
_LONGEST: Final = 366 * 86_400
_SUMS: Final = ("failed", "checkpointed")
"""Counts of what other outcomes count, too."""
_DEATHS: Final = ("dead", "blocked")
_KEPT_AWAY: Final = {
    "out of time": "the time was over",
    "lease lost": "another process took a shard over",
    "paused": "a queue is paused",
    "limited": "the limits of a queue let nothing begin",
    "held": "another process holds a shard, or died with it a moment ago",
}
"""Reasons that leave it open whether something was due."""

command: Final = command_app("drain", help_=_HELP, epilogue=_EPILOGUE, usage="lowkiq drain [OPTIONS]")


@command.default
def drain(
    *,
    seconds: Annotated[
        float | None,
        Parameter(converter=number(0, _LONGEST), help="Seconds after which no job begins; else LOWKIQ_VISIT_SECONDS."),
    ] = None,
    queue: Annotated[str | None, Parameter(help="This queue alone, by its name or its worker's.")] = None,
    app: AppOption = None,
    log_level: Annotated[LogLevel, Parameter(help="The lowest level of logs to show.")] = "warning",
    json: Annotated[bool, flag("Write the counts as JSON, an object of numbers by outcome.")] = False,
) -> int:
    """Drain; the exit code."""
    set_up_logs(log_level, "text", sys.stderr)
    loaded = app_of(app)
    if not loaded.workers:
        raise ConfigError("The app declares no worker: import the modules that declare them.")
    worker = None if queue is None else worker_of(loaded, queue)
    with heeding_term():
        ran = _drained(loaded, worker, seconds)
    counts = dict(ran.counts)
    if json:
        write_json(counts)
    else:
        say(*(_lines(counts) or [_why_nothing(ran)]))
    return FAILED if any(counts.get(outcome) for outcome in _DEATHS) else DONE


def _drained(app: "Lowkiq", worker: type[Worker[Any]] | None, seconds: float | None) -> "Loop":
    from lowkiq_lambda.engine.loop import Loop

    drainer = app.core.drains.drainer

    def shards() -> list[ShardRef]:
        return [shard for shard in drainer.shards() if worker is None or shard.queue_name == worker.queue_name]

    ran = Loop(drainer, shards).run(Budget(drainer.clock, app.config.visit_seconds if seconds is None else seconds))
    for error in ran.errors.values():
        raise error
    for leaving in ran.exits.values():
        raise LowkiqError(f"A handler has ended the drain of its shard by {_told(leaving)}.")
    return ran


def _lines(counts: dict[str, int]) -> list[str]:
    outcomes = {outcome: count for outcome, count in counts.items() if count and outcome not in _SUMS}
    width = max((len(f"{count:,}") for count in outcomes.values()), default=0)
    return [f"{outcome:9}  {count:>{width},}" for outcome, count in outcomes.items()]


def _why_nothing(ran: "Loop") -> str:
    """That nothing was due, or what kept the drain from queues that may have something."""
    why = _KEPT_AWAY.get(ran.reason)
    if why is None:
        return "nothing was due"
    queues = sorted({shard.queue_name for shard, reason in ran.reasons.items() if reason == ran.reason})
    return f"nothing was performed: {why} ({', '.join(queues)})"


def _told(leaving: BaseException) -> str:
    """The kind of an exit, and its text where it has one."""
    return f"{type(leaving).__name__}: {leaving}" if str(leaving) else type(leaving).__name__
