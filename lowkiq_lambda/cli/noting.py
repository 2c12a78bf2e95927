"""What somebody changed by the command line is kept where the dashboard keeps what people do."""

import getpass
from contextlib import suppress

from lowkiq_lambda.app import Lowkiq
from lowkiq_lambda.base.clock import SystemClock
from lowkiq_lambda.operate.inspect.activity import record_action
from lowkiq_lambda.views.activity import ActivityEntry


def note(app: Lowkiq, queue: str, action: str, target: str, changed: int) -> None:
    """Keep that the user of this process did this to the queue of that name, or to none (OF_NO_QUEUE)."""
    past = ActivityEntry(
        at=SystemClock.time(),
        who=user_name(),
        action=action,
        queue=queue,
        target=target,
        changed=changed,
    )
    record_action(app.core.backend, past)


def user_name() -> str:
    """The name of the user of this process, for people."""
    return f"{_user()} (lowkiq)"


def _user() -> str:
    # A container may have no name for its user.
    with suppress(OSError, KeyError, ImportError):
        return getpass.getuser()
    return "somebody"
