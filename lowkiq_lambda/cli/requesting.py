"""`lowkiq cancel`, and `lowkiq pause` and `resume` of single jobs, in any state."""

from collections.abc import Callable, Sequence
from typing import Annotated, Final

from lowkiq_lambda.base.address import without_password
from lowkiq_lambda.cli.changing import Id, many
from lowkiq_lambda.cli.codes import DONE, FAILED, NOT_APPLIED
from lowkiq_lambda.cli.noting import note, user_name
from lowkiq_lambda.cli.output import say, write_json
from lowkiq_lambda.cli.parts import command_app, flag
from lowkiq_lambda.cli.queues import ACT, ActOptions, NamedQueue, QueueName, app_of, queue_of
from lowkiq_lambda.operate.presentation.formatting import duration, selected, visible
from lowkiq_lambda.operate.presentation.requests import answer_words
from lowkiq_lambda.views.requests import Requested

cancel: Final = command_app(
    "cancel",
    help_="""
Stop jobs of QUEUE for good, in flight too. Payloads that wait go at once, or to the morgue with --kill. A job that \
runs is asked to stop: a generator stops at its next yield, and a coroutine at its next await. A plain function runs \
to its own end: if it hangs, only lowkiq evict frees its shard. A run that ends well is done. After any other end its \
payloads go. Payloads that are pushed later stay.

The command names the jobs and asks; with --yes it does not ask. IDs that begin with a hyphen come after --.
""",
    epilogue="""
EXIT CODES
  0  It is done, or the jobs that run are asked.
  1  Nothing was changed, or not for all of the ids: some have no such job,
     or the answer was not yes.
  2  The command line, the settings or the app cannot work; or there is no
     terminal to ask at, and no --yes.
  3  Redis cannot be reached: run the command again.

EXAMPLES
  An import that nobody wants any more:
    lowkiq cancel SyncOrder 17
""",
    usage="lowkiq cancel [OPTIONS] QUEUE ID ...",
)


@cancel.default
def cancel_jobs(  # noqa: PLR0913 - the options of a command line
    queue: QueueName,
    /,
    id_: Id,
    *more: Id,
    kill: Annotated[bool, flag("Send their payloads to the morgue, the list of dead jobs.")] = False,
    forget_keys: Annotated[bool, flag("Forget their keys, so that jobs with them can be pushed again.")] = False,
    act: ActOptions = ACT,
    json: Annotated[bool, flag("Write the ids at_once, in_flight and gone, stops_at, and action_id, as JSON.")] = False,
) -> int:
    """Cancel; the exit code."""
    named_queue, ids = queue_of(app_of(act.app), queue), (id_, *more)
    return ask_of_jobs(
        named_queue,
        "cancel",
        ids,
        f"Stop for good {jobs_of(named_queue, ids)}?",
        lambda: named_queue.operate.cancel(ids, kill=kill, forget_keys=forget_keys, by=user_name()),
        act,
        json=json,
    )


def pause_one(queue: NamedQueue, job_id: str, seconds: float | None, act: ActOptions, *, json: bool) -> int:
    """Pause a job; the exit code."""
    until = "until it is resumed" if seconds is None else f"for {duration(seconds)}"
    return ask_of_jobs(
        queue,
        "pause_job",
        [job_id],
        f"Pause {jobs_of(queue, [job_id])}, {until}?",
        lambda: queue.operate.pause_jobs([job_id], seconds, by=user_name()),
        act,
        json=json,
    )


def resume_one(queue: NamedQueue, job_id: str, act: ActOptions, *, json: bool) -> int:
    """End the pause of a job; the exit code."""
    return ask_of_jobs(
        queue,
        "resume_job",
        [job_id],
        f"Resume {jobs_of(queue, [job_id])}?",
        lambda: queue.operate.resume_jobs([job_id]),
        act,
        json=json,
    )


def jobs_of(queue: NamedQueue, ids: Sequence[str]) -> str:
    """The jobs in words, with their queue."""
    names = ", ".join(map(visible, ids))
    return f"{many(len(ids), 'job')} ({names}) of {queue.name} at {without_password(queue.app.core.connections.url)}"


def ask_of_jobs(  # noqa: PLR0913, PLR0917 - an act in words, and what it does
    queue: NamedQueue,
    action: str,
    ids: Sequence[str],
    question: str,
    request: Callable[[], Requested],
    act: ActOptions,
    *,
    json: bool,
) -> int:
    """Ask, act and tell; the exit code."""
    why = act.reason_if_agreed(question, len(ids), json=json)
    if why is None:
        return NOT_APPLIED
    answer = request()
    changed = len(answer.at_once) + len(answer.in_flight)
    note(queue.app, queue.name, action, selected(ids), changed, why, action_id=answer.action_id)
    if json:
        write_json(answer)
    else:
        say(*answer_words(action, answer))
    return FAILED if answer.gone and action != "pause_job" else DONE
