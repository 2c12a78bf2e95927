"""All tasks, with a search; one task with its items, and its cancelling."""

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import partial
from typing import Final, NamedTuple

import msgspec
from starlette.responses import Response

from lowkiq_lambda.base.errors import NoSuchTask
from lowkiq_lambda.base.fingerprint import first_line
from lowkiq_lambda.dashboard.api.tasks import NO_TASK
from lowkiq_lambda.dashboard.context import RequestContext
from lowkiq_lambda.dashboard.orders import cancel_task
from lowkiq_lambda.dashboard.pages.parts import PAGE
from lowkiq_lambda.dashboard.pages.rows import LONGEST_LINK, shown_id
from lowkiq_lambda.dashboard.task_words import CHILD_WORDS, KINDS, MEANINGS, STATES, TROUBLES, bar, bar_words
from lowkiq_lambda.operate.inspect.error_groups import what_is_alike
from lowkiq_lambda.operate.presentation.formatting import duration, quoted, short, visible
from lowkiq_lambda.operate.presentation.tasks import below_words
from lowkiq_lambda.store.server.together import Together, side_by_side
from lowkiq_lambda.tasks.family import family_of
from lowkiq_lambda.tasks.views import STATUSES, Item, Progress, Status, TaskPage, TaskSummary
from lowkiq_lambda.views.activity import ReasonMissing, lacks_reason

ENDED: Final = {
    "completing": "Nothing to do: all items of the task have ended.",
    "completed": "Nothing to do: all items of the task have ended.",
    "cancelled": "Nothing to do: the task is cancelled.",
    "expired": "Nothing to do: the task is being deleted.",
}
"""Why a task of that state cannot be cancelled."""

_MINUTE: Final = 60
_MESSAGES: Final = 5
"""Of the messages of failed items, those of the most."""
SEARCHED: Final = 5_000
"""The search for one page reads so many tasks."""


class ItemRow(msgspec.Struct, frozen=True, kw_only=True):
    """An item. `link`: to the page of its job; None where this app has no such queue, or the id is too long."""

    item: Item
    name: str
    link: str | None


def find(context: RequestContext) -> Response:
    """Leads from the address that programs know to the page."""
    return context.redirect("task", id=context.request.path_params["id"])


def one(context: RequestContext) -> Response:
    """The page of one task, or its live region."""
    query, task_id = context.query, context.query.get("id", "")
    after = query.get("after") or None
    try:
        status = _status(query.get("status", ""))
        task = context.app.tasks.get(task_id)
        with Together() as side:
            counted, listed = side.look(task.progress), side.look(task.items, status, after, PAGE)
            is_first = status is None and after is None
            wrong = [side.look(task.items, each, None, PAGE) for each in TROUBLES] if is_first else []
        progress, items = counted.result, listed.result
    except NoSuchTask:
        return context.refuse(404, NO_TASK)
    except ValueError as error:
        return context.refuse(400, str(error))
    address = {"id": task_id} | ({"status": status} if status else {})
    return context.render(
        "task_live.html" if context.is_partial else "task.html",
        task=progress,
        state_words=STATES[progress.state],
        below=below_words(progress),
        may_cancel=not _why_not(progress),
        pace=_pace(progress, context.site.now()),
        messages=_by_message(item for look in wrong for item in look.result.items),
        most=PAGE,
        bar=bar(progress.counts),
        bar_words=bar_words(progress.counts),
        statuses=[one for one in STATUSES.values() if progress.counts[one] or one == status],
        meanings=MEANINGS,
        kinds=KINDS,
        child_words=CHILD_WORDS,
        chosen=status,
        rows=[*_item_rows(context, task_id, items.items)],
        address=address | ({"after": after} if after else {}),
        first=context.link("task", **address) if after else None,
        next=context.link("task", **address, after=items.next) if items.next else None,
    )


def _why_not(progress: Progress) -> str:
    """Why the task cannot be cancelled; empty if it can."""
    has_runs_to_stop = progress.state == "cancelled" and progress.counts["running"]
    return "" if has_runs_to_stop else ENDED.get(progress.state, "")


def _pace(progress: Progress, now: float) -> str:
    """How fast items have ended, and how long the others take at that, in a sentence; empty where that says nothing."""
    seconds, left = now - progress.created_at, progress.total - progress.ended
    if not (progress.ended and left and seconds > 0):
        return ""
    rate = progress.ended / seconds
    pace = f"{short(rate)} a second" if rate > 1 else f"{short(rate * _MINUTE)} a minute"
    return f"Since it was made {pace} have ended: at that the others take {duration(left / rate)}."


