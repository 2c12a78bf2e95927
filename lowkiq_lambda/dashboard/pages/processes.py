"""The processes that drain, and the two orders for each."""

from collections.abc import Iterator, Mapping
from typing import Final, Literal, TypeAlias

import msgspec
from starlette.responses import Response

from lowkiq_lambda.base.errors import QueueMismatch
from lowkiq_lambda.dashboard.context import NO_ACTION, RequestContext
from lowkiq_lambda.dashboard.orders import NO_PROCESS, find, give
from lowkiq_lambda.dashboard.pages.rows import LONGEST_LINK, shown_id
from lowkiq_lambda.operate.presentation.formatting import quoted
from lowkiq_lambda.views.processes import Doing, Process
from lowkiq_lambda.views.shards import ShardDetails

Order: TypeAlias = Literal["quiet", "stop"]
ORDERS: Final[Mapping[str, Order]] = {"quiet": "quiet", "stop": "stop"}


class DoingRow(msgspec.Struct, frozen=True, kw_only=True):
    """The work of a thread. `ids`: the first ids, each with a link to its job, or None if there is no such page.

    `is_refused`: Redis accepts no more writes of the thread, as the process has lost the shard while it ran.
    """

    doing: Doing
    is_refused: bool
    ids: tuple[tuple[str, str | None], ...]


class ProcessRow(msgspec.Struct, frozen=True, kw_only=True):
    """A process with what it does. `may_quiet`, `may_stop`: whether the order would still change anything."""

    process: Process
    doing: tuple[DoingRow, ...]
    may_quiet: bool
    may_stop: bool


def show(context: RequestContext) -> Response:
    """The page, or its live region."""
    rows = [*_rows(context)]
    alive = [row.process for row in rows if not row.process.is_gone]
    return context.render(
        "processes_live.html" if context.is_partial else "processes.html",
        rows=rows,
        alive=len(alive),
        threads=sum(process.threads for process in alive),
        busy=sum(len(process.doing) for process in alive),
        now=context.site.now(),
    )


def ask(context: RequestContext) -> Response:
    """The confirmation page; nothing is changed yet."""
    order, process = ORDERS.get(context.query.get("do", "")), find(context, context.query.get("id", ""))
    if order is None:
        return context.refuse(400, NO_ACTION)
    if process is None:
        return context.refuse(404, NO_PROCESS)
    return context.render("actions_process.html", process=process, order=order)


def act(context: RequestContext) -> Response:
    """Gives the order, and redirects to the list."""
    order = ORDERS.get(context.form.get("do", ""))
    if order is None:
        return context.refuse(400, NO_ACTION)
    if not give(context, context.form.get("id", ""), order):
        return context.refuse(404, NO_PROCESS)
    return context.redirect("processes")


def _rows(context: RequestContext) -> Iterator[ProcessRow]:
    own = {worker.queue_name for worker in context.app.workers}
    processes = context.app.operate.processes()
    busy = {doing.queue for process in processes if not process.is_gone for doing in process.doing}
    shards = {name: _shards(context, name) for name in busy & own}
    for process in processes:
        is_alive = not process.is_gone
        yield ProcessRow(
            process=process,
            doing=tuple(
                DoingRow(
                    doing=doing,
                    is_refused=is_alive and _is_refused(process, doing, shards.get(doing.queue, {}).get(doing.shard)),
                    ids=tuple(_ids(context, own, doing)),
                )
                for doing in process.doing
            ),
            may_quiet=is_alive and not process.quiet and not process.order,
            may_stop=is_alive and process.state != "stopping" and process.order != "stop",
        )


def _shards(context: RequestContext, queue: str) -> dict[int, ShardDetails]:
    worker = context.worker_named(queue)
    if worker is None:
        return {}
    try:
        return {shard.index: shard for shard in context.app.operate(worker).shards()}
    except QueueMismatch:
        # Its page says so; the processes are listed all the same.
        return {}


def _is_refused(process: Process, doing: Doing, shard: ShardDetails | None) -> bool:
    """Whether the process had lost the shard when it was heard of last, and ran what it had begun before."""
    if shard is None or shard.acquired_at is None:
        return False
    if shard.owner != f"{process.host}:{process.pid}":
        return doing.since < shard.acquired_at < process.seen_at
    # A release leaves no end of the lease: it holds the shard no more, and has nothing to be refused.
    is_over = 0 < shard.held_until < process.seen_at
    return shard.acquired_at <= doing.since and (is_over or (shard.gave_up and shard.held_until > 0))


def _ids(context: RequestContext, own: set[str], doing: Doing) -> Iterator[tuple[str, str | None]]:
    for job_id in doing.ids:
        has_page = doing.queue in own and len(quoted(job_id)) <= LONGEST_LINK
        yield shown_id(job_id), context.link("job", queue=doing.queue, id=job_id) if has_page else None
