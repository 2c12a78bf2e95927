"""Who changed what: a line by a logger of its own, so that it can be kept elsewhere."""

import logging
from collections.abc import Sequence
from typing import Final

from lowkiq_lambda.dashboard.visit import Visit

logger = logging.getLogger("lowkiq_lambda.audit")

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


def selected(ids: Sequence[str]) -> str:
    """Chosen ids, as the `what` of a line: how many they are, and the first of them."""
    named = [repr(job_id[:_LONGEST]) + "…" * (len(job_id) > _LONGEST) for job_id in ids[:NAMED]]
    more = [f"{len(ids) - NAMED} more"] if len(ids) > NAMED else []
    return f"{len(ids)} selected: {', '.join([*named, *more])}"
