"""The replay of kept runs: what it would push is counted first, and pushed once that is confirmed."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple, get_args

from starlette.responses import Response

from lowkiq_lambda.dashboard import activity
from lowkiq_lambda.dashboard.context import NO_QUEUE, RequestContext
from lowkiq_lambda.jobs.keep_runs import KeepRuns
from lowkiq_lambda.operate.presentation.formatting import visible
from lowkiq_lambda.operate.presentation.moments import moment_of
from lowkiq_lambda.views.activity import lacks_reason
from lowkiq_lambda.views.runs import RunOutcome

if TYPE_CHECKING:
    from lowkiq_lambda.operate.acts.replaying import Replayed
    from lowkiq_lambda.operate.queue_operations import QueueOperations

_FIELDS: Final = ("since", "until", "outcome", "id", "rate")


class ReplayForm(NamedTuple):
    """The fields of the form as they were typed; what they select, or why they cannot.

    `confirmed`: the same with their moments as Unix seconds, so that "2h ago" is the same when the button is pressed.
    """

    fields: Mapping[str, str]
    confirmed: Mapping[str, str] = MappingProxyType({})
    selected: "Replayed | None" = None
    wrong: str = ""


def ask(context: RequestContext) -> Response:
    """The form, and what a replay would push; nothing is changed yet."""
    return _form(context, context.query)


def act(context: RequestContext) -> Response:
    """Pushes the payloads, and tells how many."""
    worker = context.worker_named(context.form.get("queue", ""))
    if worker is None:
        return context.refuse(404, NO_QUEUE)
    queue = context.app.operate(worker)
    try:
        arguments = _arguments(context.form, context.site.now())
    except ValueError:
        return _form(context, context.form)
    note = f"runs from {arguments['since']:.0f} to {arguments['until']:.0f}"
    try:
        if not context.reason and (missing := lacks_reason("", queue.replay(**arguments, dry_run=True).ids)):
            return context.refuse(400, f"Nothing was changed. {missing}")
        replayed = queue.replay(**arguments)
    except (ValueError, OverflowError) as error:
        # Some may have been pushed before it: the same replay goes on with the others.
        activity.note(context, "replay", worker.queue_name, f"{note}, which failed", 0)
        fields = {name: context.form.get(name, "") for name in _FIELDS}
        return _page(context, queue, worker.queue_name, ReplayForm(fields, wrong=visible(str(error).removesuffix("."))))
    activity.note(context, "replay", worker.queue_name, note, replayed.written)
    return _page(context, queue, worker.queue_name, ReplayForm({}, selected=replayed), is_done=True)


def _form(context: RequestContext, query: Mapping[str, str]) -> Response:
    worker = context.worker_named(query.get("queue", ""))
    if worker is None:
        return context.refuse(404, NO_QUEUE)
    queue, fields = context.app.operate(worker), {name: query.get(name, "").strip() for name in _FIELDS}
    if worker.keep_runs is None or not KeepRuns.of(worker.keep_runs).payloads:
        return _page(context, queue, worker.queue_name, ReplayForm(fields), keeps=False)
    if not (fields["since"] and fields["until"]):
        return _page(context, queue, worker.queue_name, ReplayForm(fields))
    try:
        arguments = _arguments(fields, context.site.now())
        selected = queue.replay(**arguments, dry_run=True)
    except ValueError as error:
        return _page(context, queue, worker.queue_name, ReplayForm(fields, wrong=visible(str(error).removesuffix("."))))
    confirmed = {**fields, "since": f"{arguments['since']:.3f}", "until": f"{arguments['until']:.3f}"}
    return _page(context, queue, worker.queue_name, ReplayForm(fields, confirmed, selected))


def _arguments(fields: Mapping[str, str], now: float) -> dict[str, Any]:
    """The arguments of a replay. Raises ValueError, with a sentence."""
    text = fields.get("rate", "").strip()
    try:
        rate = float(text) if text else None
    except ValueError:
        raise ValueError(f"{text!r} is not a number of ids a second") from None
    return {
        "since": moment_of(fields.get("since", ""), now),
        "until": moment_of(fields.get("until", ""), now),
        "outcome": fields.get("outcome", "").strip() or "done",
        "id_prefix": fields.get("id", "").strip(),
        "rate": rate,
    }


def _page(  # noqa: PLR0913 - the parts of the page
    context: RequestContext,
    queue: "QueueOperations",
    name: str,
    form: ReplayForm,
    *,
    keeps: bool = True,
    is_done: bool = False,
) -> Response:
    return context.render(
        "actions_replay.html",
        400 if form.wrong else 200,
        queue=name,
        shards=queue.shards(),
        keeps=keeps,
        fields=form.fields,
        confirmed=form.confirmed,
        selected=form.selected,
        wrong=form.wrong,
        is_done=is_done,
        lacks_reason="" if form.selected is None else lacks_reason("", form.selected.ids),
        outcomes=get_args(RunOutcome),
    )
