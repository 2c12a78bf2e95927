"""The activity: actions of people, for people."""

from typing import Final

import msgspec

KEPT: Final = 500
"""Actions of a queue."""


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
