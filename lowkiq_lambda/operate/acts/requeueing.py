"""Requeues dead ids in an order, and at a limited rate. No process sleeps: each id has its own due time.

A requeue is a `BulkAction`, so between two steps it is a value that any process may keep, and a second run of a step
finds no ids to requeue. The value includes the number of requeued ids: any process can continue it at its rate.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Literal

import msgspec

from lowkiq_lambda.base.errors import BackendError
from lowkiq_lambda.operate.acts.action_runner import ActionRunner
from lowkiq_lambda.operate.acts.bulk_actions import listed_ids, prepare, steps
from lowkiq_lambda.operate.acts.bulk_progress import BulkAction, Changed
from lowkiq_lambda.operate.acts.requeue_terms import ORDERS, RequeueOptions, RequeueTerms
from lowkiq_lambda.operate.inspect.id_filter import IdFilter, Wanted, filter_by
from lowkiq_lambda.operate.inspect.id_ranges import at_once
from lowkiq_lambda.operate.inspect.jobs import id_texts
from lowkiq_lambda.store.shard.layout import only
from lowkiq_lambda.store.shard.nodes import FAR
from lowkiq_lambda.store.shard.scripts import ReplyShape


class RequeuePreview(msgspec.Struct, frozen=True, kw_only=True):
    """The effect of a requeue on an id: `payloads` would wait, and `stay` would stay in the morgue.

    `due_at`: when it would be due (Unix seconds); None if it would not, or its head is blocked. `place`: how many ids
    of its shard are due before it, including earlier ids of the requeue. `skipped`: why it would not wait: it has no
    payload in the morgue, or a newer payload waits or is in flight; "" if it would.
    """

    id: str
    shard: int
    payloads: int
    stay: int
    due_at: float | None
    place: int
    skipped: Literal["", "not in the morgue", "newer"]


class PreviewReply(ReplyShape, frozen=True):
    """The reply of preview_requeue.lua.

    For each id: payloads that would wait and that would stay, its time, ids before it, and whether it waits already.
    """

    scripts = ("preview_requeue",)
    ids: list[tuple[int, int, bytes, int, int]]


def begin(
    runner: ActionRunner, ids: Iterable[object] | None, criteria: Wanted | None, options: RequeueOptions
) -> BulkAction:
    """The requeue, before its first step. Raises JobError for an impossible id, ValueError, BackendError."""
    if (ids is None) == (criteria is None):
        raise ValueError("Give ids, or a filter: filter={} is everything in the morgue.")
    if unknown := options.keys() - RequeueOptions.__annotations__.keys():
        raise TypeError(f"A requeue has no option {min(unknown)!r}.")
    chosen_ids, chosen_by = None if ids is None else id_texts(ids), filter_by(criteria or {})
    return timed(runner, prepare(runner, "requeue", chosen_ids=chosen_ids, filter=chosen_by), options)


def timed(runner: ActionRunner, action: BulkAction, options: RequeueOptions) -> BulkAction:
    """A requeue or `run_now` on these terms, before its first step. Raises ValueError, BackendError."""
    if action.act == "run_now" and options.get("rate") is None:
        if options.get("start") is not None:
            raise ValueError("A start needs a rate.")
        return action
    reader, start = runner.reader, options.get("start")
    now = reader.backend.now(reader.shards[0])
    terms = {
        "order": options.get("order", "score"),
        "rate": options.get("rate"),
        "start": now if start is None else start,
    }
    if terms["order"] not in ORDERS:
        raise ValueError(f"order must be one of {', '.join(map(repr, ORDERS))}, not {terms['order']!r}.")
    if terms["order"] == "last" and runner.merge == "latest":
        raise ValueError('order="last" gives payloads new scores, which merge="latest" would take for their versions.')
    on_terms = _with_terms(action, terms)
    return on_terms.paced_after(now) if action.act == "run_now" else on_terms


def begin_waiting(runner: ActionRunner, ids: Iterable[object] | None, id_filter: IdFilter, rate: float) -> BulkAction:
    """The same of ids that are due, which wait again. Raises JobError, ValueError, BackendError."""
    chosen_ids = None if ids is None else id_texts(ids)
    action = prepare(runner, "requeue_waiting", chosen_ids=chosen_ids, filter=id_filter, whole_list=True)
    # The first is due after the look at each shard: what is due later than that is left alone.
    looked_at = max((snapshot.at for snapshot in action.snapshots), default=0.0)
    return _with_terms(action, {"order": "score", "rate": rate, "start": looked_at}).paced_after(looked_at)


def _with_terms(action: BulkAction, terms: Mapping[str, object]) -> BulkAction:
    try:
        checked = msgspec.convert(terms, RequeueTerms)
    except msgspec.ValidationError as error:
        raise ValueError(f"These terms cannot work: {error}.") from error
    # An id that is due as late as FAR waits for an operator. NaN as the start fails both comparisons.
    if not (checked.start >= 0 and checked.due_at(action.total) < FAR):
        raise ValueError("These terms cannot work: the last id would be due beyond the year 9999, or before 1970.")
    return msgspec.structs.replace(action, terms=checked)


def carry_out(runner: ActionRunner, action: BulkAction) -> Changed:
    """Do all of it; how many ids wait again. Raises BackendError, with a note that says how to go on."""
    done = action
    try:
        for step in steps(runner, action):
            done = step
    except BackendError as error:
        error.add_note(how_to_go_on(done))
        raise
    return done.result


def how_to_go_on(action: BulkAction) -> str:
    """How another call goes on: it finds in the morgue the ids that this call has not requeued."""
    start = "" if action.terms is None else f" with start={action.terms.due_at(action.changed):.3f}"
    return f"{ids_again(action.changed)}; the same call{start} does the rest at the same rate."


def ids_again(count: int) -> str:
    """So many ids wait again."""
    return "1 id waits again" if count == 1 else f"{count:,} ids wait again"


def previews(runner: ActionRunner, action: BulkAction) -> Iterator[RequeuePreview]:
    """The effect of the steps, id by id, without a write. Raises BackendError."""
    terms, position = action.terms, 0
    if terms is None:
        raise TypeError(f"{action.act} does not requeue: begin it by requeueing.begin.")
    for shard, ids in listed_ids(runner, action):
        reader, start, before = runner.reader._replace(shards=only(shard)), 0, 0
        while start < len(ids):
            part = at_once(ids, start)
            start += len(part)
            args = {shard: [*terms.arguments(position), *part]}
            (ids_by_shard,) = reader.read("preview_requeue", args, lambda _shard, reply: PreviewReply.of(reply).ids)
            for job_id, (payloads, stay, due_at, place, waits) in zip(part, ids_by_shard, strict=True):
                yield RequeuePreview(
                    id=job_id,
                    shard=shard.number,
                    payloads=payloads,
                    stay=stay,
                    due_at=float(due_at) if due_at else None,
                    place=place + before if due_at else 0,
                    skipped="" if payloads else "newer" if stay else "not in the morgue",
                )
                position += bool(payloads)
                before += bool(payloads) and not waits
