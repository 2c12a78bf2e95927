"""The activity log: changes, exports, refusals and sign-ins, each with its address and session.

It has a logger of its own, so that its lines can be stored apart. Redis keeps the last changes too, for the page
Activity.
"""

import logging
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, Literal, TypeAlias

from lowkiq_lambda.dashboard.context import RequestContext
from lowkiq_lambda.dashboard.security.caller import Caller, caller_of
from lowkiq_lambda.dashboard.security.paths import path_of
from lowkiq_lambda.dashboard.security.sessions import Session
from lowkiq_lambda.operate.inspect.activity import OF_NO_QUEUE, record_action
from lowkiq_lambda.views.activity import ActivityEntry

logger = logging.getLogger("lowkiq_lambda.activity")

SignIn: TypeAlias = Literal["signed in", "signed out", "wrong password", "locked out"]

_LONGEST_TARGET: Final = 2_000
"""Redis keeps so many characters of a target."""
_LONGEST_PATH: Final = 200


def note(context: RequestContext, action: str, queue: str, target: str, changed: int, **others: object) -> None:
    """Logs that the visitor applied `action` to `target` in a queue, and why; `others`: further fields of the line."""
    others = _present({"reason": context.reason, **others})
    # Outside text is quoted, so that it cannot forge a line.
    fields = {"who": context.visitor_name, "action": action, "queue": queue, "target": target, "changed": changed}
    _log(context, "%r: %s, queue %r, %s: %d changed", fields, others)
    of_action = {name: others[name] for name in ("state", "action_id", "reason") if name in others}
    _record(context, action, queue, target, by_step=changed, changed=others.get("in_all", changed), **of_action)


def note_task(context: RequestContext, action: str, task_id: str, name: str, changed: int) -> None:
    """Logs that the visitor applied `action` to a task, how many of its items changed by that, and why."""
    fields = {"who": context.visitor_name, "action": action, "task": task_id, "task_name": name, "changed": changed}
    why = _present({"reason": context.reason})
    _log(context, "%r: %s, task %s %r: %d changed", fields, why)
    _record(context, action, OF_NO_QUEUE, f"task {name!r} {task_id}", changed=changed, **why)


def note_process(context: RequestContext, order: str, process_id: str) -> None:
    """Logs that the visitor has given a process an order, and why."""
    fields = {"who": context.visitor_name, "action": order, "process_id": process_id}
    why = _present({"reason": context.reason})
    _log(context, "%r: %s, process %r", fields, why)
    _record(context, order, OF_NO_QUEUE, f"process {process_id}", changed=1, **why)


def note_export(context: RequestContext, queue: str, target: str) -> None:
    """Logs that the visitor has asked for a file of a list with its payloads."""
    _log(
        context,
        "%r: %s, queue %r, %s",
        {"who": context.visitor_name, "action": "export", "queue": queue, "target": target},
    )


def note_refusal(context: RequestContext, status: int, reason: str) -> None:
    """Logs a request that was forbidden, or came with a wrong token; never the token."""
    request = context.request
    path = path_of(request.scope)[:_LONGEST_PATH]
    fields = {"who": context.visitor_name, "action": "rejected", "method": request.method, "path": path}
    _log(context, "%r: %s, %s %r, %d: %s", {**fields, "status": status, "reason": reason}, level=logging.WARNING)


def note_sign_in(outcome: SignIn, caller: Caller, session: Session | None = None) -> None:
    """Logs an attempt to sign in, with the session if the password was right, or its end; never the password."""
    as_whom = f" as {session.account!r}, session {session.tag!r}" if session else ""
    logger.log(
        logging.WARNING if session is None else logging.INFO,
        "sign-in from %r%s: %s",
        caller.address,
        as_whom,
        outcome,
        extra={
            "action": "sign in",
            "outcome": outcome,
            **_place(caller, session),
            **({"account": session.account} if session is not None else {}),
        },
    )


def _log(
    context: RequestContext,
    sentence: str,
    fields: Mapping[str, object],
    more: Mapping[str, object] = MappingProxyType({}),
    *,
    level: int = logging.INFO,
) -> None:
    """Writes a line with these fields, and with the address and the session that they come from."""
    place = _place_of(context)
    words = "".join(f", {name} {value!r}" for name, value in {**more, **place}.items())
    logger.log(level, "%s%s", sentence % (*fields.values(),), words, extra={**fields, **more, **place})


def _present(fields: Mapping[str, object]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value != ""}


def _place_of(context: RequestContext) -> dict[str, str]:
    signed_in = context.visitor.signed_in if context.visitor else None
    return _place(caller_of(context.request.scope), signed_in.session if signed_in else None)


def _place(caller: Caller, session: Session | None) -> dict[str, str]:
    proxy = {"proxy": caller.proxy} if caller.proxy else {}
    return {"address": caller.address, **proxy, **({"session": session.tag} if session else {})}


def _record(
    context: RequestContext,
    action: str,
    queue: str,
    target: str,
    *,
    by_step: int = 0,
    **more: Any,  # noqa: ANN401 - as ActivityEntry has them
) -> None:
    place = _place_of(context)
    past = ActivityEntry(
        at=context.site.now(),
        who=context.visitor_name,
        action=action,
        queue=queue,
        target=target[:_LONGEST_TARGET],
        address=place["address"],
        session=place.get("session", ""),
        **more,
    )
    record_action(context.app.core.backend, past, by_step)
