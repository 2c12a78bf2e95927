"""The activity: the last actions of people on the queues of the app."""

from typing import Final

from starlette.responses import Response

from lowkiq_lambda.base.errors import LowkiqError
from lowkiq_lambda.dashboard.context import RequestContext
from lowkiq_lambda.dashboard.pages.parts import no_queue
from lowkiq_lambda.operate.acts.undoing import undoable_in_all
from lowkiq_lambda.operate.inspect.activity import KEPT_FOR, OF_NO_QUEUE, read_activity
from lowkiq_lambda.store.server.together import Together
from lowkiq_lambda.views.activity import KEPT

SHOWN: Final = 200


def show(context: RequestContext) -> Response:
    """The page."""
    app, name = context.app, context.query.get("queue") or None
    if name is not None and context.worker_named(name) is None:
        return no_queue(context)
    names = [*(worker.queue_name for worker in app.workers), OF_NO_QUEUE] if name is None else [name]
    with Together() as side:
        activity = side.look(read_activity, app.core.backend, app.config.redis_retry_for, names, SHOWN)
        undoable = side.look(_undoable, context)
    return context.render(
        "activity.html",
        queue=name,
        names=sorted({*names} - {OF_NO_QUEUE}) if name is None else [worker.queue_name for worker in app.workers],
        activity=activity.result,
        undoable=undoable.result,
        now=context.site.now(),
        kept=KEPT,
        days=KEPT_FOR // 86_400,
        most=SHOWN,
    )


def _undoable(context: RequestContext) -> frozenset[str]:
    """The ids of actions that the visitor may undo; none if a queue cannot be read, as the list counts."""
    if context.visitor is None or not context.visitor.may_act:
        return frozenset()
    try:
        return frozenset(action.id for actions in undoable_in_all(context.app.core).values() for action in actions)
    except LowkiqError:
        return frozenset()
