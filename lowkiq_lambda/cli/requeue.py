"""`lowkiq requeue`: jobs of the morgue wait again, all at once or so many a second."""

from itertools import islice
from typing import TYPE_CHECKING, Annotated, Final

import msgspec
from cyclopts import Parameter

from lowkiq_lambda.base.errors import ConfigError
from lowkiq_lambda.cli.changing import (
    LISTED,
    NAMED,
    All,
    ChangeView,
    DryRun,
    Id,
    JobChange,
    JobChoice,
    Rate,
    Start,
    change,
    change_app,
    pace_words,
)
from lowkiq_lambda.cli.codes import NOT_APPLIED
from lowkiq_lambda.cli.filters import FILTERS, SEARCH, SearchOptions, id_filter_of, logged
from lowkiq_lambda.cli.output import say, write_json
from lowkiq_lambda.cli.parts import flag
from lowkiq_lambda.cli.queues import ACT, ActOptions, NamedQueue, QueueName, app_of, queue_of
from lowkiq_lambda.operate.acts.requeue_terms import RequeueOptions, RequeueOrder
from lowkiq_lambda.operate.presentation.formatting import visible

if TYPE_CHECKING:
    from lowkiq_lambda.operate.acts.bulk_progress import BulkAction
    from lowkiq_lambda.operate.acts.requeueing import RequeuePreview

_ORDERS: Final = f"""
ORDERS
  score         each payload comes where its score belongs, as before it failed
  unless_newer  the same, but a payload stays in the morgue where a newer one
                of its id waits or is in flight
  last          behind all payloads of its id
{FILTERS}"""
REQUEUE: Final = JobChange("requeue", "Requeue", "in the morgue of", "requeued")


class DryRequeueView(ChangeView, frozen=True, kw_only=True):
    """A dry run as JSON. `previews`: what would become of the first ids, those included that would stay."""

    previews: "list[RequeuePreview]"


command: Final = change_app(
    "requeue",
    """Requeue dead jobs of QUEUE, with all their retries: these ids, all, or those that fit --filter.

They are due now. With --rate each id gets a time of its own, so many in each second from now on. No \
process has to run meanwhile, and ids that are not due yet can be taken back (`waiting.kill`).
""",
    """  Two jobs:
    lowkiq requeue SyncOrder 17 18
  What would become of the jobs that failed by a timeout:
    lowkiq requeue SyncOrder --error timeout --dry-run
  The same for good, 20 of them in a second, where nothing newer has come:
    lowkiq requeue SyncOrder --error timeout \\
      --order unless_newer --rate 20 --yes
""",
    more=_ORDERS,
)


@command.default
def requeue(  # noqa: PLR0913 - the options of a command line
    queue: QueueName,
    /,
    *ids: Id,
    all_: All = False,
    search: SearchOptions = SEARCH,
    rate: Rate = None,
    order: Annotated[RequeueOrder, Parameter(help="The place of the payloads among those that wait.")] = "score",
    start: Start = None,
    dry_run: DryRun = False,
    act: ActOptions = ACT,
    json: Annotated[
        bool, flag("Write act, queue, changed and examined as JSON; of a dry run what becomes of the first ids, too.")
    ] = False,
) -> int:
    """Requeue; the exit code."""
    from lowkiq_lambda.operate.acts.requeueing import begin

    words = search.words
    if sum((bool(ids), all_, bool(words))) != 1:
        raise ConfigError("Give ids, --all, or --filter: one of the three.")
    id_filter = None if ids else id_filter_of(words)
    named_queue = queue_of(app_of(act.app), queue)
    runner = named_queue.operate.runner
    options: RequeueOptions = {"order": order, "rate": rate, "start": start}
    try:
        action = begin(runner, ids or None, id_filter, options)
    except ValueError as refusal:
        raise ConfigError(str(refusal)) from refusal
    if dry_run:
        return _dry_run(named_queue, action, json=json)

    def once_agreed(action: "BulkAction") -> "BulkAction":
        # People take their time: the first is due when they have answered; the jobs are those of the question.
        terms = begin(runner, ids or None, id_filter, options).terms if start is None else action.terms
        return msgspec.structs.replace(action, terms=terms)

    choice = JobChoice(logged(words, named_queue.app.config.mask), pace_words(rate), reason=act.reason, json=json)
    return change(named_queue, REQUEUE, action, yes=act.yes, choice=choice, once_agreed=once_agreed)


def _dry_run(queue: NamedQueue, action: "BulkAction", *, json: bool) -> int:
    """Tell what would become of the first ids, and of how many; the exit code."""
    from lowkiq_lambda.operate.acts.requeueing import previews
    from lowkiq_lambda.operate.presentation.requeue_words import preview_total, preview_words

    every = previews(queue.operate.runner, action)
    first = [*islice(every, LISTED)]
    skipped = [bool(one.skipped) for one in (*first, *every)]
    stay = sum(skipped)
    again = len(skipped) - stay
    if json:
        view = DryRequeueView(
            act="requeue",
            queue=queue.name,
            changed=again,
            examined=len(skipped),
            dry_run=True,
            ids=[one.id for one in first if not one.skipped],
            previews=first,
        )
        write_json(view)
        return NOT_APPLIED
    more = [f"and {len(skipped) - NAMED:,} more"] if len(skipped) > NAMED else []
    say(*(visible(f"{one.id}: {preview_words(one)}") for one in first[:NAMED]), *more, preview_total(again, stay))
    return NOT_APPLIED
