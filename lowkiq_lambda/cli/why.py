"""`lowkiq why`: the reason why a job runs, or does not, and why a queue is late."""

import shlex
from collections.abc import Iterator, Mapping
from typing import Annotated, Final, TypeAlias

import msgspec
from cyclopts import Parameter

from lowkiq_lambda.base.errors import ConfigError
from lowkiq_lambda.cli.codes import DONE, FAILED
from lowkiq_lambda.cli.output import say, write_json
from lowkiq_lambda.cli.parts import AppOption, command_app, flag, seconds_above_0
from lowkiq_lambda.cli.queues import NamedQueue, QueueName, app_of, queue_of
from lowkiq_lambda.operate.presentation.formatting import utc, visible

_HELP: Final = """
Explain in a sentence why the job of an ID in QUEUE runs, or does not run yet; add the details, and when it goes on.

Without an ID: why QUEUE is late, if it is, with the numbers that this is judged by. The pages of the job and of the \
queue on the dashboard have the same text. An ID that begins with a hyphen comes after --.
"""
_EPILOGUE: Final = """
EXIT CODES
  0  It is explained; the queue is not late.
  1  The queue has no job of this id; or it is late.
  2  The command line, the settings or the app cannot work.
  3  Redis cannot be reached.

EXAMPLES
  Why a queue is late:
    lowkiq why SyncOrder
  A job that seems to be stuck:
    lowkiq why SyncOrder 17
  Whether it waits for a retry, for a program:
    lowkiq why SyncOrder 17 --json | jq --exit-status '.kind == "retry later"'
"""
OptionalId: TypeAlias = Annotated[str | None, Parameter(name="ID", help="The id of the job; none: the queue.")]
_SHOW: Final = "show it", "show"
_NEXT: Final[Mapping[str, tuple[str, str]]] = {
    "in the morgue": ("run it again", "requeue"),
    "retry later": ("run it now", "run-now"),
    "due later": ("run it now", "run-now"),
}
"""What helps, by the kind of the answer."""

command: Final = command_app("why", help_=_HELP, epilogue=_EPILOGUE, usage="lowkiq why [OPTIONS] QUEUE [ID]")


@command.default
def tell_why(
    queue: QueueName,
    job_id: OptionalId = None,
    /,
    *,
    late_from: Annotated[
        float | None,
        Parameter(
            name="--late-from",
            help="Without an ID: the lag from which it is late, such as 30s; else the queue's, or 120 s.",
            converter=seconds_above_0,
        ),
    ] = None,
    app: AppOption = None,
    json: Annotated[bool, flag("Write it as JSON; times are Unix seconds.")] = False,
) -> int:
    """Tell it; the exit code."""
    from lowkiq_lambda.operate.presentation.jobs import trace_of, why
    from lowkiq_lambda.operate.presentation.progress_words import progress_words

    loaded = app_of(app)
    named_queue = queue_of(loaded, queue)
    if job_id is None:
        return _tell_of_queue(named_queue, late_from, as_json=json)
    if late_from is not None:
        raise ConfigError("--late-from is of a queue: leave the ID out.")
    situation = named_queue.operate.explain(job_id)
    diagnosis = why(loaded.operate, named_queue.agreed_worker, situation)
    if situation.is_unknown and (trace := trace_of(named_queue.operate, job_id)):
        diagnosis = msgspec.structs.replace(diagnosis, more=(trace, *diagnosis.more))
    if json:
        write_json(diagnosis)
    else:
        upcoming = [] if diagnosis.next_at is None else [f"Next: {utc(diagnosis.next_at)}."]
        progress = [] if situation.progress is None else [f"Progress: {progress_words(situation.progress)}."]
        say(*map(visible, (diagnosis.sentence, *diagnosis.more, *progress, *upcoming)))
        if not situation.is_unknown:
            tenant = None if situation.tenant is None else situation.tenant.tenant
            say(*_commands(named_queue, job_id, diagnosis.kind, tenant, app))
    return FAILED if situation.is_unknown else DONE


def _tell_of_queue(named_queue: NamedQueue, late_from: float | None, *, as_json: bool) -> int:
    from lowkiq_lambda.operate.lateness.words import lines_of

    late = named_queue.operate.why_late(late_from)
    if as_json:
        write_json(late)
    else:
        say(*map(visible, lines_of(late)))
    return FAILED if late.is_late else DONE


def _commands(queue_of_job: NamedQueue, job_id: str, kind: str, tenant: str | None, app: str | None) -> Iterator[str]:
    """What may be run next, as it is typed."""
    queue = [*([] if app is None else ["--app", app]), queue_of_job.name]
    words = [*queue, *(["--"] if job_id.startswith("-") else []), job_id]
    for what, command_name in (_SHOW, *([_NEXT[kind]] if kind in _NEXT else [])):
        yield _typed(what, command_name, *words)
    if kind == "paused":
        yield _typed("end the pause", "resume", *queue)
    elif kind == "job paused":
        yield _typed("end the pause", "resume", *queue, f"--id={job_id}")
    elif kind == "tenant paused" and tenant is not None:
        yield _typed("end the pause", "resume", *queue, f"--tenant={tenant}")
    elif kind == "head blocked":
        worker = queue_of_job.name if queue_of_job.worker is None else queue_of_job.worker.__name__
        yield visible(
            "-> unblock it: on its page of the dashboard, or in Python: "
            f'app.operate({worker}).unblock([{job_id!r}], "retry"); '
            '"skip" sends its oldest payload to the morgue'
        )


def _typed(what: str, *words: str) -> str:
    return visible(f"-> {what}: {shlex.join(['lowkiq', *words])}")
