"""Undoes an action by its id, in whichever queue it was done, with a line in the activity."""

from lowkiq_lambda.dashboard import activity
from lowkiq_lambda.dashboard.context import RequestContext
from lowkiq_lambda.dashboard.editing import NOT_ALLOWED
from lowkiq_lambda.operate.acts.undoing import EDITS, Undone, undoable_in_all


def undo_action(context: RequestContext, action_id: str) -> tuple[str, Undone]:
    """Undo it; the name of its queue, and the result. Raises ValueError if there is no such action, BackendError.

    And PermissionError if it is an edit, and the visitor may not edit.
    """
    listed = undoable_in_all(context.app.core).items()
    alike = ((name, action) for name, actions in listed for action in actions if action.id == action_id)
    name, action = next(alike, ("", None))
    worker = context.worker_named(name)
    if worker is None or action is None:
        raise ValueError("This action cannot be undone: it is older than ten minutes, or it is undone already.")
    if action.act in EDITS and not (context.visitor and context.visitor.may_edit):
        raise PermissionError(NOT_ALLOWED)
    undone = context.app.operate(worker).undo(action_id)
    activity.note(context, "undo", name, f"{action.act} {action_id}", undone.restored, action_id=undone.action_id)
    return name, undone
