"""The confirmation of an action on jobs. It has an address of its own, and is requested by GET.

A form is redirected to that address, so that the browser can go back to it and reload it. The address holds the
request alone, so the page always shows the current jobs.
"""

from typing import Final
from urllib.parse import parse_qsl, unquote

import msgspec
from starlette.responses import Response

from lowkiq_lambda.base.errors import JobError
from lowkiq_lambda.base.fingerprint import fingerprint
from lowkiq_lambda.dashboard.bulk_action import (
    BulkActionRequest,
    BulkActionState,
    address_of,
    key_of,
    pack,
    unpack,
)
from lowkiq_lambda.dashboard.context import NO_ACTION, NO_QUEUE, RequestContext
from lowkiq_lambda.dashboard.criteria import criteria
from lowkiq_lambda.dashboard.pages.actions import WORDS, queue_of
from lowkiq_lambda.dashboard.pages.filters import FIELDS, wanted_by
from lowkiq_lambda.dashboard.pages.requeue_options import ORDER_WORDS, PACED, DryRun, pace_of, with_pace
from lowkiq_lambda.dashboard.pages.requeue_options import dry_run as requeue_dry_run
from lowkiq_lambda.dashboard.pages.rows import shown_id
from lowkiq_lambda.dashboard.payload_search import check_payload_search
from lowkiq_lambda.dashboard.scanning import for_seconds
from lowkiq_lambda.operate.acts.action_runner import ActionRunner
from lowkiq_lambda.operate.acts.action_scripts import UNDOABLE_IDS
from lowkiq_lambda.operate.acts.bulk_actions import count, first_ids, prepare
from lowkiq_lambda.operate.acts.bulk_progress import BulkAction
from lowkiq_lambda.operate.presentation.requeue_words import due_total
from lowkiq_lambda.views.activity import LONGEST_REASON, lacks_reason

COUNTING: Final = 1.0
"""The longest time for counting, in seconds."""
NAMED: Final = 20
"""The page lists so many ids."""
LARGE: Final = 1_000
"""For more ids than that an operator types the queue's name before a dangerous action begins."""
LONGEST_ID: Final = 200
"""Characters of an id on the page."""


def ask(context: RequestContext) -> Response:
    """Redirects to the confirmation; if its address would be too long, responds with the page itself."""
    form = context.form
    scope, _, name = form.get("do", "").partition(":")
    act = next((action for action in WORDS if action == name), None)
    if act is None or scope not in {"picked", "found"}:
        return context.refuse(400, NO_ACTION)
    back = {field: value for field, value in parse_qsl(form.get("search", "")) if field in FIELDS}
    try:
        picked = [unquote(job_id, errors="strict") for job_id in form.getlist("ids")] if scope == "picked" else None
    except ValueError as error:
        return context.refuse(400, str(error))
    request = BulkActionRequest(queue=form.get("queue", ""), act=act, back=back, chosen=picked)
    key = key_of(context)
    address = address_of(key, request)
    return context.redirect("actions/ask", q=address) if address is not None else _shown(context, key, request)


def show(context: RequestContext) -> Response:
    """The confirmation page; nothing is changed yet."""
    key = key_of(context)
    try:
        request = unpack(key, context.query.get("q", ""), BulkActionRequest)
    except ValueError:
        return context.refuse(400, "The request in this address is damaged. Go back and begin again.")
    return _shown(context, key, request)


def dry_run(context: RequestContext) -> Response:
    """Leads to the confirmation with what would become of the first ids; nothing is changed."""
    key, form = key_of(context), context.form
    try:
        state = unpack(key, form.get("action_state", ""), BulkActionState)
    except ValueError:
        return context.refuse(400, "The action's data is damaged. Go back and begin again.")
    try:
        pace = pace_of(form, state.pace)
    except ValueError as error:
        return context.refuse(400, str(error))
    reason = form.get("reason", "").strip()[:LONGEST_REASON]
    request = msgspec.structs.replace(state.request, pace=pace, reason=reason, is_dry_run=True)
    address = address_of(key, request)
    return context.redirect("actions/ask", q=address) if address is not None else _shown(context, key, request)


def _shown(context: RequestContext, key: bytes, request: BulkActionRequest) -> Response:
    if request.act not in WORDS:
        return context.refuse(400, NO_ACTION)
    queue = queue_of(context, request.queue)
    if queue is None:
        return context.refuse(404, NO_QUEUE)
    try:
        action = _prepared(context, queue.runner, request)
        has_time = for_seconds(COUNTING)
        counted = number, is_all = count(queue.runner, action, has_time)
        names = first_ids(queue.runner, action, NAMED, has_time) if number else []
        tried = _tried(queue.runner, action, request, names, counted)
    except (JobError, ValueError) as error:
        return context.refuse(400, str(error))
    if is_all and action.chosen is None and not action.filter.narrows:
        action = msgspec.structs.replace(action, total=number)
    words = WORDS[request.act]
    state = BulkActionState(
        queue=request.queue,
        action=action,
        back=request.back,
        action_id=request.action_id,
        before=request.changed,
        is_large=words.is_danger and (number > LARGE or not is_all),
        lacks_reason=lacks_reason("", number, is_all=is_all),
        reason=request.reason,
        pace=request.pace,
    )
    return context.render(
        "actions_ask.html",
        queue=request.queue,
        words=words,
        back=request.back,
        changed=request.changed,
        beyond_undo=action.beyond_undo,
        undoable_ids=UNDOABLE_IDS,
        is_lost=request.is_lost,
        named=[shown_id(job_id, LONGEST_ID) for job_id in names],
        picked=request.chosen is not None,
        criteria=criteria(action.filter, request.act, _alike(context, request, action.filter.fingerprint)),
        number=number,
        is_all=is_all,
        is_large=state.is_large,
        reason=request.reason,
        lacks_reason=state.lacks_reason,
        pace=request.pace,
        orders=ORDER_WORDS if request.act == "requeue" else {},
        has_rate=request.act in PACED,
        tried=tried,
        state=pack(key, state),
        # The browser cannot go back to the response of a form.
        at=context.link("actions/ask", q=pack(key, request.without_chosen))
        if context.request.method == "POST"
        else None,
    )


def _tried(
    runner: ActionRunner, action: BulkAction, request: BulkActionRequest, names: list[str], counted: tuple[int, bool]
) -> DryRun | None:
    if not request.is_dry_run or request.act not in PACED or not names:
        return None
    paced, (number, is_all) = with_pace(runner, action, request.pace), counted
    if request.act == "run_now":
        return DryRun((), due_total(number, paced.last_due(number), is_all=is_all))
    return requeue_dry_run(runner, paced, names, LONGEST_ID)


def _alike(context: RequestContext, request: BulkActionRequest, digits: str) -> str:
    """What errors of the fingerprint share, as a job tells that has one: digits say nothing to people."""
    worker = context.worker_named(request.queue) if digits else None
    if worker is None:
        return ""
    queue = context.app.operate(worker).glimpse()
    listed = queue.morgue if WORDS[request.act].list == "morgue" else queue.waiting
    return next((fingerprint(job.error or "").words for job in listed.search(limit=1, fingerprint=digits)), "")


def _prepared(context: RequestContext, runner: ActionRunner, request: BulkActionRequest) -> BulkAction:
    if request.chosen is not None:
        return prepare(runner, request.act, chosen_ids=request.chosen)
    id_filter = wanted_by(request.back, WORDS[request.act].list)
    check_payload_search(context, id_filter.payload)
    return prepare(runner, request.act, filter=id_filter)
