"""Who changed what, and who came in: lines by a logger of its own, so that they can be kept elsewhere."""

import logging
from collections.abc import Sequence
from typing import Final, Literal, TypeAlias

from lowkiq_lambda.dashboard.security.sources import Source
from lowkiq_lambda.dashboard.visit import Visit

logger = logging.getLogger("lowkiq_lambda.audit")

SignIn: TypeAlias = Literal["signed in", "wrong password", "locked out"]

NAMED: Final = 10
"""How many of the chosen ids a line names; a line has to have an end."""
_LONGEST: Final = 100
"""Characters of an id."""


def note(visit: Visit, action: str, queue: str, what: str, changed: int, **more: object) -> None:
    """Somebody has done `action` to `what` of a queue, and that many were changed; `more` are fields of the line."""
    # What comes from outside is quoted, so that it can pretend to be no line of its own.
    logger.info(
        "%r: %s, queue %r, %s: %d changed%s",
        visit.who,
        action,
        queue,
        what,
        changed,
        "".join(f", {name} {value!r}" for name, value in more.items()),
        extra={"who": visit.who, "action": action, "queue": queue, "what": what, "changed": changed, **more},
    )


def note_sign_in(outcome: SignIn, source: Source, account: str | None = None) -> None:
    """Somebody has tried a password. The account is known where it was right; what was tried is never told."""
    logger.log(
        logging.INFO if account is not None else logging.WARNING,
        "sign-in from %r: %s",
        source.address,
        outcome,
        extra={
            "action": "sign in",
            "outcome": outcome,
            "address": source.address,
            **({"proxy": source.proxy} if source.proxy else {}),
            **({"account": account} if account is not None else {}),
        },
    )


def selected(ids: Sequence[str]) -> str:
    """Chosen ids, as the `what` of a line: how many they are, and the first of them."""
    named = [repr(job_id[:_LONGEST]) + "…" * (len(job_id) > _LONGEST) for job_id in ids[:NAMED]]
    more = [f"{len(ids) - NAMED} more"] if len(ids) > NAMED else []
    return f"{len(ids)} selected: {', '.join([*named, *more])}"
