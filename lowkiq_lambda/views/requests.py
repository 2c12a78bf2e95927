"""Requests of operators for single ids: a cancel or a pause, as people see them."""

from typing import Literal, TypeAlias

import msgspec

RequestKind: TypeAlias = Literal["cancel", "pause"]
StopsAt: TypeAlias = Literal["yield", "await", "end"]
"""At which point of its handler a run ends because of a request: at its next `yield`; for a cancel of all ids of its
batch at its next `await`; or at its own end, because nothing stops it from outside."""


class Requested(msgspec.Struct, frozen=True):
    """The answer to a cancel, a pause or a resume of ids, each in one of the lists.

    `at_once`: it does not run, so it is done. `in_flight`: it runs, and its holder is asked; the request counts when
    the run ends, unless it ends well. `gone`: the id neither waits nor runs; its pause holds for later pushes.
    `action_id`: by it a cancel of what waited can be undone for ten minutes; empty if nothing can be. `stops_at`: where
    runs of this queue stop, None without its worker. With "end" a handler that hangs goes on until its shard's holder
    is evicted.
    """

    at_once: list[str]
    in_flight: list[str]
    gone: list[str]
    action_id: str = ""
    stops_at: StopsAt | None = None


class JobRequest(msgspec.Struct, frozen=True):
    """A request that a shard keeps: a cancel until the run of the id has ended, a pause until its end.

    `at`: when it was made; `by`: the operator's name, or ""; `until`: when the pause ends, None without an end and of a
    cancel (all in Unix seconds). `in_flight`: whether the id runs, so that its holder has still to hear, or to end it.
    """

    id: str
    shard: int
    kind: RequestKind
    at: float
    by: str
    until: float | None
    in_flight: bool
