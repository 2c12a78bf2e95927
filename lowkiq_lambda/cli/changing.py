"""A change of jobs by the command line: the question, the steps with a bar, and the words at its end."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Final, NamedTuple, TypeAlias

import msgspec
from cyclopts import App, Parameter

from lowkiq_lambda.base.address import without_password
from lowkiq_lambda.base.clock import SystemClock
from lowkiq_lambda.base.errors import BackendError, LowkiqError
from lowkiq_lambda.cli.codes import DONE, FAILED, INTERRUPTED, NOT_APPLIED
from lowkiq_lambda.cli.noting import note, reason_for
from lowkiq_lambda.cli.output import NOTHING, agreed, progress, remark, say, write_json
from lowkiq_lambda.cli.parts import command_app, flag, moment_ahead, number
from lowkiq_lambda.cli.queues import NamedQueue
from lowkiq_lambda.jobs.job import NEVER_FAILED, JobView
from lowkiq_lambda.operate.acts.action_scripts import UNDOABLE_IDS, ActionName
from lowkiq_lambda.operate.presentation.formatting import selected, visible

if TYPE_CHECKING:
    from lowkiq_lambda.operate.acts.bulk_progress import BulkAction

Id: TypeAlias = Annotated[str, Parameter(name="ID", help="The ids of the jobs.", negative="")]
All: TypeAlias = Annotated[bool, flag("All jobs, in place of ids.")]
DryRun: TypeAlias = Annotated[bool, flag("Print how many jobs it would change, and the first ids; change nothing.")]
Rate: TypeAlias = Annotated[
    float | None,
    Parameter(
        converter=number(0, 1_000_000, is_least_allowed=False),
        help="Ids that become due in a second; else all at once.",
    ),
]
Start: TypeAlias = Annotated[
    float | None,
    Parameter(help='From when on ids become due, such as "in 2h" or 03:00; by default now.', converter=moment_ahead),
]
Json: TypeAlias = Annotated[bool, flag("Write act, queue, changed, examined, dry_run and the first ids as JSON.")]

_ENDING: Final = """
The command names the jobs and asks; with --yes it does not ask. Jobs in flight, and jobs that are pushed after the \
question, do not change. IDs that begin with a hyphen come after --.
"""
_CODES: Final = """
EXIT CODES
  0    It is done.
  1    Nothing was changed, or not for all of the ids: some have no such job,
       or the answer was not yes; or it was a dry run.
  2    The command line, the settings or the app cannot work; or there is no
       terminal to ask at, and no --yes.
  3    Redis cannot be reached: the error says how far it came.
  130  Ctrl-C: what was changed stays changed, and the same command goes on.
