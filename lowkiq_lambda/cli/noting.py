"""What somebody changed by the command line is kept where the dashboard keeps what people do."""

import getpass
import os
import socket
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from lowkiq_lambda.base.clock import SystemClock
from lowkiq_lambda.base.errors import ConfigError
from lowkiq_lambda.cli.output import say, typed
from lowkiq_lambda.views.activity import ActivityEntry, lacks_reason

if TYPE_CHECKING:
    from lowkiq_lambda.app import Lowkiq
    from lowkiq_lambda.reshard.group import Moved, Postponed

OPERATOR: Final = "LOWKIQ_OPERATOR"
"""The environment variable with the name of the person, where the user of the process is somebody else."""
_LONGEST: Final = 2_000
"""Redis keeps so many characters of a target and of a reason."""
_LONGEST_NAME: Final = 200
_DEVICES: Final = "/dev/"


def note(  # noqa: PLR0913, PLR0917 - a line of the log
    app: "Lowkiq",
    queue: str,
    action: str,
    target: str,
    changed: int,
    reason: str | None = None,
    *,
    action_id: str = "",
) -> None:
    """Keep that this person did this to the queue of that name, or to none (OF_NO_QUEUE)."""
    from lowkiq_lambda.operate.inspect.activity import record_action

    past = ActivityEntry(
        at=SystemClock.time(),
        who=user_name(),
        action=action,
        queue=queue,
        target=target[:_LONGEST],
        changed=changed,
        action_id=action_id,
        address=_address(),
        session=_session(),
        reason=(reason or "")[:_LONGEST],
    )
    record_action(app.core.backend, past)


def reason_for(count: int, reason: str | None, *, is_all: bool = True, yes: bool, aside: bool) -> str | None:
    """Why somebody acts on so many ids, which is asked for if it has to be there; None if they do not say it.

    `is_all`: as `need_reason` has it; `aside`: as `agreed` has it. With `yes` a ConfigError.
    """
    missing = lacks_reason(reason, count, is_all=is_all)
    if not missing:
        return reason or ""
    if yes:
        raise ConfigError(f"{missing} Give --reason.")
    return typed(f"{missing} Why: ", aside=aside) or None


def user_name() -> str:
    """The name of the user of this process, for people."""
    return f"{person()} (lowkiq)"


def person() -> str:
    """The operator that the environment names, else the user of this process."""
    if operator := os.environ.get(OPERATOR, "").strip():
        return operator[:_LONGEST_NAME]
    # A container may have no name for its user.
    with suppress(OSError, KeyError, ImportError):
        return getpass.getuser()
    return "somebody"


def _address() -> str:
    """The host, and from where somebody came to it."""
    host = socket.gethostname()
    client = os.environ.get("SSH_CLIENT", "").partition(" ")[0]
    return f"{host}, from {client[:_LONGEST_NAME]}" if client else host


def _session() -> str:
    """The terminal, or else the process: what the logs of the host have, too."""
    with suppress(OSError, ValueError, AttributeError):
        return os.ttyname(sys.stdin.fileno()).removeprefix(_DEVICES)
    return f"process {os.getpid()}"


def report_group(place: int, groups: int, outcome: "Moved | Postponed") -> None:
    """Say what became of a group of shards that moves."""
    from lowkiq_lambda.reshard.group import Moved

    if isinstance(outcome, Moved):
        say(f"group {place} of {groups}: {outcome.rows:,} records moved, paused for {outcome.seconds:.1f} s")
    else:
        time = f" for {outcome.seconds:,.0f} s" if outcome.seconds else ""
        say(f"a group waits{time}: {outcome.reason}")
