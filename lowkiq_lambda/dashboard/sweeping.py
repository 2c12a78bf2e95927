"""An action on many ids, gone on with for as long as one request may take."""

from collections.abc import Callable
from typing import Final, NamedTuple

import msgspec

from lowkiq_lambda.dashboard import audit
from lowkiq_lambda.dashboard.tickets import Ticket, packed
from lowkiq_lambda.dashboard.visit import Visit
from lowkiq_lambda.errors import BackendError
from lowkiq_lambda.store.inspect.actions import Actions
from lowkiq_lambda.store.inspect.bulk_actions import BulkAction, steps

LARGEST_TICKET: Final = 512 * 1024
"""Characters of a packed ticket: the body that brings it back may have twice that."""


class Progress(NamedTuple):
    """How far it is; `trouble` where Redis broke it off there."""

    ticket: Ticket
    trouble: BackendError | None


def go_on(visit: Visit, actions: Actions, ticket: Ticket, is_enough: Callable[[BulkAction], bool]) -> Progress:
    """Goes on until that is enough, and leaves a line about what was changed.

    Each request leaves its own: whoever leaves half-way sends no other. Raises ValueError where the queue's shards
    are others by now, or the ticket is none of ours.
    """
    before = after = ticket.sweep
    trouble: BackendError | None = None
    try:
        for after in steps(actions, before):
            # Long ids may wait for their turn in it; these come first, then.
            if is_enough(after) and len(packed(msgspec.structs.replace(ticket, sweep=after))) <= LARGEST_TICKET:
                break
    except BackendError as error:
        trouble = error
    finally:
        _note(visit, ticket, after, trouble)
    return Progress(msgspec.structs.replace(ticket, sweep=after), trouble)


def _note(visit: Visit, ticket: Ticket, after: BulkAction, trouble: BackendError | None) -> None:
    changed = after.changed - ticket.sweep.changed
    state = "done" if after.is_done else "broken off" if trouble else "to be gone on with"
    if changed or trouble or after.is_done:
        audit.note(
            visit,
            after.act,
            ticket.queue,
            ticket.what,
            changed,
            state=state,
            in_all=ticket.before + after.changed,
            run=ticket.run,
        )