def _by_message(items: Iterable[Item]) -> list[tuple[str, int]]:
    """The last messages of items that ended as nobody wants, those that are alike as one, with how many they are."""
    lines = (first_line(item.text) or "no message" for item in items)
    return Counter(what_is_alike(line, "fingerprint").words for line in lines).most_common(_MESSAGES)


def ask(context: RequestContext) -> Response:
    """The confirmation page; nothing is changed yet."""
    try:
        family = family_of(context.app.tasks, context.query.get("id", ""))
    except NoSuchTask:
        return context.refuse(404, NO_TASK)
    return context.render(
        "actions_task.html",
        task=family.top,
        below=below_words(family.top),
        waiting=family.count("enqueued"),
        running=family.count("running"),
        sentence=_why_not(family.top),
        lacks_reason=lacks_reason("", family.count("enqueued")),
    )


def act(context: RequestContext) -> Response:
    """Cancels the task, and redirects to it."""
    task_id = context.form.get("id", "")
    try:
        cancel_task(context, task_id, running=context.form.get("running") == "1")
    except NoSuchTask:
        return context.refuse(404, NO_TASK)
    except ReasonMissing as error:
        return context.refuse(400, f"Nothing was changed. {error}")
    return context.redirect("task", id=task_id)


def _status(text: str) -> Status | None:
    """None for all. Raises ValueError, with a sentence: items of any status are not what an unknown one asks for."""
    match = next((status for status in STATUSES.values() if status == text), None)
    if text and match is None:
        raise ValueError(f"“{visible(text)}” is not a status: it is one of {', '.join(STATUSES.values())}.")
    return match


def _item_rows(context: RequestContext, task_id: str, items: Iterable[Item]) -> Iterable[ItemRow]:
    own = {worker.queue_name for worker in context.app.workers}
    for item in items:
        has_page = item.queue_name in own and len(quoted(item.id)) <= LONGEST_LINK
        back = {"task": task_id, "item": f"{item.status}-{item.number}"}
        link = context.link("job", queue=item.queue_name, id=item.id, **back) if has_page else None
        yield ItemRow(item=item, name=shown_id(item.id), link=link)


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
    """All tasks."""
    query = context.query
    after, find = query.get("after") or None, query.get("find", "").strip()
    try:
        page = _search(context, find, after) if find else context.app.tasks.list(after, PAGE)
    except ValueError as error:
        return context.refuse(400, str(error))
    fields = {"find": find} if find else {}
    return context.render(
        "tasks.html",
        rows=[*_task_rows(context, page.tasks)],
        find=find,
        first=context.link("tasks", **fields) if after else None,
        next=context.link("tasks", **fields, after=page.next) if page.next else None,
        states=STATES,
    )


def _search(context: RequestContext, find: str, after: str | None) -> TaskPage | _Found:
    """Tasks whose names contain the text, or whose id it is."""
    text, matches = find.casefold(), list[TaskSummary]()
    for _ in range(SEARCHED // PAGE):
        page = context.app.tasks.list(after, PAGE)
        matches += [task for task in page.tasks if task.id == find or text in task.name.casefold()]
        after = page.next
        if after is None or len(matches) >= PAGE:
            break
    return _Found(matches, after)


def _task_rows(context: RequestContext, tasks: list[TaskSummary]) -> Iterator[TaskRow]:
    counted = side_by_side(partial(_progress, context, task) for task in tasks)
    for task, look in zip(tasks, counted, strict=True):
        is_over = task.completed_at is not None
        total, ended = task.pushed, task.pushed if is_over else None
        troubles: dict[Status, int] | None = None if task.pushed else {}
        # It may have been forgotten meanwhile.
        with suppress(NoSuchTask):
            if (progress := look.result) is not None:
                total, ended = progress.total, progress.ended
                troubles = {status: progress.counts[status] for status in TROUBLES if progress.counts[status]}
        yield TaskRow(task=task, total=total, ended=ended, troubles=troubles)


def _progress(context: RequestContext, task: TaskSummary) -> Progress | None:
    return context.app.tasks.get(task.id).progress() if task.pushed else None
