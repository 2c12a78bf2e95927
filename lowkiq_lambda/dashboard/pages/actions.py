"""What operators do to jobs, once they have said that they mean it: a step at a time, and what became of it.

No page is an answer to a form: the browser may come back to each, and load it again, and nothing is done by that.
"""

import time
from collections.abc import Callable, Mapping
from typing import Final

import msgspec
from starlette.responses import Response

from lowkiq_lambda.dashboard.sweeping import go_on
from lowkiq_lambda.dashboard.tickets import Outcome, Ticket, address_of, packed, unpacked
from lowkiq_lambda.dashboard.visit import Visit
from lowkiq_lambda.store.inspect.actions import ActionName, Actions
from lowkiq_lambda.store.inspect.bulk_actions import BulkAction

STEP: Final = 2.0
"""Seconds that a step takes at most, and a call more."""
IDS_IN_A_STEP: Final = 5_000
PATIENCE: Final = 2.0


class Words(msgspec.Struct, frozen=True, kw_only=True):
    """How an action is told."""

    title: str
    button: str
    what: str
    list: str
    is_danger: bool = False


WORDS: Final[Mapping[ActionName, Words]] = {
    "expedite": Words(
        title="Perform now",
        button="Perform now",
        what="Ids that wait for a later time become due, in the order that they have; what is due already stays so.",
        list="waiting",
    ),
    "kill": Words(
        title="Send failed jobs to the morgue",
        button="Send to the morgue",
        what="Ids that wait and have failed go to the morgue, with their last error. Others are left as they are.",
        list="waiting",
        is_danger=True,
    ),
    "delete_failed": Words(
        title="Delete failed jobs",
        button="Delete failed",
        what="Ids that wait and have failed are deleted, with all their payloads. There is no way back.",
        list="waiting",
        is_danger=True,
    ),
    "delete": Words(
        title="Delete jobs",
        button="Delete",
        what="What waits under these ids is deleted, with all payloads. There is no way back.",
        list="waiting",
        is_danger=True,
    ),
    "requeue": Words(
        title="Put back into the queue",
        button="Put back",
        what="Ids leave the morgue and are due now, with all their retries before them.",
        list="morgue",
    ),
    "delete_buried": Words(
        title="Delete from the morgue",
        button="Delete",
        what="What lies in the morgue under these ids is deleted, with all payloads. There is no way back.",
        list="morgue",
        is_danger=True,
    ),
}


def step(visit: Visit) -> Response:
    """Goes on with an action for a moment: tells a page how far it is, or sends the browser where that is told."""
    try:
        ticket = unpacked(visit.form.get("ticket", ""), Ticket)
    except ValueError:
        return visit.refuse(400, "What was to be done cannot be read: go back, and begin again.")
    actions = actions_of(visit, ticket.queue)
    if actions is None:
        return visit.refuse(404, "There is no queue of that name.")
    has_time, most = for_seconds(STEP), ticket.sweep.handled + IDS_IN_A_STEP

    def is_enough(sweep: BulkAction) -> bool:
        # What looks complete is given the one call more that finds that it is.
        return (sweep.handled >= most or not has_time()) and (bool(sweep.pending) or sweep.handled != sweep.total)

    try:
        ticket, trouble = go_on(visit, actions, ticket, is_enough)
    except ValueError as error:
        return visit.refuse(400, str(error))
    outcome = _outcome(ticket) if ticket.sweep.is_done else None
    path, address = ("actions/done", packed(outcome)) if outcome else ("actions/ask", _asking_again(ticket))
    if not visit.is_partial:
        return visit.go(path, q=address)
    answer = visit.page(
        "actions_sweep.html",
        queue=ticket.queue,
        words=WORDS[ticket.sweep.act],
        back=ticket.back,
        sweep=ticket.sweep,
        changed=ticket.changed,
        outcome=outcome,
        trouble=trouble and str(trouble),
        ticket=packed(ticket),
    )
    answer.headers["hx-replace-url"] = visit.to(path, q=address)
    return answer


def done(visit: Visit) -> Response:
    """What became of an action that has come to its end."""
    try:
        outcome = unpacked(visit.query.get("q", ""), Outcome)
    except ValueError:
        return visit.refuse(400, "What was done cannot be read.")
    words = WORDS[outcome.act]
    return visit.page("actions_done.html", queue=outcome.queue, words=words, back=outcome.back, outcome=outcome)


def _asking_again(ticket: Ticket) -> str:
    """For a page that is loaded again half-way, or has no scripts that would go on."""
    return address_of(ticket.question) or packed(ticket.question.without_chosen)


def _outcome(ticket: Ticket) -> Outcome:
    sweep, chosen = ticket.sweep, ticket.sweep.chosen
    # Of what is filter_ids nobody knows what was to be expected.
    is_short = not sweep.changed or (chosen is None and sweep.changed < sweep.total and not any(sweep.filter.sifts))
    left = len(chosen) - sweep.changed if chosen is not None and sweep.changed else 0
    return Outcome(
        queue=ticket.queue,
        act=sweep.act,
        back=ticket.back,
        changed=ticket.changed,
        left=max(left, 0),
        is_short=is_short and not ticket.before,
    )


def actions_of(visit: Visit, queue: str) -> Actions | None:
    """What may be done to the queue; None where there is no such queue."""
    worker = next((worker for worker in visit.app.workers if worker.queue_name == queue), None)
    if worker is None:
        return None
    actions = visit.app.actions(worker)
    # Whoever asks waits for the answer, and can ask again.
    actions.reader = actions.reader._replace(patience=min(PATIENCE, actions.reader.patience))
    return actions


def for_seconds(seconds: float) -> Callable[[], bool]:
    """Whether they are not over yet."""
    ends_at = time.monotonic() + seconds
    return lambda: time.monotonic() < ends_at
