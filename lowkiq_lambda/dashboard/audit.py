"""The audit log of changes and sign-ins. It has a logger of its own, so that its lines can be stored apart.

Of changes Redis keeps the last, too, for the page of past actions.
"""

import logging
from typing import Any, Final, Literal, TypeAlias

from lowkiq_lambda.action_views import PastAction
from lowkiq_lambda.dashboard.context import RequestContext
from lowkiq_lambda.dashboard.security.caller import Caller
from lowkiq_lambda.store.inspect.past_actions import OF_NO_QUEUE, record_action

logger = logging.getLogger("lowkiq_lambda.audit")

SignIn: TypeAlias = Literal["signed in", "wrong password", "locked out"]

_LONGEST_TARGET: Final = 2_000
"""Redis keeps so many characters of a target."""


def note(context: RequestContext, action: str, queue: str, target: str, changed: int, **more: object) -> None:
    """Logs that the visitor applied `action` to `target` in a queue; `more`: further fields of the line."""
    # Outside text is quoted, so that it cannot forge a line.
    fields = {"who": context.visitor_name, "action": action, "queue": queue, "target": target, "changed": changed}
    logger.info(
        "%r: %s, queue %r, %s: %d changed%s",
        context.visitor_name,
        action,
        queue,
        target,
        changed,
        "".join(f", {name} {value!r}" for name, value in more.items()),
        extra={**fields, **more},
    )
    of_run = {name: more[name] for name in ("state", "run") if name in more}
    _record(context, action, queue, target, changed=more.get("in_all", changed), **of_run)


def note_task(context: RequestContext, action: str, task_id: str, name: str, changed: int) -> None:
    """Logs that the visitor applied `action` to a task, and how many of its items changed by that."""
    fields = {"who": context.visitor_name, "action": action, "task": task_id, "task_name": name, "changed": changed}
    logger.info("%r: %s, task %s %r: %d changed", *fields.values(), extra=fields)
    _record(context, action, OF_NO_QUEUE, f"task {name!r} {task_id}", changed=changed)


def note_process(context: RequestContext, order: str, process_id: str) -> None:
    """Logs that the visitor has given a process an order."""
    fields = {"who": context.visitor_name, "action": order, "process_id": process_id}
    logger.info("%r: %s, process %r", *fields.values(), extra=fields)
    _record(context, order, OF_NO_QUEUE, f"process {process_id}", changed=1)


def note_sign_in(outcome: SignIn, caller: Caller, account: str | None = None) -> None:
    """Logs an attempt to sign in, with the account if the password was right; never the password."""
    logger.log(
        logging.INFO if account is not None else logging.WARNING,
        "sign-in from %r: %s",
        caller.address,
        outcome,
        extra={
            "action": "sign in",
            "outcome": outcome,
            "address": caller.address,
            **({"proxy": caller.proxy} if caller.proxy else {}),
            **({"account": account} if account is not None else {}),
        },
    )


def _record(context: RequestContext, action: str, queue: str, target: str, **more: Any) -> None:  # noqa: ANN401 - as PastAction has them
    past = PastAction(
        at=context.site.now(),
        who=context.visitor_name,
        action=action,
        queue=queue,
        target=target[:_LONGEST_TARGET],
        **more,
    )
    record_action(context.app.backend, past)
