"""The activity: actions of people, for people."""

from typing import Annotated, Final, TypeAlias

import msgspec

KEPT: Final = 500
"""Actions of a queue."""
REASON_ABOVE: Final = 100
"""An act on more ids than that, by a page, the API or the command line, needs a reason."""
LONGEST_REASON: Final = 200
NOTED: Final = "auto"
"""The action of a line that says something about the shards of a queue, and changes none."""
Reason: TypeAlias = Annotated[str, msgspec.Meta(max_length=LONGEST_REASON, description="Why, for the activity log.")]


class ReasonMissing(ValueError):
    """An act on many ids has no reason. Its text is a sentence for people."""


def lacks_reason(reason: str | None, count: int, *, is_all: bool = True) -> str:
    """Why an act on so many ids cannot do without a reason; empty if it can, or has one. Not `is_all`: on more."""
    if (reason or "").strip() or (count <= REASON_ABOVE and is_all):
        return ""
    return (
        f"An act on more than {REASON_ABOVE} ids needs a reason: this is on {'' if is_all else 'at least '}{count:,}."
    )


def need_reason(reason: str | None, count: int, *, is_all: bool = True) -> None:
    """Raises ReasonMissing if `lacks_reason`."""
    if sentence := lacks_reason(reason, count, is_all=is_all):
        raise ReasonMissing(sentence)


class ActivityEntry(msgspec.Struct, frozen=True, kw_only=True):
    """Something that somebody did to a queue by the dashboard, its API or the command line.

    `at`: when it ended, Unix seconds. `target`: on what, in words; of a bulk action its filter. `changed`: how many
    ids, shards or entries it changed. `state` is "in progress" while the steps of a bulk action go on, or for ever if
    nobody went on; "failed" if Redis did not answer to the last. `action_id`: the same for all steps. `address`,
    `session`: from where, as a dashboard or a command line knows it. `reason`: why, in the words of who did it.
    """

    at: float
    who: str
    action: str
    queue: str = ""
    target: str = ""
    changed: int = 0
    state: str = "done"
    action_id: str = ""
    address: str = ""
    session: str = ""
    reason: str = ""


class ActivityView(msgspec.Struct, frozen=True, kw_only=True):
    """The last actions, newest first."""

    activity: list[ActivityEntry]
