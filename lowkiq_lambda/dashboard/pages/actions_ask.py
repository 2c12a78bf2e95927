"""The confirmation of an action on jobs. It has an address of its own, and is requested by GET.

A form is redirected to that address, so that the browser can go back to it and reload it. The address holds the
request alone, so the page always shows the current jobs.
"""

from typing import Final
from urllib.parse import parse_qsl, unquote

import msgspec
from starlette.responses import Response

from lowkiq_lambda.dashboard.bulk_action_state import BulkActionRequest, BulkActionState, address_of, pack, unpack
from lowkiq_lambda.dashboard.context import NO_QUEUE, RequestContext
from lowkiq_lambda.dashboard.criteria import criteria
from lowkiq_lambda.dashboard.pages.actions import WORDS, actions_of, for_seconds
from lowkiq_lambda.dashboard.pages.actions_search import FIELDS, wanted_by
from lowkiq_lambda.dashboard.pages.rows import shown_id
from lowkiq_lambda.errors import JobError
from lowkiq_lambda.store.inspect.actions import Actions
from lowkiq_lambda.store.inspect.bulk_actions import BulkAction, count, prepare

COUNTING: Final = 1.0
"""The longest time for counting, in seconds."""
NAMED: Final = 20
"""The page lists so many ids."""
LONGEST_ID: Final = 200
"""Characters of an id on the page."""


def ask(context: RequestContext) -> Response:
    """Redirects to the confirmation; if its address would be too long, responds with the page itself."""
    form = context.form
    scope, _, name = form.get("do", "").partition(":")
    act = next((action for action in WORDS if action == name), None)
    if act is None or scope not in {"picked", "found"}:
        return context.refuse(400, "The dashboard has no such action.")
    back = {field: value for field, value in parse_qsl(form.get("search", "")) if field in FIELDS}
    try:
        chosen = [unquote(job_id, errors="strict") for job_id in form.getlist("ids")] if scope == "picked" else None
    except ValueError as error:
        return context.refuse(400, str(error))
    request = BulkActionRequest(queue=form.get("queue", ""), act=act, back=back, chosen=chosen)
    address = address_of(request)
    return context.redirect("actions/ask", q=address) if address is not None else _shown(context, request)


def show(context: RequestContext) -> Response:
    """The confirmation page; nothing is changed yet."""
    try:
        request = unpack(context.query.get("q", ""), BulkActionRequest)
    except ValueError:
        return context.refuse(400, "The request in this address is damaged. Go back and begin again.")
    return _shown(context, request)


def _shown(context: RequestContext, request: BulkActionRequest) -> Response:
    if request.act not in WORDS:
        return context.refuse(400, "The dashboard has no such action.")
    actions = actions_of(context, request.queue)
    if actions is None:
        return context.refuse(404, NO_QUEUE)
    try:
        action = _prepared(actions, request)
        number, is_all = count(actions, action, for_seconds(COUNTING))
    except (JobError, ValueError) as error:
        return context.refuse(400, str(error))
    if is_all and action.chosen is None and not any(action.filter.conditions):
        action = msgspec.structs.replace(action, total=number)
    state = BulkActionState(
        queue=request.queue, action=action, back=request.back, run=request.run, before=request.changed
    )
    return context.render(
        "actions_ask.html",
        queue=request.queue,
        words=WORDS[request.act],
        back=request.back,
        changed=request.changed,
        is_lost=request.is_lost,
        named=[shown_id(job_id, LONGEST_ID) for job_id in (action.chosen or [])[:NAMED]],
        picked=request.chosen is not None,
        criteria=criteria(action.filter, request.act),
        number=number,
        is_all=is_all,
        state=pack(state),
        # The browser cannot go back to the response of a form.
        at=context.link("actions/ask", q=pack(request.without_chosen)) if context.request.method == "POST" else None,
    )


def _prepared(actions: Actions, request: BulkActionRequest) -> BulkAction:
    if request.chosen is not None:
        return prepare(actions, request.act, chosen=request.chosen)
    return prepare(actions, request.act, filter=wanted_by(request.back, WORDS[request.act].list))
