"""What operators do to jobs: first asked whether they mean it, then done a step at a time."""

import time
from collections.abc import Callable, Mapping
from typing import Final, get_args
from urllib.parse import parse_qsl, unquote

import msgspec
from starlette.responses import Response

from lowkiq_lambda.dashboard.pages.actions_search import FIELDS, wanted_by
from lowkiq_lambda.dashboard.pages.rows import shown_id
from lowkiq_lambda.dashboard.sweeping import go_on
from lowkiq_lambda.dashboard.tickets import Ticket, packed, unpacked
from lowkiq_lambda.dashboard.visit import Visit
from lowkiq_lambda.errors import JobError
from lowkiq_lambda.store.actions import Act, Actions
from lowkiq_lambda.store.filters import ALL
from lowkiq_lambda.store.sweeps import Sweep, count, prepare

STEP: Final = 2.0
"""Seconds that a step takes at most, and a call more."""
COUNTING: Final = 1.0
"""Seconds that are spent on counting before somebody is asked."""
IDS_IN_A_STEP: Final = 5_000
PATIENCE: Final = 2.0
NAMED: Final = 20
"""How many ids are named to who is asked."""
LONGEST_ID: Final = 200
"""Characters of an id that are."""


class Words(msgspec.Struct, frozen=True, kw_only=True):
    """How an action is told."""

    title: str
    button: str
    what: str
    list: str
    is_danger: bool = False


WORDS: Final[Mapping[Act, Words]] = {
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


def ask(visit: Visit) -> Response:
    """What would be done, to how many; nothing is done yet."""
    form, queue = visit.form, visit.form.get("queue", "")
    actions = actions_of(visit, queue)
    if actions is None:
        return visit.refuse(404, "There is no queue of that name.")
    scope, _, name = form.get("do", "").partition(":")
    act = next((one for one in get_args(Act) if one == name), None)
    if act is None or scope not in {"picked", "found"}:
        return visit.refuse(400, "There is no such action.")
    back = {field: value for field, value in parse_qsl(form.get("search", "")) if field in FIELDS}
    try:
        if scope == "picked":
            sweep = prepare(actions, act, chosen=[unquote(one, errors="strict") for one in form.getlist("ids")])
        else:
            sweep = prepare(actions, act, filter=wanted_by(back, WORDS[act].list))
        number, is_all = count(actions, sweep, _for(COUNTING))
    except (JobError, ValueError) as error:
        return visit.refuse(400, str(error))
    if is_all and sweep.chosen is None and not any(sweep.filter.sifts):
        sweep = msgspec.structs.replace(sweep, total=number)
    return visit.page(
        "actions_ask.html",
        queue=queue,
        words=WORDS[act],
        back=back,
        named=[shown_id(one, LONGEST_ID) for one in (sweep.chosen or [])[:NAMED]],
        picked=scope == "picked",
        is_all_of_list=sweep.filter == ALL,
        number=number,
        is_all=is_all,
        ticket=packed(Ticket(queue=queue, sweep=sweep, back=back)),
    )


def step(visit: Visit) -> Response:
    """Goes on with an action for a moment, and tells how far it is."""
    try:
        ticket = unpacked(visit.form.get("ticket", ""))
    except ValueError:
        return visit.refuse(400, "What was to be done cannot be read: go back, and begin again.")
    actions = actions_of(visit, ticket.queue)
    if actions is None:
        return visit.refuse(404, "There is no queue of that name.")
    has_time, most = _for(STEP), ticket.sweep.handled + IDS_IN_A_STEP

    def is_enough(sweep: Sweep) -> bool:
        # What looks complete is given the one call more that finds that it is.
        return (sweep.handled >= most or not has_time()) and (bool(sweep.pending) or sweep.handled != sweep.total)

    try:
        ticket, trouble = go_on(visit, actions, ticket, is_enough)
    except ValueError as error:
        return visit.refuse(400, str(error))
    return visit.page(
        "actions_sweep.html" if visit.is_partial else "actions_page.html",
        queue=ticket.queue,
        words=WORDS[ticket.sweep.act],
        back=ticket.back,
        sweep=ticket.sweep,
        is_short=_is_short(ticket.sweep),
        trouble=trouble and str(trouble),
        ticket=packed(ticket),
    )


def _is_short(sweep: Sweep) -> bool:
    """Whether less was changed than was to be expected; of what is sifted nobody knows."""
    if sweep.is_done and not sweep.changed:
        return True
    expected = sweep.total if sweep.is_done else sweep.handled
    return sweep.chosen is None and sweep.changed < expected and not any(sweep.filter.sifts)


def actions_of(visit: Visit, queue: str) -> Actions | None:
    """What may be done to the queue; None where there is no such queue."""
    worker = next((worker for worker in visit.app.workers if worker.queue_name == queue), None)
    if worker is None:
        return None
    actions = visit.app.actions(worker)
    # Whoever asks waits for the answer, and can ask again.
    actions.source = actions.source._replace(patience=min(PATIENCE, actions.source.patience))
    return actions


def _for(seconds: float) -> Callable[[], bool]:
    ends_at = time.monotonic() + seconds
    return lambda: time.monotonic() < ends_at
