"""Steps of a bulk action after its confirmation, and its result.

No page is the response to a form, so going back to a page or reloading it changes nothing.
"""

from collections.abc import Mapping
from typing import Final

import msgspec
from starlette.responses import Response

from lowkiq_lambda.base.errors import LowkiqError
from lowkiq_lambda.dashboard.bulk_action import (
    BulkActionResult,
    BulkActionState,
    address_of,
    key_of,
    pack,
    run_steps,
    unpack,
)
from lowkiq_lambda.dashboard.context import NO_QUEUE, RequestContext
from lowkiq_lambda.dashboard.pages.requeue_options import PACED, pace_of, with_pace
from lowkiq_lambda.dashboard.scanning import for_seconds
from lowkiq_lambda.operate.acts.action_runner import ActionRunner
from lowkiq_lambda.operate.acts.action_scripts import ActionName
from lowkiq_lambda.operate.acts.bulk_progress import BulkAction
from lowkiq_lambda.operate.presentation.formatting import visible
from lowkiq_lambda.operate.queue_operations import QueueOperations
from lowkiq_lambda.views.activity import LONGEST_REASON

STEP: Final = 2.0
"""The longest time of a step, in seconds, plus one call of Redis."""
IDS_IN_A_STEP: Final = 5_000
RETRY_FOR: Final = 2.0
_LOOKED_UP: Final = 100
"""Of how many selected ids a result says whether they run."""


class Words(msgspec.Struct, frozen=True, kw_only=True):
    """The texts of an action."""

    title: str
    button: str
    effect: str
    list: str
    is_danger: bool = False


WORDS: Final[Mapping[ActionName, Words]] = {
    "run_now": Words(
        title="Run now",
        button="Run now",
        effect="Ids with a later due time become due now, or so many in a second, and keep their order. Ids that are "
        "due already do not change.",
        list="waiting",
    ),
    "unblock": Words(
        title="Unblock jobs",
        button="Unblock",
        effect="Blocked ids are due now, and their oldest payload is tried as if it had never failed. Other ids do not "
        "change.",
        list="waiting",
    ),
    "unblock_skipping": Words(
        title="Skip the oldest payload of blocked jobs",
        button="Skip the oldest",
        effect="The oldest payload of each blocked id goes to the morgue, and the id goes on with the next. Other ids "
        "do not change.",
        list="waiting",
        is_danger=True,
    ),
    "kill": Words(
        title="Kill failed jobs",
        button="Kill",
        effect="Waiting ids that have failed go to the morgue with their last error. Other ids do not change.",
        list="waiting",
        is_danger=True,
    ),
    "delete_failed": Words(
        title="Delete failed jobs",
        button="Delete failed",
        effect="Waiting ids that have failed are deleted with all their payloads.",
        list="waiting",
        is_danger=True,
    ),
    "delete": Words(
        title="Delete jobs",
        button="Delete",
        effect="These waiting ids are deleted with all their payloads.",
        list="waiting",
        is_danger=True,
    ),
    "requeue": Words(
        title="Requeue jobs",
        button="Requeue",
        effect="Ids leave the morgue and are due now, with all their retries again. A cursor is forgotten where other "
        "payloads of the id wait.",
        list="morgue",
    ),
    "delete_dead": Words(
        title="Delete from the morgue",
        button="Delete",
        effect="These ids are deleted from the morgue with all their payloads.",
        list="morgue",
        is_danger=True,
    ),
}


