"""What operators do to a queue: pause and resume it, and take a shard from its holder."""

from collections.abc import Callable, Mapping
from typing import Final

from starlette.responses import Response

from lowkiq_lambda.dashboard import audit
from lowkiq_lambda.dashboard.lengths import seconds_of
from lowkiq_lambda.dashboard.pages.actions import actions_of
from lowkiq_lambda.dashboard.visit import Visit
from lowkiq_lambda.store.inspect.actions import Actions
from lowkiq_lambda.store.inspect.shard_details import shard_details
from lowkiq_lambda.store.server.server_time import FOREVER
from lowkiq_lambda.views import ShardDetails

_GONE: Final = "Nothing to do: that holder has let go of the shard by now."
OTHER: Final = "other"
SPANS: Final = {
    "": "until it is resumed",
    "300": "for 5 minutes",
    "900": "for 15 minutes",
    "3600": "for an hour",
    "28800": "for 8 hours",
    OTHER: "for another time",
}
_LONGEST: Final = 100
"""Characters of a length that is asked for again."""
_PAGES: Final = frozenset({"waiting", "processing", "morgue", "job"})
"""From which a queue is paused, beside its shards."""


def ask(visit: Visit) -> Response:
    """What would be done; nothing is done yet."""
    query, queue = visit.query, visit.query.get("queue", "")
    actions = actions_of(visit, queue)
    if actions is None:
        return visit.refuse(404, "There is no queue of that name.")
    do, _, target = query.get("do", "").partition(":")
    if do not in _DOES:
        return visit.refuse(400, "There is no such action.")
    shards = shard_details(actions.reader)
    if do == "resume" and not any(shard.is_paused for shard in shards):
        return _nothing(visit, queue, do, "Nothing to do: the queue is not paused.")
    if do == "evict" and not any(_would_evict(shard, target) for shard in shards):
        return _nothing(visit, queue, do, _GONE)
    return visit.page(
        "actions_queue.html",
        queue=queue,
        do=do,
        target=target,
        seconds=query.get("seconds", ""),
        length=query.get("length", ""),
        wrong=_wrong(query),
        spans=SPANS,
        back=_back(query),
        shards=len(shards),
        waiting=sum(shard.length for shard in shards),
        sentence="",
    )


def act(visit: Visit) -> Response:
    """Does it, and goes where it shows."""
    queue = visit.form.get("queue", "")
    actions = actions_of(visit, queue)
    if actions is None:
        return visit.refuse(404, "There is no queue of that name.")
    does = _DOES.get(visit.form.get("do", "").partition(":")[0])
    if does is None:
        return visit.refuse(400, "There is no such action.")
    return does(visit, actions, queue)


def _pause(visit: Visit, actions: Actions, queue: str) -> Response:
    form = visit.form
    given = form.get("seconds", "").strip()
    if given == OTHER and _wrong(form):
        kept = {"seconds": OTHER, "length": form.get("length", "")[:_LONGEST], "back": _back(form)}
        return visit.go("actions/queue", queue=queue, do="pause", **kept)
    try:
        seconds = seconds_of(form.get("length", "")) if given == OTHER else float(given) if given else None
    except ValueError:
        seconds = 0.0
    if seconds is not None and not 0 < seconds <= FOREVER:
        return visit.refuse(400, "For how long is told in seconds above 0; with none the pause has no end.")
    actions.pause(seconds)
    what = "until it is resumed" if seconds is None else f"for {seconds:g} seconds"
    audit.note(visit, "pause", queue, what, len(actions.reader.shards))
    return visit.go(_back(form), queue=queue)


def _resume(visit: Visit, actions: Actions, queue: str) -> Response:
    paused = sum(shard.is_paused for shard in shard_details(actions.reader))
    actions.resume()
    audit.note(visit, "resume", queue, "all shards", paused)
    return visit.go(_back(visit.form), queue=queue)


def _evict(visit: Visit, actions: Actions, queue: str) -> Response:
    shards = actions.reader.shards
    try:
        index, token = (int(part) for part in visit.form.get("do", "").split(":")[1:])
    except ValueError:
        index, token = -1, 0
    if not 0 <= index < len(shards):
        return visit.refuse(400, "There is no such shard.")
    evicted = actions.evict(shards[index], token)
    audit.note(visit, "evict", queue, f"shard {index}, token {token}", int(evicted))
    if evicted:
        return visit.go("shards", queue=queue)
    # Which says that there is nothing to do.
    return visit.go("actions/queue", queue=queue, do=f"evict:{index}:{token}")


def _wrong(fields: Mapping[str, str]) -> str:
    """Why the length of a pause cannot be read; empty where it can be, or none was typed."""
    if fields.get("seconds") != OTHER:
        return ""
    try:
        seconds_of(fields.get("length", ""))
    except ValueError as error:
        return str(error)
    return ""


def _back(fields: Mapping[str, str]) -> str:
    """The page of the queue that somebody comes from."""
    return page if (page := fields.get("back", "")) in _PAGES else "shards"


def _would_evict(shard: ShardDetails, target: str) -> bool:
    return shard.is_held and not shard.gave_up and f"{shard.index}:{shard.token}" == target


def _nothing(visit: Visit, queue: str, do: str, sentence: str) -> Response:
    return visit.page("actions_queue.html", queue=queue, do=do, sentence=sentence, back=_back(visit.query))


_DOES: Final[Mapping[str, Callable[[Visit, Actions, str], Response]]] = {
    "pause": _pause,
    "resume": _resume,
    "evict": _evict,
}
