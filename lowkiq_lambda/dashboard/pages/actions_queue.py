"""Actions on a queue: pause, resume, forget how long batches took, and evict the holder of a shard."""

from collections.abc import Callable, Mapping
from typing import Final

from starlette.responses import Response

from lowkiq_lambda.dashboard import activity, durations
from lowkiq_lambda.dashboard.context import NO_ACTION, NO_QUEUE, RequestContext
from lowkiq_lambda.dashboard.pages.actions import queue_of
from lowkiq_lambda.operate.acts.forgetting import ALL_KEYS, FORGET_KEYS
from lowkiq_lambda.operate.queue_operations import QueueOperations
from lowkiq_lambda.views.shards import ShardDetails

_GONE: Final = "Nothing to do: this holder has released the shard."
_PAGES: Final = frozenset({"queue", "waiting", "processing", "morgue", "limits", "job"})
"""Pages with the form, besides the shards."""


def ask(context: RequestContext) -> Response:
    """The confirmation page; nothing is changed yet."""
    query, queue = context.query, context.query.get("queue", "")
    operations = queue_of(context, queue)
    if operations is None:
        return context.refuse(404, NO_QUEUE)
    do, _, target = query.get("do", "").partition(":")
    if do not in _ACTIONS:
        return context.refuse(400, NO_ACTION)
    shards = operations.shards()
    if do == "resume" and not any(shard.is_paused for shard in shards):
        return _nothing(context, queue, do, "Nothing to do: the queue is not paused.")
    if do == "evict" and not any(_would_evict(shard, target) for shard in shards):
        return _nothing(context, queue, do, _GONE)
    return context.render(
        "actions_queue.html",
        queue=queue,
        do=do,
        target=target,
        shard=_shard_of(operations, target) if do == "evict" else "",
        **durations.asked(query),
        back=_back(query),
        shards=len(shards),
        waiting=sum(shard.length for shard in shards),
        sentence="",
    )


def act(context: RequestContext) -> Response:
    """Runs the action, and redirects to a page that shows its effect."""
    queue = context.form.get("queue", "")
    operations = queue_of(context, queue)
    if operations is None:
        return context.refuse(404, NO_QUEUE)
    handler = _ACTIONS.get(context.form.get("do", "").partition(":")[0])
    if handler is None:
        return context.refuse(400, NO_ACTION)
    return handler(context, operations, queue)


def _pause(context: RequestContext, operations: QueueOperations, queue: str) -> Response:
    form = context.form
    if durations.wrong_length(form):
        return context.redirect("actions/queue", queue=queue, do="pause", back=_back(form), **durations.again(form))
    try:
        seconds = durations.pause_seconds(form)
    except ValueError:
        return context.refuse(400, durations.WRONG_SECONDS)
    operations.pause(seconds)
    activity.note(context, "pause", queue, durations.in_words(seconds), len(operations.reader.shards))
    return context.redirect(_back(form), queue=queue)


def _resume(context: RequestContext, operations: QueueOperations, queue: str) -> Response:
    paused = sum(shard.is_paused for shard in operations.shards())
    operations.resume()
    activity.note(context, "resume", queue, "all shards", paused)
    return context.redirect(_back(context.form), queue=queue)


def _forget_timing(context: RequestContext, operations: QueueOperations, queue: str) -> Response:
    operations.forget_timing()
    activity.note(context, "forget timing", queue, "all shards", len(operations.reader.shards))
    return context.redirect(_back(context.form), queue=queue)


def _forget_keys(context: RequestContext, operations: QueueOperations, queue: str) -> Response:
    activity.note(context, FORGET_KEYS, queue, ALL_KEYS, operations.forget_all_keys())
    return context.redirect(_back(context.form), queue=queue)


def _evict(context: RequestContext, operations: QueueOperations, queue: str) -> Response:
    shards = operations.reader.shards
    try:
        index, token = (int(part) for part in context.form.get("do", "").split(":")[1:])
    except ValueError:
        index, token = -1, 0
    if not 0 <= index < len(shards):
        return context.refuse(400, "The queue has no such shard.")
    evicted = operations.in_flight.evict_holder(shards[index], token)
    activity.note(context, "evict", queue, f"shard {index}, token {token}", int(evicted))
    if evicted:
        return context.redirect("shards", queue=queue)
    # The page explains that the holder is gone.
    return context.redirect("actions/queue", queue=queue, do=f"evict:{index}:{token}")


def _back(fields: Mapping[str, str]) -> str:
    """The page of the queue that somebody comes from."""
    return page if (page := fields.get("back", "")) in _PAGES else "shards"


def _shard_of(operations: QueueOperations, target: str) -> str:
    """The shard of a target by its own number, which says of how many while the queue gets others."""
    layout = operations.reader.shards.layout
    home = layout.homes[int(target.partition(":")[0])]
    return f"{home.index} of {home.shards_count}" if layout.is_moving else str(home.index)


def _would_evict(shard: ShardDetails, target: str) -> bool:
    return shard.is_held and not shard.gave_up and f"{shard.index}:{shard.token}" == target


def _nothing(context: RequestContext, queue: str, do: str, sentence: str) -> Response:
    return context.render("actions_queue.html", queue=queue, do=do, sentence=sentence, back=_back(context.query))


_ACTIONS: Final[Mapping[str, Callable[[RequestContext, QueueOperations, str], Response]]] = {
    "pause": _pause,
    "resume": _resume,
    "evict": _evict,
    "forget_timing": _forget_timing,
    "forget_keys": _forget_keys,
}
