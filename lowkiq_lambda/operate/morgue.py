"""The dead jobs of a queue, for operators."""

from collections.abc import Iterable, Iterator
from typing import Final, Literal, TypeAlias, overload

from lowkiq_lambda.jobs.job import MorgueJob
from lowkiq_lambda.operate.acts import requeueing
from lowkiq_lambda.operate.acts.action_runner import ActionRunner
from lowkiq_lambda.operate.acts.bulk_progress import Changed
from lowkiq_lambda.operate.acts.chosen_ids import act_on, chosen, count_wanted
from lowkiq_lambda.operate.acts.requeue_terms import RequeueOptions, RequeueOrder
from lowkiq_lambda.operate.acts.requeueing import RequeuePreview
from lowkiq_lambda.operate.inspect.id_filter import Wanted, filter_by
from lowkiq_lambda.operate.inspect.job_list import JobListReader, PageTerms, check_filtered, unknown_order
from lowkiq_lambda.operate.inspect.jobs import JobReader
from lowkiq_lambda.views.jobs import Page

MorgueOrder: TypeAlias = Literal["updated_at", "id"]
Jobs: TypeAlias = list[MorgueJob]


class MorgueIds:
    """`app.operate(worker).morgue`: the dead jobs. They do not run.

    Bounds, limits, cursors and errors are as those of the waiting list; `least` and `most` of a filter are of the time
    at which an id came here, and it has no `least_count` and `most_count`.
    """

    def __init__(self, jobs: JobReader, runner: ActionRunner) -> None:
        self.reader: Final = JobListReader(jobs, "morgue", jobs.morgue_job)
        """Reads the list; private."""
        self._runner = runner

    def list(  # noqa: PLR0913 - a range and a page of it
        self,
        by: MorgueOrder = "updated_at",
        min: float | str | None = None,  # noqa: A002 - as Redis calls it
        max: float | str | None = None,  # noqa: A002 - as above
        limit: int = 100,
        *,
        filter: Wanted | None = None,  # noqa: A002 - it is one
        reverse: bool = False,
        after: str | None = None,
    ) -> Page[MorgueJob]:
        """A page, by when jobs came here, or by the bytes of ids, for which all ids are scanned.

        With a `filter`, which has bounds of its own, the order is by time, and one call reads a bounded number of ids,
        so a page may be empty and yet have a `next`.
        """
        terms = PageTerms(min, max, limit, reverse=reverse, after=after)
        if filter is not None:
            check_filtered(by, "updated_at", min, max)
            return self.reader.filtered(filter_by(filter), terms)
        if by == "updated_at":
            return self.reader.by_number("morgue", terms)
        if by == "id":
            return self.reader.by_id("morgue", terms)
        raise unknown_order(by, MorgueOrder)

    def fetch(self, ids: Iterable[object]) -> Jobs:
        """The dead jobs of these ids, in the order of the ids."""
        return self.reader.fetch(ids)

    def search(
        self, text: str = "", *, prefix: str = "", fingerprint: str = "", limit: int = 100, after: str | None = None
    ) -> Page[MorgueJob]:
        """As that of the waiting list; with a `fingerprint` by the time at which ids came here."""
        return self.reader.search(prefix, text, fingerprint, limit, after)

    def count(self, filter: Wanted | None = None) -> int:  # noqa: A002 - it is one
        """How many ids are dead; with a filter those that it wants, which takes a walk through the list."""
        return count_wanted(self._runner, "delete_dead", filter)

    def delete(
        self,
        ids: Iterable[object] | None = None,
        *,
        filter: Wanted | None = None,  # noqa: A002 - it is one
        everything: bool = False,
        forget_keys: bool = False,
    ) -> Changed:
        """Delete dead ids with all their payloads; how many were deleted. `forget_keys` as in `waiting.delete`."""
        choice = chosen(ids, filter, everything=everything)
        return act_on(self._runner, "delete_dead", choice, forget_keys=forget_keys)

    @overload
    def requeue(
        self,
        ids: Iterable[object] | None = None,
        *,
        filter: Wanted | None = None,
        everything: bool = False,
        rate: float | None = None,
        order: RequeueOrder = "score",
        start: float | None = None,
        dry_run: Literal[False] = False,
    ) -> Changed: ...
    @overload
    def requeue(
        self,
        ids: Iterable[object] | None = None,
        *,
        filter: Wanted | None = None,
        everything: bool = False,
        rate: float | None = None,
        order: RequeueOrder = "score",
        start: float | None = None,
        dry_run: Literal[True],
    ) -> Iterator[RequeuePreview]: ...
    def requeue(  # noqa: PLR0913 - a choice, and a pace
        self,
        ids: Iterable[object] | None = None,
        *,
        filter: Wanted | None = None,  # noqa: A002 - it is one
        everything: bool = False,
        rate: float | None = None,
        order: RequeueOrder = "score",
        start: float | None = None,
        dry_run: bool = False,
    ) -> Changed | Iterator[RequeuePreview]:
        """Requeue dead ids, with all their retries; returns how many were requeued.

        By default all are due at once. With a `rate`, at most so many are due in each second, the first at `start`
        (Unix seconds; default: now). `order`: "score" puts each payload where its score belongs, "unless_newer" leaves
        it dead if a newer one of its id waits or is in flight, "last" puts it after all others. With `dry_run` it only
        returns the effect on each id. `waiting.kill(ids, error=...)` takes back ids that are not due yet. Raises
        ValueError for bad terms, and BackendError with a note on how to go on.
        """
        choice = chosen(ids, filter, everything=everything)
        if not dry_run and rate is None and start is None and order == "score":
            return act_on(self._runner, "requeue", choice)
        terms: RequeueOptions = {"rate": rate, "order": order, "start": start}
        id_filter = None if choice.ids is not None else choice.filter
        action = requeueing.begin(self._runner, choice.ids, id_filter, terms)
        return requeueing.previews(self._runner, action) if dry_run else requeueing.carry_out(self._runner, action)
