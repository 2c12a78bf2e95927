"""`lowkiq verify`: records what happens in a queue, and says whether all went as it must."""

import sys
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec
from cyclopts import Parameter

from lowkiq_lambda.base.clock import SystemClock
from lowkiq_lambda.cli.codes import DONE, FAILED
from lowkiq_lambda.cli.parts import AppOption, command_app, flag, number
from lowkiq_lambda.cli.queues import QueueName, app_of, worker_of
from lowkiq_lambda.declare.worker import Worker
from lowkiq_lambda.views.journal import LONGEST
from lowkiq_lambda.views.verification import Verified

if TYPE_CHECKING:
    from lowkiq_lambda.app import Lowkiq
    from lowkiq_lambda.operate.verify.verifier import VerificationReport

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

HOUSEKEEPING
  With Config(verify=0.01), or LOWKIQ_VERIFY=0.01, housekeeping records and
  verifies 1 % of the time of the shards. The last line is what it has verified
  within a day. A violation that it found stays until --acknowledge.

EXIT CODES
  0  No rule is violated.
  1  A rule is violated, or nothing was recorded.
  2  The command line, the settings or the app cannot work.
  3  Redis cannot be reached.

EXAMPLES
  Ten minutes of a queue:
    lowkiq verify SyncOrder --app shop.jobs:app --record 600
  A violation that housekeeping found is understood, and mended:
    lowkiq verify SyncOrder --app shop.jobs:app --acknowledge
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
    acknowledge: Annotated[bool, flag("Forget the violations that housekeeping has found, and end.")] = False,
    json: Annotated[bool, flag("Write the report as JSON; times are Unix seconds.")] = False,
) -> int:
    """Record, verify, and say so; the exit code."""
    loaded = app_of(app)
    worker = worker_of(loaded, queue)
    if acknowledge:
        return _acknowledged(loaded, worker, as_json=json)
    report = _recorded(loaded, worker, record) if record else loaded.operate(worker).verify()
    verified = loaded.operate(worker).verified()
    if json:
        fields = {**msgspec.structs.asdict(report), "verified": verified}
        sys.stdout.write(f"{msgspec.json.format(msgspec.json.encode(fields)).decode()}\n")
    else:
        sys.stdout.write("".join(f"{line}\n" for line in (*_lines(report), *_sampled(verified))))
    is_verified = report.since is not None or (verified is not None and verified.looked_at is not None)
    is_violated = report.violations or (verified is not None and verified.found)
    return DONE if is_verified and not is_violated else FAILED


def _acknowledged(app: "Lowkiq", worker: type[Worker[Any]], *, as_json: bool) -> int:
    count = app.operate(worker).acknowledge_violations()
    text = msgspec.json.encode({"acknowledged": count}).decode() if as_json else f"acknowledged: {count}"
    sys.stdout.write(f"{text}\n")
    return DONE


def _recorded(app: "Lowkiq", worker: type[Worker[Any]], seconds: float) -> "VerificationReport":
    from lowkiq_lambda.operate.verify.verifier import Verifier

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


def _sampled(verified: Verified | None) -> Iterator[str]:
    """Lines about the verification by housekeeping."""
    if verified is not None:
        yield f"housekeeping has verified {verified.says}"
        for violation in verified.violations:
            yield f"  {violation}"
            if violation.evidence:
                yield f"    the entries that were judged: {violation.evidence}"


def _lines(report: "VerificationReport") -> Iterator[str]:
    for shard in report.deleted:
        yield f"shard {shard}: its journal, or the older part of it, was deleted, and is not verified"
    if report.since is None:
        yield "nothing was recorded: give --record SECONDS"
        return
    yield from map(str, report.violations)
    violations = f"{len(report.violations)} violations" if report.violations else "no violation"
    yield f"{violations} in {report.events} events of {report.ids} ids in {report.shards} shards"
