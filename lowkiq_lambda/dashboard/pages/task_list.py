"""The page of all tasks: a search by name or id, and how far those have come that are not over."""

import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Final, NamedTuple

import msgspec
from starlette.responses import Response

from lowkiq_lambda.base.errors import NoSuchTask
from lowkiq_lambda.dashboard.context import RequestContext
from lowkiq_lambda.dashboard.pages.queue import PAGE
from lowkiq_lambda.dashboard.task_words import STATES, TROUBLES
from lowkiq_lambda.tasks.views import Status, TaskPage, TaskSummary

COUNTED_FOR: Final = 0.5
"""Seconds for counting the items of tasks; those that are left then have no progress on the page."""
SEARCHED: Final = 5_000
"""The search for one page reads so many tasks."""


class TaskRow(msgspec.Struct, frozen=True, kw_only=True):
    """A task. `ended`: its items that have ended, of `total`; None where they were not counted.

    `troubles`: how many of them ended as nobody wants, by status; None where that was not counted.
    """

    task: TaskSummary
    total: int
    ended: int | None
    troubles: dict[Status, int] | None


class _Found(NamedTuple):
    tasks: list[TaskSummary]
    next: str | None


def show(context: RequestContext) -> Response:
    """The page."""
    query = context.query
    after, find = query.get("after") or None, query.get("find", "").strip()
    try:
        found = _search(context, find, after) if find else context.app.tasks.list(after, PAGE)
    except ValueError as error:
        return context.refuse(400, str(error))
    fields = {"find": find} if find else {}
    return context.render(
        "tasks.html",
        rows=[*_rows(context, found.tasks)],
        find=find,
        first=context.link("tasks", **fields) if after else None,
        next=context.link("tasks", **fields, after=found.next) if found.next else None,
        states=STATES,
    )


def _search(context: RequestContext, find: str, after: str | None) -> TaskPage | _Found:
    """Tasks whose names contain the text, or whose id it is."""
    wanted, found = find.casefold(), list[TaskSummary]()
    for _ in range(SEARCHED // PAGE):
        page = context.app.tasks.list(after, PAGE)
        found += [task for task in page.tasks if task.id == find or wanted in task.name.casefold()]
        after = page.next
        if after is None or len(found) >= PAGE:
            break
    return _Found(found, after)


def _rows(context: RequestContext, tasks: list[TaskSummary]) -> Iterator[TaskRow]:
    ends_at = time.monotonic() + COUNTED_FOR
    for task in tasks:
        is_over = task.completed_at is not None
        total, ended = task.pushed, task.pushed if is_over else None
        troubles: dict[Status, int] | None = None if task.pushed else {}
        if task.pushed and time.monotonic() < ends_at:
            # It may have been forgotten meanwhile.
            with suppress(NoSuchTask):
                progress = context.app.tasks.get(task.id).progress()
                total, ended = progress.total, progress.ended
                troubles = {status: progress.counts[status] for status in TROUBLES if progress.counts[status]}
        yield TaskRow(task=task, total=total, ended=ended, troubles=troubles)
