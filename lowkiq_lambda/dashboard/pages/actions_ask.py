"""Whether an action on jobs is meant: the question has an address of its own, and is asked by GET.

What a form asks for is sent on to that address, so that the browser may come back to it and load it again. An address
holds what was asked for, and nothing that was looked at: whoever opens it, from wherever, is shown what is there now.
"""

from typing import Final, get_args
from urllib.parse import parse_qsl, unquote

import msgspec
from starlette.responses import Response

from lowkiq_lambda.dashboard.criteria import criteria
from lowkiq_lambda.dashboard.pages.actions import WORDS, actions_of, for_seconds
from lowkiq_lambda.dashboard.pages.actions_search import FIELDS, wanted_by
from lowkiq_lambda.dashboard.pages.rows import shown_id
from lowkiq_lambda.dashboard.tickets import Question, Ticket, address_of, packed, unpacked
from lowkiq_lambda.dashboard.visit import Visit
from lowkiq_lambda.errors import JobError
from lowkiq_lambda.store.inspect.actions import ActionName, Actions
from lowkiq_lambda.store.inspect.bulk_actions import BulkAction, count, prepare

COUNTING: Final = 1.0
"""Seconds that are spent on counting before somebody is asked."""
NAMED: Final = 20
"""How many ids are named in the question."""
LONGEST_ID: Final = 200
"""Characters of an id that are."""


def ask(visit: Visit) -> Response:
    """Goes to the question's address; where that would be too long, answers with the page itself."""
    form = visit.form
    scope, _, name = form.get("do", "").partition(":")
    act = next((one for one in get_args(ActionName) if one == name), None)
    if act is None or scope not in {"picked", "found"}:
        return visit.refuse(400, "There is no such action.")
    back = {field: value for field, value in parse_qsl(form.get("search", "")) if field in FIELDS}
    try:
        chosen = [unquote(one, errors="strict") for one in form.getlist("ids")] if scope == "picked" else None
    except ValueError as error:
        return visit.refuse(400, str(error))
    question = Question(queue=form.get("queue", ""), act=act, back=back, chosen=chosen)
    address = address_of(question)
    return visit.go("actions/ask", q=address) if address is not None else _shown(visit, question)


def show(visit: Visit) -> Response:
    """What would be done, to how many; nothing is done yet."""
    try:
        question = unpacked(visit.query.get("q", ""), Question)
    except ValueError:
        return visit.refuse(400, "What was to be done cannot be read: go back, and begin again.")
    return _shown(visit, question)


def _shown(visit: Visit, question: Question) -> Response:
    actions = actions_of(visit, question.queue)
    if actions is None:
        return visit.refuse(404, "There is no queue of that name.")
    try:
        sweep = _prepared(actions, question)
        number, is_all = count(actions, sweep, for_seconds(COUNTING))
    except (JobError, ValueError) as error:
        return visit.refuse(400, str(error))
    if is_all and sweep.chosen is None and not any(sweep.filter.sifts):
        sweep = msgspec.structs.replace(sweep, total=number)
    ticket = Ticket(queue=question.queue, sweep=sweep, back=question.back, run=question.run, before=question.changed)
    return visit.page(
        "actions_ask.html",
        queue=question.queue,
        words=WORDS[question.act],
        back=question.back,
        changed=question.changed,
        is_lost=question.is_lost,
        named=[shown_id(one, LONGEST_ID) for one in (sweep.chosen or [])[:NAMED]],
        picked=question.chosen is not None,
        found_by=criteria(sweep.filter, question.act),
        number=number,
        is_all=is_all,
        ticket=packed(ticket),
        # The browser cannot come back to a page that is an answer to a form.
        at=visit.to("actions/ask", q=packed(question.without_chosen)) if visit.request.method == "POST" else None,
    )


def _prepared(actions: Actions, question: Question) -> BulkAction:
    if question.chosen is not None:
        return prepare(actions, question.act, chosen=question.chosen)
    return prepare(actions, question.act, filter=wanted_by(question.back, WORDS[question.act].list))
