"""The way back from a job to the task whose item it is, where somebody came from there."""

import msgspec

from lowkiq_lambda.base.errors import NoSuchTask
from lowkiq_lambda.dashboard.context import RequestContext
from lowkiq_lambda.dashboard.task_words import KINDS, MEANINGS
from lowkiq_lambda.tasks.task import Task
from lowkiq_lambda.tasks.views import STATUSES, Item


class TaskOfJob(msgspec.Struct, frozen=True, kw_only=True):
    """The task, and the item as the task knows it; None if it has another status by now."""

    id: str
    name: str
    item: Item | None
    meaning: str
    kind: str


def task_of(context: RequestContext, queue: str, job_id: str) -> TaskOfJob | None:
    """The task in the address; None without one, or if it is forgotten."""
    task_id = context.query.get("task", "")
    if not task_id:
        return None
    try:
        task = context.app.tasks.get(task_id)
        name = task.progress().name
        item = _item(task, context.query.get("item", ""))
    except NoSuchTask:
        return None
    if item is not None and (item.queue_name, item.id) != (queue, job_id):
        item = None
    meaning, kind = (MEANINGS[item.status], KINDS.get(item.status, "")) if item else ("", "")
    return TaskOfJob(id=task_id, name=name, item=item, meaning=meaning, kind=kind)


def _item(task: Task, place: str) -> Item | None:
    """The item of a place such as failed-3."""
    name, _, number = place.partition("-")
    status = next((one for one in STATUSES.values() if one == name), None)
    if status is None or not (number.isascii() and number.isdecimal() and int(number[:10]) > 0):
        return None
    found = task.items(status, f"{status}-{int(number[:10]) - 1}", 1).items
    return next((item for item in found if str(item.number) == number), None)
