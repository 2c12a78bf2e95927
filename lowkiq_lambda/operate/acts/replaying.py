"""The replay of kept runs: their payloads are pushed again, in order, each once.

A payload is pushed under a key that names its run, so that a second replay within a week changes nothing.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from lowkiq_lambda.base.error_text import call_safely
from lowkiq_lambda.declare.worker import Worker
from lowkiq_lambda.jobs.job import Pushed, decode_score, is_number
from lowkiq_lambda.jobs.keep_runs import KeepRuns
from lowkiq_lambda.operate.inspect.entry_runs import payloads_in
from lowkiq_lambda.operate.inspect.run_filter import RunFilter
from lowkiq_lambda.operate.inspect.runs import RunSearch
from lowkiq_lambda.operate.inspect.stored_errors import StoredErrors
from lowkiq_lambda.store.shard.codec import load_json
from lowkiq_lambda.store.shard.reader import ShardReader

if TYPE_CHECKING:
    from lowkiq_lambda.core import Core

MOST_PAYLOADS: Final = 100_000
"""Of one replay."""
KEY_TTL: Final = 7 * 86_400.0
JOBS_AT_ONCE: Final = 1_000
_SCORE: Final = 8


class Replayed(msgspec.Struct, kw_only=True):
    """The payloads that a replay has pushed, or would push.

    `runs`, `ids`, `payloads`: how many were selected. `without_payloads`: runs that keep none, and `unreadable`:
    those that cannot be read; both are left out. `written`: how many payloads were pushed; of these `merged` with one
    that waits, were pushed before by a replay (`repeated`), or were `superseded` by a newer payload that was done.
    """

    runs: int = 0
    ids: int = 0
    payloads: int = 0
    without_payloads: int = 0
    unreadable: int = 0
    written: int = 0
    merged: int = 0
    repeated: int = 0
    superseded: int = 0

    def count(self, pushed: Sequence[Pushed]) -> None:
        """Take note of what a call has written."""
        self.written += len(pushed)
        self.merged += sum(one.merged for one in pushed)
        self.repeated += sum(one.repeated for one in pushed)
        self.superseded += sum(one.superseded for one in pushed)


class ReplayJob(NamedTuple):
    """A payload of a run, by id and score."""

    id: str
    score: float
    entry: str
    number: int
    payload: bytes

    @property
    def key(self) -> str:
        """The key under which it is pushed."""
        return f"run:{self.entry}:{self.number}"


class ReplayPlan(NamedTuple):
    """The payloads to push, in order of id and score, and how many runs there are."""

    jobs: Sequence[ReplayJob]
    replayed: Replayed


def plan_replay(reader: ShardReader, errors: StoredErrors, run_filter: RunFilter, id_prefix: str = "") -> ReplayPlan:
    """The payloads of the runs that the filter selects. Raises ValueError for too many, BackendError."""
    jobs: list[ReplayJob] = []
    replayed = Replayed()
    search = None
    while search is None or search.is_cut:
        search = RunSearch(reader, errors, run_filter, None if search is None else search.position)
        for entry, place, run in search:
            if not run.id.startswith(id_prefix):
                continue
            if not run.has_payloads:
                replayed.without_payloads += 1
                continue
            replayed.runs += 1
            (stored,) = payloads_in(entry, [place])
            jobs += [
                ReplayJob(run.id, decode_score(one[:_SCORE]), run.entry, number, one[_SCORE:])
                for number, one in enumerate(stored)
            ]
            if len(jobs) > MOST_PAYLOADS:
                raise ValueError(f"A replay has at most {MOST_PAYLOADS:,} payloads: choose a shorter time.")
        replayed.unreadable += search.unreadable
    jobs.sort()
    replayed.payloads, replayed.ids = len(jobs), len({job.id for job in jobs})
    return ReplayPlan(jobs, replayed)


class Replay:
    """A replay that is planned: its jobs are known, and none is pushed yet."""

    def __init__(
        self,
        plan: ReplayPlan,
        push: Callable[[Sequence[Mapping[str, Any]]], Sequence[Pushed]],
        load: Callable[[bytes], object],
        now: Callable[[], float],
        rate: float | None,
    ) -> None:
        self.plan = plan
        self._push = push
        self._load = load
        self._now = now
        self._rate = rate

    def run(self) -> Replayed:
        """Push all of it. Raises what a push raises."""
        for _ in self.steps():
            pass
        return self.plan.replayed

    def steps(self) -> Iterator[Replayed]:
        """Push it, call by call, and yield after each what is through."""
        jobs: list[dict[str, Any]] = []
        start = self._now()
        for number, (_, of_id) in enumerate(groupby(self.plan.jobs, key=lambda job: job.id)):
            due_at = None if self._rate is None else start + number / self._rate
            jobs += self._jobs(of_id, due_at)
            if len(jobs) >= JOBS_AT_ONCE:
                self.plan.replayed.count(self._push(jobs))
                jobs = []
                yield self.plan.replayed
        if jobs:
            self.plan.replayed.count(self._push(jobs))
        yield self.plan.replayed

    def _jobs(self, of_id: Iterable[ReplayJob], due_at: float | None) -> Iterator[dict[str, Any]]:
        due = {} if due_at is None else {"due_at": due_at}
        for job in of_id:
            payload, broken = call_safely(self._load, job.payload)
            if broken is not None:
                self.plan.replayed.unreadable += 1
                continue
            yield {"id": job.id, "payload": payload, "score": job.score, "key": job.key, "key_ttl": KEY_TTL, **due}


def replay_of(  # noqa: PLR0913 - each narrows the runs
    core: "Core",
    reader: ShardReader,
    errors: StoredErrors,
    worker: type[Worker[Any]],
    between: tuple[float | None, float | None],
    *,
    outcome: str | Iterable[str] | None,
    id_prefix: str,
    rate: float | None,
) -> Replay:
    """The replay of the runs of a queue that ran at some moment between. Raises ValueError, BackendError."""
    if worker.keep_runs is None or not KeepRuns.of(worker.keep_runs).payloads:
        raise ValueError(f"the runs of {worker.__name__} keep no payloads: keep_runs = KeepRuns(10_000, payloads=True)")
    if rate is not None and not (is_number(rate) and rate > 0):
        raise ValueError(f"rate must be above 0, not {rate!r}")
    since, until = between
    run_filter = RunFilter.of(since=since, until=until, outcome=outcome)
    plan = plan_replay(reader, errors, run_filter, id_prefix)
    shard = reader.shards[0]
    return Replay(
        plan,
        lambda jobs: core.pushes.push_past_middlewares(worker, jobs),
        core.config.load_payload or load_json,
        lambda: core.backend.now(shard),
        rate,
    )
