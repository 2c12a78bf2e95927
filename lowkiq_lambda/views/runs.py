"""The runs that a queue keeps: values that `app.operate(worker).runs` returns."""

from collections.abc import Iterable
from typing import Literal, TypeAlias

import msgspec

from lowkiq_lambda.jobs.job import Outcome
from lowkiq_lambda.views.jobs import Page

RunOutcome: TypeAlias = Literal[Outcome, "recovered"]
"""The outcome of a run: that of its id, or its process died."""


class KeptRun(msgspec.Struct, frozen=True, kw_only=True):
    """A run of an id: a call of a handler that got it, and the outcome of that.

    `at`: when it began, Unix seconds; `took`: seconds. Of a run whose holder died, outcome `recovered` (`dead` and
    `blocked` if that was the last time), `at` is the recovery, `took` is None, and how many `payloads` it had is not
    known (0). `digest`: two runs with equal payloads have the same. `error`: the beginning of its first line, and
    `fingerprint` what errors that are alike share. `holder`: the process, with its fencing `token`, and `release` the
    version of the user's code in it. `batch`: how many ids the handler had at once. `entry`: names the run within its
    queue. `has_payloads`: whether it can be replayed.
    """

    id: str
    at: float
    took: float | None
    outcome: str
    payloads: int
    digest: str
    error: str | None
    fingerprint: str | None
    holder: str
    release: str | None
    token: int
    batch: int
    shard: int
    shards_count: int
    entry: str
    has_payloads: bool


class Release(msgspec.Struct, frozen=True):
    """A version of the user's code, and when a process first had it (Unix seconds)."""

    name: str
    since: float


class RunPage(Page[KeptRun]):
    """A page of runs, the newest first.

    `kept_since`: from then on all shards have all of their runs (Unix seconds; None: there are no runs). `unreadable`:
    how many runs on the way to this page's end cannot be read, as another version or nobody wrote them so. `lost`: how
    many runs Redis had no room for, since the queue keeps runs.
    """

    def __init__(  # noqa: PLR0913 - what a page has, and its runs
        self,
        entries: Iterable[KeptRun],
        next: str | None = None,  # noqa: A002 - the public name
        *,
        cut: bool = False,
        kept_since: float | None = None,
        unreadable: int = 0,
        lost: int = 0,
    ) -> None:
        super().__init__(entries, next, cut=cut)
        self.kept_since = kept_since
        self.unreadable = unreadable
        self.lost = lost