def step(context: RequestContext) -> Response:
    """Runs a step of an action; responds with the progress, or redirects to the next confirmation or the result."""
    key = key_of(context)
    try:
        state = unpack(key, context.form.get("action_state", ""), BulkActionState)
    except ValueError:
        return context.refuse(400, "The action's data is damaged. Go back and begin again.")
    queue = queue_of(context, state.queue)
    if queue is None:
        return context.refuse(404, NO_QUEUE)
    reason = context.form.get("reason", state.reason).strip()[:LONGEST_REASON]
    if wrong := _unconfirmed(state, context.form.get("typed_queue", "").strip(), reason):
        return context.refuse(400, f"Nothing was changed. {wrong}")
    state = msgspec.structs.replace(state, is_large=False, lacks_reason="", reason=reason)
    has_time, most = for_seconds(STEP), state.action.handled + IDS_IN_A_STEP

    def is_enough(action: BulkAction) -> bool:
        # One more call for an action that looks complete: it finds the end.
        return (action.handled >= most or not has_time()) and (bool(action.pending) or action.handled != action.total)

    try:
        state, failure = run_steps(context, queue.runner, _paced(context, queue.runner, state), is_enough)
    except ValueError as error:
        return context.refuse(400, str(error))
    outcome = _outcome(context, state) if state.action.is_done else None
    path, address = ("actions/done", pack(key, outcome)) if outcome else ("actions/ask", _asking_again(key, state))
    if not context.is_partial:
        return context.redirect(path, q=address)
    answer = context.render(
        "actions_progress.html",
        queue=state.queue,
        words=WORDS[state.action.act],
        back=state.back,
        action=state.action,
        changed=state.changed,
        outcome=outcome,
        failure=failure and str(failure),
        state=pack(key, state),
    )
    answer.headers["hx-replace-url"] = context.link(path, q=address)
    return answer


def _unconfirmed(state: BulkActionState, typed_queue: str, reason: str) -> str:
    """What the form lacks, in a sentence; empty if the action may begin."""
    shown_name = visible(state.queue)
    if state.is_large and typed_queue not in {state.queue, shown_name}:
        return f"Type the name of the queue to confirm: {shown_name}."
    return "" if reason else state.lacks_reason


def _paced(context: RequestContext, runner: ActionRunner, state: BulkActionState) -> BulkActionState:
    """The action on the terms of the form, which count from its first step on. Raises ValueError, BackendError."""
    if state.action.begun or state.action.act not in PACED:
        return state
    pace = pace_of(context.form, state.pace)
    return msgspec.structs.replace(state, pace=pace, action=with_pace(runner, state.action, pace))


def done(context: RequestContext) -> Response:
    """The result of an action."""
    try:
        outcome = unpack(key_of(context), context.query.get("q", ""), BulkActionResult)
    except ValueError:
        return context.refuse(400, "The result in this address is damaged.")
    words = WORDS[outcome.act]
    return context.render("actions_done.html", queue=outcome.queue, words=words, back=outcome.back, outcome=outcome)


def _asking_again(key: bytes, state: BulkActionState) -> str:
    """The confirmation for the rest, for a page that is reloaded half-way or has no scripts."""
    return address_of(key, state.request) or pack(key, state.request.without_chosen)


def _outcome(context: RequestContext, state: BulkActionState) -> BulkActionResult:
    action, ids = state.action, state.action.chosen
    # With a filter the expected number is unknown.
    is_short = not action.changed or (ids is None and action.changed < action.total and not action.filter.narrows)
    left = len(ids) - action.changed if ids is not None and action.changed else 0
    return BulkActionResult(
        queue=state.queue,
        act=action.act,
        back=state.back,
        changed=state.changed,
        action_id=action.result.action_id,
        last_due=action.result.last_due,
        undoable=action.result.undoable,
        paused=action.paused,
        left=max(left - action.paused, 0),
        running=_running(context, state) if is_short or left > 0 else 0,
        is_short=is_short and not state.before,
    )


def _running(context: RequestContext, state: BulkActionState) -> int:
    """How many of the selected ids run, if that is why they did not change: as long as they do, nothing touches them.

    A job with a cursor waits between its turns, so it may have begun the next one since the question.
    """
    worker, ids = context.worker_named(state.queue), state.action.chosen
    if worker is None or not ids or WORDS[state.action.act].list != "waiting":
        return 0
    try:
        return len(context.app.operate(worker).in_flight.fetch(ids[:_LOOKED_UP]))
    except LowkiqError:
        # The changes are reported in any case.
        return 0


def queue_of(context: RequestContext, name: str) -> QueueOperations | None:
    """A queue, for somebody who waits for the response and can try again; None if the app has no such queue."""
    worker = context.worker_named(name)
    return None if worker is None else context.app.operate(worker).retrying(RETRY_FOR)