"""
_LOOKED_UP: Final = 100
"""Of how many ids the end says whether they run."""
_COUNT_FOR: Final = 5.0
"""Seconds, at most, for counting what is to be changed."""
NAMED: Final = 5
"""Ids that people are told of a dry run, and a program:"""
LISTED: Final = 100


class JobChange(NamedTuple):
    """A change in words: what is asked, where its jobs are (a queue's name follows), and what is told at the end."""

    act: ActionName
    asked: str
    where: str
    told: str


class JobChoice(NamedTuple):
    """The circumstances of a change: how its jobs were found (empty: by ids, or all), its pace, and why it is made.

    `json`: it is told to a program.
    """

    filter: str = ""
    pace: str = ""
    reason: str | None = None
    json: bool = False


class ChangeView(msgspec.Struct, frozen=True, kw_only=True):
    """A change as JSON: how many ids of the `queue` it has `changed`, of so many that it `examined`.

    `paused`: those that did not change, as they are paused. `last_due`: with a rate, by when the last is due.
    Of a dry run `changed` is what it would change, and `ids` are the first of these; `is_all`: no more were counted.
    """

    act: str
    queue: str
    changed: int
    examined: int
    paused: int = 0
    last_due: float | None = None
    dry_run: bool = False
    is_all: bool = True
    ids: list[str] = []


def change_app(
    name: str, help_: str, examples: str, *, usage: str = "(ID ... | --all | --filter NAME=VALUE ...)", more: str = ""
) -> App:
    """The command of a change."""
    return command_app(
        name,
        help_=f"{help_.strip()}\n{_ENDING}",
        epilogue=f"{more}{_CODES}\nEXAMPLES\n{examples}",
        usage=f"lowkiq {name} [OPTIONS] QUEUE {usage}",
    )


def change(  # noqa: PLR0913 - the words of a change, and what is changed
    queue: NamedQueue,
    words: JobChange,
    action: "BulkAction",
    *,
    yes: bool,
    choice: JobChoice = JobChoice(),  # noqa: B008 - it cannot be changed
    once_agreed: "Callable[[BulkAction], BulkAction]" = lambda action: action,
) -> int:
    """Ask, act and tell; the exit code. `once_agreed` is told of the action when somebody has said yes."""
    from lowkiq_lambda.operate.acts.bulk_actions import count

    until = SystemClock.monotonic() + _COUNT_FOR
    job_count, is_all = count(queue.operate.runner, action, lambda: SystemClock.monotonic() < until)
    if not job_count:
        if choice.json:
            write_json(ChangeView(act=words.act, queue=queue.name, changed=0, examined=action.total))
        else:
            say(f"there are no jobs {words.where} {queue.name}")
        return DONE
    jobs = f"{_jobs(job_count)}{'' if is_all else ', or more,'}"
    ids = action.chosen or ()
    listed = f" ({_listed(ids, len(ids))})" if ids else ""
    where = f"{words.where} {queue.name} at {without_password(queue.app.core.connections.url)}{choice.pace}"
    if action.beyond_undo:
        remark(f"only the last {UNDOABLE_IDS:,} jobs of a shard, or fewer, can be undone: export the others first")
    is_agreed = yes or agreed(f"{words.asked} {jobs}{listed} {where}?", aside=choice.json)
    reason = reason_for(job_count, choice.reason, is_all=is_all, yes=yes, aside=choice.json) if is_agreed else None
    if reason is None:
        (remark if choice.json else say)(NOTHING)
        return NOT_APPLIED
    action = action if yes else once_agreed(action)
    return _carry_out(queue, words, action, choice._replace(reason=reason), yes=yes)


def dry_run(queue: NamedQueue, words: JobChange, action: "BulkAction", choice: JobChoice) -> int:
    """Tell what the change would touch, and change nothing; the exit code."""
    from lowkiq_lambda.operate.acts.bulk_actions import count, first_ids

    until = SystemClock.monotonic() + _COUNT_FOR
    runner = queue.operate.runner
    if action.chosen is None:
        job_count, is_all = count(runner, action, lambda: SystemClock.monotonic() < until)
        ids = first_ids(runner, action, LISTED, lambda: SystemClock.monotonic() < until)
    else:
        touched = _touched(queue, words.act, action.chosen)
        job_count, is_all, ids = len(touched), True, touched[:LISTED]
    if choice.json:
        write_json(
            ChangeView(
                act=words.act,
                queue=queue.name,
                changed=job_count,
                examined=action.total,
                dry_run=True,
                is_all=is_all,
                ids=[*ids],
                last_due=action.last_due(job_count),
            )
        )
        return NOT_APPLIED
    more = "" if is_all else ", or more,"
    listed = f": {_listed(ids, job_count)}" if ids else ""
    effect = f"{words.told}{_last_due(action.last_due(job_count))}"
    say(f"{_jobs(job_count)}{more} {words.where} {queue.name} would be {effect}{listed}; nothing was changed")
    return NOT_APPLIED


def _touched(queue: NamedQueue, act: ActionName, ids: Sequence[str]) -> list[str]:
    """Those of the ids that the act would change, as far as one look tells."""
    from lowkiq_lambda.store.shard.nodes import FAR

    if act in {"delete_dead", "requeue"}:
        return [job.id for job in queue.operate.morgue.fetch(ids)]
    now = queue.app.core.backend.now(queue.shards[0])
    fits: Callable[[JobView], bool] = {
        "kill": lambda job: job.retry_count > NEVER_FAILED,
        "run_now": lambda job: now < job.due_at < FAR,
        "unblock": lambda job: job.due_at >= FAR,
        "unblock_skipping": lambda job: job.due_at >= FAR,
    }.get(act, lambda _job: True)
    return [job.id for job in queue.operate.waiting.fetch(ids) if fits(job)]


def _listed(ids: Sequence[str], number: int) -> str:
    """The first of so many."""
    return f"{', '.join(map(visible, ids[:NAMED]))}{', ...' if number > NAMED else ''}"


def _carry_out(queue: NamedQueue, words: JobChange, action: "BulkAction", choice: JobChoice, *, yes: bool) -> int:
    from lowkiq_lambda.operate.acts.bulk_actions import steps

    last = action
    try:
        with progress(words.act, max(1, action.total)) as show:
            for last in steps(queue.operate.runner, action):
                show(min(last.handled, action.total))
    except KeyboardInterrupt:
        remark(_so_far(words, last))
        return INTERRUPTED
    except BackendError as error:
        raise type(error)(f"{error} It has {_so_far(words, last)}.") from error
    except ValueError as error:
        raise LowkiqError(str(error)) from error
    finally:
        target = selected(action.chosen) if action.chosen else f"found by: {choice.filter}" if choice.filter else "all"
        note(
            queue.app,
            queue.name,
            words.act,
            f"{target}{choice.pace}",
            last.changed,
            choice.reason,
            action_id=last.action_id,
        )
    view = ChangeView(
        act=words.act,
        queue=queue.name,
        changed=last.changed,
        examined=last.handled,
        paused=last.paused,
        last_due=last.result.last_due,
    )
    if last.paused:
        remark(f"{_jobs(last.paused)} {'is' if last.paused == 1 else 'are'} paused, and did not change")
    if last.sooner:
        remark(f"{_jobs(last.sooner)} {'is' if last.sooner == 1 else 'are'} due sooner, and did not change")
    _tell_of_undo(last, interactive=not yes)
    if action.chosen is not None and last.changed < action.total:
        has_others = last.turns + last.paused < action.total
        others = f": the others are not {words.where} {queue.name}{_or_stay(action)}" if has_others else ""
        if choice.json:
            write_json(view)
            return FAILED
        say(f"{words.told} {last.changed:,} of {_jobs(action.total)}{others}")
        _remark_running(queue, words, action.chosen)
        return FAILED
    if choice.json:
        write_json(view)
        return DONE
    examined = f", of {last.handled:,} that were examined" if choice.filter else ""
    say(f"{words.told} {_jobs(last.changed)}{examined}{_last_due(last.result.last_due)}")
    return DONE


def _tell_of_undo(action: "BulkAction", *, interactive: bool) -> None:
    """How many of the jobs can be undone, if not all can; and how, to people."""
    result = action.result
    if not (action.action_id and result):
        return
    if not result.undoable:
        remark("this cannot be undone: the server had no room for it")
    elif result.undoable < result:
        remark(f"{result.undoable:,} of {_jobs(result)} can be undone for ten minutes: lowkiq undo {result.action_id}")
    elif interactive:
        remark(f"for ten minutes it can be undone: lowkiq undo {result.action_id}")


def _so_far(words: JobChange, action: "BulkAction") -> str:
    terms = action.terms
    start = "" if terms is None or terms.rate is None else f" with --start {terms.due_at(action.turns):.3f}"
    return f"{words.told} {_jobs(action.changed)}; the same command{start} goes on"


def _or_stay(action: "BulkAction") -> str:
    is_strict = action.terms is not None and action.terms.order == "unless_newer"
    return ", or stay for a newer payload" if is_strict else ""


def _last_due(at: float | None) -> str:
    return "" if at is None else f", the last of them due by {moment(at)}"


def _remark_running(queue: NamedQueue, words: JobChange, ids: Sequence[str]) -> None:
    """Tell of ids that run, as nothing changes these, and what makes a job with a cursor stop."""
    if not words.where.startswith("waiting"):
        return
    with suppress(LowkiqError):
        if running := len(queue.operate.in_flight.fetch(ids[:_LOOKED_UP])):
            run = f"{running:,} of them {'runs' if running == 1 else 'run'} now, and nothing changes what runs"
            remark(f"{run}; a job with a cursor stops at its next checkpoint after: lowkiq pause {queue.name}")


def pace_words(rate: float | None) -> str:
    """The rate, behind what is asked and noted."""
    return "" if rate is None else f", {rate:g} a second"


def _jobs(number: int) -> str:
    return many(number, "job")


def many(number: int, noun: str) -> str:
    """So many of them."""
    return f"{number:,} {noun}{'s' if number != 1 else ''}"


def moment(at: float) -> str:
    """Unix seconds as a time that people read."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%SZ")
