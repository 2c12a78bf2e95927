"""`lowkiq replay`: payloads of runs that are over are pushed again."""

from typing import TYPE_CHECKING, Annotated, Final, NamedTuple

from cyclopts import Parameter

from lowkiq_lambda.base.address import without_password
from lowkiq_lambda.base.clock import SystemClock
from lowkiq_lambda.base.errors import ConfigError
from lowkiq_lambda.cli.changing import many
from lowkiq_lambda.cli.codes import DONE, INTERRUPTED, NOT_APPLIED
from lowkiq_lambda.cli.noting import note
from lowkiq_lambda.cli.output import progress, remark, say, write_json
from lowkiq_lambda.cli.parts import command_app, flag, number
from lowkiq_lambda.cli.queues import ACT, ActOptions, NamedQueue, QueueName, app_of, queue_of
from lowkiq_lambda.operate.presentation.formatting import utc
from lowkiq_lambda.operate.presentation.moments import moment_of

if TYPE_CHECKING:
    from lowkiq_lambda.operate.acts.replaying import Replay, Replayed

_HELP: Final = """
Push the payloads of QUEUE's runs between --since and --until again, with their scores, in the order of id and score.

The worker has to keep payloads: keep_runs = KeepRuns(10_000, payloads=True). A payload is pushed once a week for its \
run, so the same command twice changes nothing. With --rate so many ids become due in each second. The command names \
the jobs and asks; with --yes it does not ask.
"""
_EPILOGUE: Final = """
EXIT CODES
  0    It is done.
  1    Nothing was changed: a dry run, or the answer was not yes.
  2    The command line, the settings or the app cannot work; or there is no
       terminal to ask at, and no --yes.
  3    Redis cannot be reached: the same command goes on.
  130  Ctrl-C: what was pushed stays, and the same command goes on.

EXAMPLES
  What would be pushed:
    lowkiq replay SyncOrder --since "14:00 yesterday" \\
      --until "15:10 yesterday" --dry-run
  The same for good, ten ids in a second:
    lowkiq replay SyncOrder --since "14:00 yesterday" \\
      --until "15:10 yesterday" --rate 10 --yes
"""
_FASTEST: Final = 1_000_000

command: Final = command_app(
    "replay",
    help_=_HELP,
    epilogue=_EPILOGUE,
    usage="lowkiq replay [OPTIONS] QUEUE --since MOMENT --until MOMENT",
)


@command.default
def replay(  # noqa: PLR0913 - the options of a command line
    queue: QueueName,
    /,
    *,
    since: Annotated[str, Parameter(help='A moment, such as "14:00 yesterday": runs that ran then or later.')],
    until: Annotated[str, Parameter(help="A moment: runs that ran then or earlier.")],
    outcome: Annotated[list[str] | None, Parameter(help="Of runs with this outcome; else done.", negative="")] = None,
    id_prefix: Annotated[str, Parameter(help="Of ids that begin so alone.")] = "",
    rate: Annotated[
        float | None,
        Parameter(
            converter=number(0, _FASTEST, is_least_allowed=False),
            help="Ids that become due in a second; else all at once.",
        ),
    ] = None,
    dry_run: Annotated[bool, flag("Print what would be pushed, and push nothing.")] = False,
    json: Annotated[bool, flag("Write the numbers as JSON.")] = False,
    act: ActOptions = ACT,
) -> int:
    """Push them; the exit code."""
    from lowkiq_lambda.operate.acts.replaying import replay_of

    named_queue = queue_of(app_of(act.app), queue)
    if named_queue.worker is None:
        raise ConfigError(f"The app has no worker for the queue {named_queue.name!r}.")
    try:
        begin, end = (moment_of(text, SystemClock.time()) for text in (since, until))
        planned = replay_of(
            named_queue.app.core,
            (operate := named_queue.operate).reader,
            operate.runner.errors,
            named_queue.worker,
            (begin, end),
            outcome=outcome or "done",
            id_prefix=id_prefix,
            rate=rate,
        )
    except ValueError as error:
        raise ConfigError(f"{str(error).removesuffix('.')}.") from None
    return _carry_out(named_queue, planned, ReplayWindow(begin, end, rate), act, dry_run=dry_run, json=json)


class ReplayWindow(NamedTuple):
    """The runs that were chosen, and the pace of their payloads."""

    begin: float
    end: float
    rate: float | None

    @property
    def pace(self) -> str:
        """In words, behind a comma."""
        return "" if self.rate is None else f", {self.rate:g} a second"


def _carry_out(  # noqa: PLR0913 - the options of the command
    named_queue: NamedQueue, planned: "Replay", choice: ReplayWindow, act: ActOptions, *, dry_run: bool, json: bool
) -> int:
    """Ask, push and tell; the exit code."""
    replayed = planned.plan.replayed
    between = f"that ran from {utc(choice.begin)} to {utc(choice.end)}"
    marks = "; versions that a newer one has followed are superseded" * (named_queue.merge == "latest")
    what = f"{many(replayed.payloads, 'payload')} of {many(replayed.ids, 'id')} {between}"
    for line in _left_out(replayed):
        remark(line)
    if dry_run:
        if json:
            write_json(replayed)
        else:
            say(f"{what} would be pushed{marks}; nothing was changed")
        return NOT_APPLIED
    if not replayed.payloads:
        say(f"there is nothing to replay {between}")
        return DONE
    where = f"to {named_queue.name} at {without_password(named_queue.app.core.connections.url)}"
    why = act.reason_if_agreed(f"Push {what} {where}{choice.pace}{marks}?", replayed.ids, json=json)
    if why is None:
        return NOT_APPLIED
    try:
        with progress("replay", replayed.payloads) as show:
            for step in planned.steps():
                show(step.written)
    except KeyboardInterrupt:
        remark(f"{replayed.written:,} payloads were pushed; the same command goes on")
        return INTERRUPTED
    finally:
        target = f"runs {between}{choice.pace}"
        note(named_queue.app, named_queue.name, "replay", target, replayed.written, why)
    if json:
        write_json(replayed)
    else:
        say(_told(replayed))
    return DONE


def _left_out(replayed: "Replayed") -> list[str]:
    lines = []
    if replayed.without_payloads:
        lines.append(f"note: {many(replayed.without_payloads, 'run')} left out whose payloads were not kept")
    if replayed.unreadable:
        lines.append(f"note: {many(replayed.unreadable, 'run')} left out that cannot be read")
    return lines


def _told(replayed: "Replayed") -> str:
    parts = {
        "merged": replayed.merged,
        "pushed by an earlier replay": replayed.repeated,
        "superseded": replayed.superseded,
    }
    more = "".join(f", {count:,} of them {words}" for words, count in parts.items() if count)
    return f"pushed {many(replayed.written, 'payload')}{more}"
