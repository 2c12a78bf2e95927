"""`lowkiq why`: the reason why a job runs, or does not."""

import shlex
from collections.abc import Iterator, Mapping
from typing import Annotated, Final

import msgspec

from lowkiq_lambda.cli.codes import DONE, FAILED
from lowkiq_lambda.cli.output import say, write_json
from lowkiq_lambda.cli.parts import command_app, flag
from lowkiq_lambda.cli.queues import AppOption, NamedQueue, QueueName, app_of, queue_of
from lowkiq_lambda.cli.show import JobId
from lowkiq_lambda.operate.presentation.formatting import utc, visible
from lowkiq_lambda.operate.presentation.jobs import trace_of, why

_HELP: Final = """
Explain in a sentence why the job of an ID in QUEUE runs, or does not run yet; add the details, and when it goes on.

The page of the job on the dashboard has the same text. An ID that begins with a hyphen comes after --.
"""
_EPILOGUE: Final = """
EXIT CODES
  0  It is explained.
  1  The queue has no job of this id.
  2  The command line, the settings or the app cannot work.
  3  Redis cannot be reached.

EXAMPLES
  A job that seems to be stuck:
    lowkiq why SyncOrder 17
  Whether it waits for a retry, for a program:
    lowkiq why SyncOrder 17 --json | jq --exit-status '.kind == "retry later"'
"""
_SHOW: Final = "show it", "show"
_NEXT: Final[Mapping[str, tuple[str, str]]] = {
    "in the morgue": ("run it again", "requeue"),
    "retry later": ("run it now", "run-now"),
    "due later": ("run it now", "run-now"),
}
"""What helps, by the kind of the answer."""

command: Final = command_app("why", help_=_HELP, epilogue=_EPILOGUE, usage="lowkiq why [OPTIONS] QUEUE ID")


@command.default
def tell_why(
    queue: QueueName,
    job_id: JobId,
    /,
    *,
    app: AppOption = None,
    json: Annotated[bool, flag("Write kind, sentence, next_at (Unix seconds) and more as JSON.")] = False,
) -> int:
    """Tell it; the exit code."""
    loaded = app_of(app)
    named_queue = queue_of(loaded, queue)
    situation = named_queue.operate.explain(job_id)
    diagnosis = why(loaded.operate, named_queue.agreed_worker, situation)
    if situation.is_unknown and (trace := trace_of(named_queue.operate, job_id)):
        diagnosis = msgspec.structs.replace(diagnosis, more=(trace, *diagnosis.more))
    if json:
        write_json(diagnosis)
    else:
        upcoming = [] if diagnosis.next_at is None else [f"Next: {utc(diagnosis.next_at)}."]
        say(*map(visible, (diagnosis.sentence, *diagnosis.more, *upcoming)))
        if not situation.is_unknown:
            tenant = None if situation.tenant is None else situation.tenant.tenant
            say(*_commands(named_queue, job_id, diagnosis.kind, tenant, app))
    return FAILED if situation.is_unknown else DONE


def _commands(queue_of_job: NamedQueue, job_id: str, kind: str, tenant: str | None, app: str | None) -> Iterator[str]:
    """What may be run next, as it is typed."""
    queue = [*([] if app is None else ["--app", app]), queue_of_job.name]
    words = [*queue, *(["--"] if job_id.startswith("-") else []), job_id]
    for what, command_name in (_SHOW, *([_NEXT[kind]] if kind in _NEXT else [])):
        yield _typed(what, command_name, *words)
    if kind == "paused":
        yield _typed("end the pause", "resume", *queue)
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
