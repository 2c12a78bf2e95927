"""A queue's past for people: values that `app.recovered` and `app.queries` return."""

from typing import Any, Final, Literal, TypeAlias

import msgspec

from lowkiq_lambda.jobs.job import Failure

Whereabouts: TypeAlias = Literal["waiting", "in flight", "morgue", "gone"]
"""Where an id has payloads; the first of these that is true, but for "in flight", which comes before."""
HowEnded: TypeAlias = Literal["died", "stopped", "evicted"]
LONGEST: Final = 86_400.0
"""Seconds for which a shard writes all into its journal, at most."""


class JournalEntry(msgspec.Struct, frozen=True):
    """An event in a shard, from its journal: docs/journal.md lists the kinds and their items.

    `at` is Unix seconds by the server's clock. `token` and `call` are those of the holder, or `token` is that of who
    else asked for it, a push or an operator's action.
    """

    shard: int
    shards_count: int
    number: int
    kind: str
    at: float
    token: bytes
    call: str
    items: list[Any]

    @property
    def holder(self) -> int | None:
        """The token, if it is a holder's."""
        return int(self.token) if self.call and self.token.isdigit() else None


class Recovered(msgspec.Struct, frozen=True):
    """Jobs that a holder left in flight and the next one requeued, `at` Unix seconds.

    `owner` took the shard at `held_since` under this token, and `how` tells how it ended: it died, or stood still for
    longer than its lease; it stopped, and said so; or an operator evicted it. `ids`: the first 64 of what it left, and
    `more`, how many others. `crash_counted`: those of them that are suspected of its death. `dead`: those that went to
    the morgue for it. `now`: where the ids are.
    """

    at: float
    shard: int
    shards_count: int
    owner: str
    token: int
    held_since: float | None
    how: HowEnded
    ids: list[str]
    more: int
    crash_counted: list[str]
    dead: list[str]
    now: dict[str, Whereabouts]


class LifeEvent(msgspec.Struct, frozen=True):
    """An event of an id: docs/journal.md lists the kinds.

    `token` and `call`: of the holder that did it, or did it to, else None. `payloads`: how many are concerned, where
    the journal says so, and `arrivals`, the arrival numbers of these, or of the first and the last. `rule`: the rule of
    the worker that discarded the payload, else "". `fingerprint`: of the error with which a job ended, 16 hex digits.
    """

    at: float
    shard: int
    shards_count: int
    number: int
    kind: str
    token: int | None
    call: int | None
    payloads: int | None
    arrivals: list[int]
    rule: str = ""
    fingerprint: str = ""


class Biography(msgspec.Struct, frozen=True):
    """The life of an id: its events, the oldest first, its last failures, and its present place.

    `since`: pushes, merges, claims and outcomes are complete from then on (Unix seconds), None if the journal does
    not have them now. `trouble_since`: all other events are; None: since the shard is there.
    """

    id: str
    now: Whereabouts
    events: list[LifeEvent]
    failures: list[Failure]
    since: float | None
    trouble_since: float | None
