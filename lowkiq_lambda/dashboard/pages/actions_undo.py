"""Takes back an action, and its result."""

from collections.abc import Mapping

import msgspec
from starlette.responses import Response

from lowkiq_lambda.dashboard.bulk_action import key_of, pack, unpack
from lowkiq_lambda.dashboard.context import RequestContext
from lowkiq_lambda.dashboard.undoing import undo_action


class UndoOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """The result of an undo, for an address."""

    queue: str
    restored: int
    skipped: Mapping[str, int]
    action_id: str


def act(context: RequestContext) -> Response:
    """Undo; a redirect to the result."""
    try:
        queue, undone = undo_action(context, context.form.get("action_id", ""))
    except ValueError as error:
        return context.refuse(400, str(error))
    except PermissionError as error:
        return context.refuse(403, str(error))
    outcome = UndoOutcome(queue=queue, restored=undone.restored, skipped=undone.skipped, action_id=undone.action_id)
    return context.redirect("actions/undone", q=pack(key_of(context), outcome))


def done(context: RequestContext) -> Response:
    """The result."""
    try:
        outcome = unpack(key_of(context), context.query.get("q", ""), UndoOutcome)
    except ValueError:
        return context.refuse(400, "The result in this address is damaged.")
    return context.render("actions_undone.html", queue=outcome.queue, outcome=outcome)
