"""The ids of a queue that wait, for operators."""

from collections.abc import Iterable
from typing import Final, Literal, TypeAlias

from lowkiq_lambda.jobs.job import JobView
from lowkiq_lambda.operate.acts.action_runner import ActionRunner
from lowkiq_lambda.operate.acts.bulk_actions import count, prepare
from lowkiq_lambda.operate.acts.bulk_progress import Changed
from lowkiq_lambda.operate.acts.chosen_ids import act_on, carry_on, chosen, count_wanted, deletion
from lowkiq_lambda.operate.acts.requeueing import begin_waiting, timed
from lowkiq_lambda.operate.inspect.id_filter import Wanted, filter_by
from lowkiq_lambda.operate.inspect.job_list import JobListReader, PageTerms, check_filtered, unknown_order
from lowkiq_lambda.operate.inspect.jobs import JobReader
from lowkiq_lambda.store.shard.nodes import FAR
from lowkiq_lambda.views.jobs import Page

WaitingOrder: TypeAlias = Literal["due_at", "retry_count", "id"]
Jobs: TypeAlias = list[JobView]


class WaitingIds:
    """`app.operate(worker).waiting`: the ids that wait, due now or later.

    Bounds are as in Redis: a value, or "(" and a value to leave that one out; "-inf" and "+inf", or "-" and "+" for
    ids (an id that begins with a sign itself is written after "["). A page has `limit` jobs, 10,000 at most; its
    `next`, given as `after`, continues after it. Fields of a filter: `least` and `most` (due time), `least_count` and
    `most_count` (retry_count), `least_id`, `most_id`, `prefix` (of the id), `error` (a part of the last error, in any
    case), `fingerprint`, `payload` (such as "customer.id:17 total>100": docs/operations.md). A bad bound, limit,
    cursor or filter is a ValueError, an invalid id a JobError, and each method raises BackendError if Redis cannot
    serve.
    """

    def __init__(self, jobs: JobReader, runner: ActionRunner) -> None:
        self.reader: Final = JobListReader(jobs, "waiting", jobs.job)
        """Reads the list; private."""
        self._runner = runner

    def list(  # noqa: PLR0913 - a range and a page of it
        self,
        by: WaitingOrder = "due_at",
        min: float | str | None = None,  # noqa: A002 - as Redis calls it
        max: float | str | None = None,  # noqa: A002 - as above
        limit: int = 100,
        *,
        filter: Wanted | None = None,  # noqa: A002 - it is one
        reverse: bool = False,
        after: str | None = None,
    ) -> Page[JobView]:
        """A page, by when jobs are due, by retry_count (-1 before the first failure), or by the bytes of ids.

        A value comes before a shard, and a shard before an id. By ids, and for those that never failed, all ids are
        scanned. With a `filter`, which has bounds of its own, the order is by due time, and one call reads a bounded
        number of ids, so a page may be empty and yet have a `next`.
        """
        terms = PageTerms(min, max, limit, reverse=reverse, after=after)
        if filter is not None:
            check_filtered(by, "due_at", min, max)
            return self.reader.filtered(filter_by(filter), terms)
        if by == "due_at":
            return self.reader.by_number("due", terms)
        if by == "retry_count":
            return self.reader.by_retry_count(terms)
        if by == "id":
            return self.reader.by_id("due", terms)
        raise unknown_order(by, WaitingOrder)

    def blocked(self, limit: int = 100, *, after: str | None = None) -> Page[JobView]:
        """A page of the ids with a dead head (`Worker.dead_head`), by shard and id; `unblock` lets them go on."""
        return self.list(min=FAR, limit=limit, after=after)

    def fetch(self, ids: Iterable[object]) -> Jobs:
        """The jobs of these ids that wait, in the order of the ids."""
        return self.reader.fetch(ids)

    def search(
        self, text: str = "", *, prefix: str = "", fingerprint: str = "", limit: int = 100, after: str | None = None
    ) -> Page[JobView]:
        """A page of the jobs whose last error has `text`, in any case, and whose ids begin with `prefix`.

        With a `fingerprint`, that of a group of `app.operate.errors`, only those of the group, by when they are due;
        without in no order. One call reads a bounded number of ids, so a page may be empty and yet have a `next`.
        """
        return self.reader.search(prefix, text, fingerprint, limit, after)

    def count(self, filter: Wanted | None = None) -> int:  # noqa: A002 - it is one
        """How many ids wait; with a filter those that it wants, which takes a walk through the list."""
        return count_wanted(self._runner, "delete", filter)

    def delete(
        self,
        ids: Iterable[object] | None = None,
        *,
        filter: Wanted | None = None,  # noqa: A002 - it is one
        everything: bool = False,
        forget_keys: bool = False,
    ) -> Changed:
        """Delete ids with all their payloads; how many were deleted.

        `forget_keys`: the keys of these `ids` are forgotten too, so that jobs with them can be pushed again.
        """
        choice = chosen(ids, filter, everything=everything)
        return act_on(self._runner, deletion(choice.filter), choice, forget_keys=forget_keys)

    def run_now(  # noqa: PLR0913 - a choice, and a pace
        self,
        ids: Iterable[object] | None = None,
        *,
        filter: Wanted | None = None,  # noqa: A002 - it is one
        everything: bool = False,
        rate: float | None = None,
        start: float | None = None,
        dry_run: bool = False,
    ) -> Changed:
        """Make ids that wait for a later time due now, in their order, with their retry_count; returns their number.

        With a `rate`, at most so many of them are due in each second from now on, or from a later `start` (Unix
        seconds). An id that is due by its turn in any case keeps its time, and is not counted. With `dry_run` nothing
        changes: it returns how many wait for a later time, and by when the last would be due. Raises ValueError for
        bad terms.
        """
        choice = chosen(ids, filter, everything=everything)
        action = prepare(self._runner, "run_now", chosen_ids=choice.ids, filter=choice.filter)
        paced = timed(self._runner, action, {"rate": rate, "start": start})
        if not dry_run:
            return carry_on(self._runner, paced)
        if paced.chosen is None:
            number, _ = count(self._runner, paced, lambda: True)
        else:
            now = self._runner.reader.backend.now(self._runner.reader.shards[0])
            number = sum(now < job.due_at < FAR for job in self.fetch(paced.chosen))
        return Changed(number, last_due=paced.last_due(number))

    def requeue(
        self,
        ids: Iterable[object] | None = None,
        *,
        filter: Wanted | None = None,  # noqa: A002 - it is one
        everything: bool = False,
        rate: float,
    ) -> Changed:
        """Let ids that are due wait again, at most `rate` of them due in each second from now on; returns their number.

        They keep their order, retry_count and error; ids that are due later stay. It spreads a flood over time, so that
        other ids come in between. Raises ValueError for a bad rate. If a call breaks off, another one spreads the rest.
        """
        choice = chosen(ids, filter, everything=everything)
        return carry_on(self._runner, begin_waiting(self._runner, choice.ids, choice.filter, rate))

    def kill(
        self,
        ids: Iterable[object] | None = None,
        *,
        filter: Wanted | None = None,  # noqa: A002 - it is one
        everything: bool = False,
        error: str | None = None,
    ) -> Changed:
        """Send ids that have failed to the morgue, with their last error; how many are dead now.

        With an `error` it kills the ids that are not due yet instead, with this error. So it takes back a slow requeue,
        except for ids that are due by now. Blocked ids stay then. Raises TypeError for an error that is not a text.
        """
        choice = chosen(ids, filter, everything=everything)
        if error is None:
            return act_on(self._runner, "kill", choice)
        value: object = error
        if not isinstance(value, str):
            raise TypeError(f"error must be a text, not {type(value).__name__}.")
        return act_on(self._runner, "kill_delayed", choice, error=self._runner.dump_error(error))
