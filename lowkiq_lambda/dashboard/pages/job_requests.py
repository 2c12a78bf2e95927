"""Stop a job for good, pause it, or resume it: on the job's page, in every state of the job."""

from http import HTTPStatus
from typing import Final

from starlette.responses import Response

from lowkiq_lambda.base.errors import JobError, RequestsFull
from lowkiq_lambda.dashboard import activity, durations
from lowkiq_lambda.dashboard.context import NO_ACTION, RequestContext
from lowkiq_lambda.dashboard.pages.parts import chosen_worker, no_queue
from lowkiq_lambda.dashboard.pages.rows import shown_id
from lowkiq_lambda.jobs.job import id_text
from lowkiq_lambda.operate.acts.requesting import stops_at
from lowkiq_lambda.operate.presentation.formatting import selected
from lowkiq_lambda.operate.presentation.requests import run_words
from lowkiq_lambda.operate.queue_operations import QueueOperations
from lowkiq_lambda.views.requests import Requested

_ACTIONS: Final = frozenset({"cancel", "pause", "resume", "forget_keys"})


def ask(context: RequestContext) -> Response:
    """The confirmation page; nothing is changed yet."""
    query, worker = context.query, chosen_worker(context)
    if worker is None:
        return no_queue(context)
    do, job_id = query.get("do", ""), query.get("id", "")
    if do not in _ACTIONS:
        return context.refuse(400, NO_ACTION)
    try:
        situation = context.app.operate(worker).explain(job_id)
    except JobError as error:
        return context.refuse(400, f"Invalid id: {error}.")
    stop = stops_at(worker, cancels=do == "cancel")
    return context.render(
        "actions_job.html",
        queue=worker.queue_name,
        do=do,
        id=job_id,
        name=shown_id(job_id),
        situation=situation,
        stops_at=stop,
        runs=run_words(stop),
        **durations.asked(query),
    )


def act(context: RequestContext) -> Response:
    """Runs the action, and redirects to the job's page, which tells of the request while it is kept."""
    form, worker = context.form, context.worker_named(context.form.get("queue", ""))
    if worker is None:
        return no_queue(context)
    do, job_id = form.get("do", ""), form.get("id", "")
    if do not in _ACTIONS:
        return context.refuse(400, NO_ACTION)
    if do == "pause" and durations.wrong_length(form):
        again = durations.again(form)
        return context.redirect("actions/job", queue=worker.queue_name, do=do, id=job_id, **again)
    try:
        changed, action_id = _act(context, context.app.operate(worker), do, id_text(job_id))
    except RequestsFull as error:
        return context.refuse(HTTPStatus.CONFLICT, str(error))
    except ValueError as error:
        wrong = f"Invalid id: {error}." if isinstance(error, JobError) else durations.WRONG_SECONDS
        return context.refuse(400, wrong)
    action = f"{do}_job" if do in {"pause", "resume"} else do.replace("_", " ")
    activity.note(context, action, worker.queue_name, selected([job_id]), changed, action_id=action_id)
    return context.redirect("job", queue=worker.queue_name, id=job_id)


def _act(context: RequestContext, queue: QueueOperations, do: str, job_id: str) -> tuple[int, str]:
    """How many ids, or keys, it changed, and the id of an action that can be undone."""
    if do == "forget_keys":
        return queue.forget_keys(ids=[job_id]), ""
    answer = _request(context, queue, do, job_id)
    return len(answer.at_once) + len(answer.in_flight), answer.action_id


def _request(context: RequestContext, queue: QueueOperations, do: str, job_id: str) -> Requested:
    if do == "cancel":
        terms = {name: context.form.get(name) == "1" for name in ("kill", "forget_keys")}
        return queue.cancel([job_id], **terms, by=context.visitor_name)
    if do == "pause":
        return queue.pause_jobs([job_id], durations.pause_seconds(context.form), by=context.visitor_name)
    return queue.resume_jobs([job_id])
