"""Runs the steps of a bulk action within one request."""

from collections.abc import Callable
from typing import Final, NamedTuple

import msgspec

from lowkiq_lambda.base.errors import BackendError
from lowkiq_lambda.dashboard import audit
from lowkiq_lambda.dashboard.bulk_action_state import BulkActionState, packed_size
from lowkiq_lambda.dashboard.context import RequestContext
from lowkiq_lambda.operate.inspect.actions import Actions
from lowkiq_lambda.operate.inspect.bulk_actions import BulkAction, steps
from lowkiq_lambda.operate.inspect.past_actions import signing_key

LARGEST_STATE: Final = 512 * 1024
"""Characters of a packed state; a request body may have twice as many."""
_RETRY_FOR: Final = 2.0


class StepProgress(NamedTuple):
    """The state after the steps. `failure`: the error of Redis that stopped them, or None."""

    state: BulkActionState
    failure: BackendError | None


def key_of(context: RequestContext) -> bytes:
    """What signs the states of actions. Raises BackendError."""
    return signing_key(context.app.core.backend, min(_RETRY_FOR, context.app.config.retry_for))


def run_steps(
    context: RequestContext, actions: Actions, state: BulkActionState, is_enough: Callable[[BulkAction], bool]
) -> StepProgress:
    """Runs steps until `is_enough`, and logs the changes of this request, as there may be no further one.

    Raises ValueError if the queue has other shards by now, or the state is invalid.
    """
    before = after = state.action
    failure: BackendError | None = None
    try:
        for after in steps(actions, before):
            # If pending long ids make the state too large, finish them before returning.
            if is_enough(after) and packed_size(msgspec.structs.replace(state, action=after)) <= LARGEST_STATE:
                break
    except BackendError as error:
        failure = error
    finally:
        _note(context, state, after, failure)
    return StepProgress(msgspec.structs.replace(state, action=after), failure)


def _note(context: RequestContext, state: BulkActionState, after: BulkAction, failure: BackendError | None) -> None:
    changed = after.changed - state.action.changed
    status = "done" if after.is_done else "failed" if failure else "in progress"
    if changed or failure or after.is_done:
        audit.note(
            context,
            after.act,
            state.queue,
            state.target,
            changed,
            state=status,
            in_all=state.before + after.changed,
            run=state.run,
            **({"reason": state.reason} if state.reason else {}),
        )
