"""`lowkiq verify`: records what happens in a queue, and says whether all went as it must."""

import sys
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec
from cyclopts import Parameter

from lowkiq_lambda.base.clock import SystemClock
from lowkiq_lambda.cli.codes import DONE, FAILED
from lowkiq_lambda.cli.parts import command_app, flag, number
from lowkiq_lambda.cli.queues import AppOption, QueueName, app_of, worker_of
from lowkiq_lambda.declare.worker import Worker
from lowkiq_lambda.operate.inspect.journal_level import LONGEST
from lowkiq_lambda.operate.verify.verifier import VerificationReport, Verifier

if TYPE_CHECKING:
    from lowkiq_lambda.app import Lowkiq

_HELP: Final = """
Verify a queue by its journals: was each payload delivered in its order, once at a time, and is none lost?

Each shard can write down what happens in it: pushes, claims, and what became of each id. The verification reads \
these journals, applies the rules of the queue event by event, and compares the end with the content of the shards.
"""
_EPILOGUE: Final = """
RULES
  order     A claim hands out the first of what waits under its id; of what was
            delivered the oldest payload dies first.
  delivery  Nothing is claimed that does not wait: nothing that is done, unless
            it was pushed again or came back from the morgue.
  overlap   No id is claimed while it is in flight.
  outcomes  Only what is in flight has an outcome.
  tokens    Tokens grow from holder to holder, and an outcome is its holder's.
  account   Each payload that was pushed waits, is in flight or in the morgue,
            or ended in just one way; and the shards hold what the journals
            say.
  They are about the queue and not about the handlers: whether two of these ran
  at once, their own writes show (`batch.token`).

RECORDING
  A shard keeps some 2,000 events, and records all of them only on demand.
  --record starts that, and reads along for these seconds; Ctrl-C ends it, and
  the report comes. Recording makes pushes and claims a bit dearer. Without
  --record the present journals are verified, such as after
  app.operate(Worker).journal("all", seconds=600).

EXIT CODES
  0  No rule is violated.
  1  A rule is violated, or nothing was recorded.
  2  The command line, the settings or the app cannot work.
  3  Redis cannot be reached.

EXAMPLES
  Ten minutes of a queue:
    lowkiq verify SyncOrder --app shop.jobs:app --record 600
"""
_LOOK: Final = 0.5
"""Seconds between two looks: a shard keeps 2,000 events."""

command: Final = command_app("verify", help_=_HELP, epilogue=_EPILOGUE, usage="lowkiq verify [OPTIONS] QUEUE")


@command.default
def verify(
    queue: QueueName,
    /,
    *,
    app: AppOption = None,
    record: Annotated[
        float, Parameter(help="Seconds for which all events are recorded first.", converter=number(0, LONGEST))
    ] = 0.0,
    json: Annotated[bool, flag("Write the report as JSON; times are Unix seconds.")] = False,
) -> int:
    """Record, verify, and say so; the exit code."""
    loaded = app_of(app)
    worker = worker_of(loaded, queue)
    report = _recorded(loaded, worker, record) if record else loaded.operate(worker).verify()
    if json:
        sys.stdout.write(f"{msgspec.json.format(msgspec.json.encode(report)).decode()}\n")
    else:
        sys.stdout.write("".join(f"{line}\n" for line in _lines(report)))
    return DONE if report.since is not None and not report.violations else FAILED


def _recorded(app: "Lowkiq", worker: type[Worker[Any]], seconds: float) -> VerificationReport:
    queue = app.operate(worker)
    verifier, pause, end = Verifier(queue.reader), threading.Event(), SystemClock.monotonic() + seconds
    # A look may be late.
    queue.journal("all", seconds=min(LONGEST, seconds + 60.0))
    try:
        while (left := end - SystemClock.monotonic()) > 0:
            verifier.look()
            pause.wait(min(_LOOK, left))
    except KeyboardInterrupt:
        sys.stderr.write("recording ends here\n")
    try:
        return verifier.report()
    finally:
        queue.journal("trouble")


def _lines(report: VerificationReport) -> Iterator[str]:
    if report.since is None:
        yield "nothing was recorded: give --record SECONDS"
        return
    yield from map(str, report.violations)
    violations = f"{len(report.violations)} violations" if report.violations else "no violation"
    yield f"{violations} in {report.events} events of {report.ids} ids in {report.shards} shards"
