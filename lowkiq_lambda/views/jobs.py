"""Single ids: where they are, pages of them, and why one does not run yet."""

from collections.abc import Iterable
from typing import Literal, TypeAlias, TypeVar

import msgspec

from lowkiq_lambda.jobs.job import Failure, ProgressView
from lowkiq_lambda.views.requests import JobRequest
from lowkiq_lambda.views.shards import ShardDetails

Shown = TypeVar("Shown")


class Page(list[Shown]):
    """A part of a long list.

    `next` is the `after` of the next page; None at the end of the list. `cut`: the search ended before it had read the
    whole list, so jobs may be missing. `read`: how many ids a filter has looked at for this page; None without one.
    """

    def __init__(
        self,
        entries: Iterable[Shown],
        next: str | None = None,  # noqa: A002 - the public name
        *,
        cut: bool = False,
        read: int | None = None,
    ) -> None:
        super().__init__(entries)
        self.next = next
        self.cut = cut
        self.read = read


Place: TypeAlias = Literal["waiting", "flight", "morgue"]
"""Where payloads of an id are."""


class FoundId(msgspec.Struct, frozen=True):
    """An id that has payloads in these places of a queue."""

    queue_name: str
    id: str
    places: tuple[Place, ...]


class FoundIds(msgspec.Struct, frozen=True):
    """The id that was looked for, in each queue that has it, and ids that begin with it.

    `cut`: not all ids were read, or more begin with it. `skipped`: queues that were made with
    another declaration than the app has, by name, each with a sentence.
    """

    exact: list[FoundId] = []
    similar: list[FoundId] = []
    cut: bool = False
    skipped: dict[str, str] = {}


class TenantWait(msgspec.Struct, frozen=True, kw_only=True):
    """When the tenant of an id is served: `served_from`, and how many tenants come first.

    `ahead`: ids of the tenant itself that come before the id. `paused_until`: the end of its pause; `rests_until`:
    when its rate lets the next begin. Unix seconds; None if there is none.
    """

    tenant: str
    served_from: float | None
    tenants_ahead: int
    ahead: int
    paused_until: float | None = None
    rests_until: float | None = None


class JobExplanation(msgspec.Struct, frozen=True, kw_only=True):
    """Why an id runs, or does not run yet, read at one moment.

    `due_at`: when it is due; None if no payload waits. `ahead`: ids that come before it. `suspects_ahead`: suspects
    that come before it; None if it is not a suspect. `crash_count`: how often its process died or fell silent while it
    ran alone. `runs_together`: it is in flight or a suspect, and nothing but a first crash tells against it: as a
    suspect of a worker with `concurrency` it runs once more, side by side with others like it. `dead_since`: the time
    of its last death; None if the morgue has no payload of it. `closed`: its shard belongs to an older declaration.
    `least_version`: the least contract version of a library that may use the shard. `progress`: how far the id has
    come, if it is a started job that waits or is in flight. `debounced_until`: while the id waits for more pushes, when
    it is due at the latest; else None. `blocked_since`: since when its head is blocked, until an operator unblocks it
    (`Worker.dead_head`). `limited`: limits of its queue were set at run time.
    `tenant`: when its tenant is served, if it waits and its queue has tenants. `failures`: the last five since the id
    was last done, newest first. `expires_at`: after that time the oldest of its payloads is not handed to a handler;
    None: at any time. `requests`: what operators want of it: a cancel, a pause, or both. `put_off`: why its handler put
    it off last.
    """

    shard: ShardDetails
    due_at: float | None = None
    retry_count: float = -1.0
    ahead: int = 0
    suspects_ahead: int | None = None
    crash_count: int = 0
    runs_together: bool = False
    in_flight: bool = False
    dead_since: float | None = None
    closed: bool = False
    least_version: int | None = None
    progress: ProgressView | None = None
    debounced_until: float | None = None
    blocked_since: float | None = None
    limited: bool = False
    tenant: TenantWait | None = None
    failures: tuple[Failure, ...] = ()
    expires_at: float | None = None
    requests: tuple[JobRequest, ...] = ()
    put_off: str = ""

    @property
    def is_unknown(self) -> bool:
        """Whether the id has no payload: not waiting, in flight or in the morgue."""
        return self.due_at is None and not self.in_flight and self.dead_since is None
