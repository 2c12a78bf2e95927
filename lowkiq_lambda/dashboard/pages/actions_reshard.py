"""Another number of shards for a queue: begin the move, go on with it, turn it round."""

from collections.abc import Mapping
from typing import Final

from starlette.responses import Response

from lowkiq_lambda.base.errors import BackendError, LowkiqError, QueueMismatch
from lowkiq_lambda.dashboard import moving
from lowkiq_lambda.dashboard.context import NO_ACTION, NO_QUEUE, RequestContext
from lowkiq_lambda.declare.declaring import MAX_SHARDS

_ACTS: Final = ("begin", "go on", "turn round")
_NOT_MOVING: Final = "Nothing to do: the queue is not on its way to another number of shards."


def ask(context: RequestContext) -> Response:
    """The confirmation page; nothing is changed yet."""
    return _page(context, context.query)


def act(context: RequestContext) -> Response:
    """Runs the step, and redirects to the page of the shards."""
    form = context.form
    worker, do = context.worker_named(form.get("queue", "")), form.get("do", "")
    if worker is None:
        return context.refuse(404, NO_QUEUE)
    if do not in _ACTS:
        return context.refuse(400, NO_ACTION)
    try:
        if do == "begin":
            moving.begin(context, worker, count_in(form))
        elif do == "go on":
            moving.go_on(context, worker)
        elif not moving.turn_round(context, worker):
            return _page(context, form, wrong=moving.BUSY, status=409)
    except ValueError as error:
        return _page(context, form, wrong=str(error), status=400)
    except (BackendError, QueueMismatch):
        raise
    except LowkiqError as error:
        return _page(context, form, wrong=str(error), status=409)
    return context.redirect("shards", queue=worker.queue_name)


def count_in(fields: Mapping[str, str]) -> int:
    """The number of shards that was typed. Raises ValueError, with a sentence."""
    typed = fields.get("count", "").strip()
    is_short_number = typed.isascii() and typed.isdigit() and len(typed) <= len(str(MAX_SHARDS))
    if not (is_short_number and 1 <= int(typed) <= MAX_SHARDS):
        raise ValueError(f"The number of shards is a whole number from 1 to {MAX_SHARDS:,}.")
    return int(typed)


def _page(context: RequestContext, fields: Mapping[str, str], *, wrong: str = "", status: int = 200) -> Response:
    worker, do = context.worker_named(fields.get("queue", "")), fields.get("do", "")
    if worker is None:
        return context.refuse(404, NO_QUEUE)
    if do not in _ACTS:
        return context.refuse(400, NO_ACTION)
    queries = context.app.operate(worker)
    shards = queries.shards()
    move, count = moving.move_of(worker.queue_name, queries.reader.shards.layout, shards), 0
    if do == "begin" and not wrong:
        try:
            count = count_in(fields)
        except ValueError as error:
            wrong, status = str(error), 400
        else:
            wrong = _refusal(move, count)
            status = 409 if wrong else status
    elif not wrong and move.moves_to is None:
        wrong = _NOT_MOVING
    elif not wrong and do == "turn round" and move.is_returning:
        wrong = "Nothing to do: the move was turned round already."
    return context.render(
        "actions_reshard.html",
        status,
        queue=worker.queue_name,
        do=do,
        move=move,
        count=count,
        ids=sum(shard.length + shard.morgue_length for shard in shards),
        wrong=wrong,
    )


def _refusal(move: moving.Move, count: int) -> str:
    """Why no move to so many shards begins, or empty."""
    if move.moves_to is not None:
        return (
            f"The queue is on its way from {move.shards_count} to {move.moves_to} shards. "
            "Let that arrive, or turn it round, before another move."
        )
    return f"Nothing to do: the queue has {count} shards." if count == move.shards_count else ""
