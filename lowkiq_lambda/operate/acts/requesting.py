"""Requests for single ids: cancel, pause and resume them, whether they wait or run."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import msgspec

from lowkiq_lambda.base.errors import RequestsFull
from lowkiq_lambda.declare.worker import Worker, is_coroutine, is_generator
from lowkiq_lambda.operate.acts.action_runner import ActionRunner
from lowkiq_lambda.operate.acts.action_scripts import UNDOABLE, ActionName, ShardSnapshot
from lowkiq_lambda.operate.acts.bulk_progress import new_action_id
from lowkiq_lambda.operate.inspect.jobs import by_shard, id_texts
from lowkiq_lambda.store.shard.keys import REQUESTS
from lowkiq_lambda.store.shard.notifications import ask_holder
from lowkiq_lambda.store.shard.scripts import Argument
from lowkiq_lambda.views.requests import Requested, StopsAt

LONGEST_NAME: Final = 200
"""Characters of an operator's name that are kept."""
_WORDS: Final = ("done", "asked", "gone", "full")
"""Those of the scripts."""
_CANCELLED: Final = "cancelled by an operator"


def stops_at(worker: type[Worker[Any]] | None, *, cancels: bool) -> StopsAt | None:
    """Where a run of the worker stops for a cancel, or else for a pause; None without a worker."""
    if worker is None:
        return None
    return "yield" if is_generator(worker) else "await" if cancels and is_coroutine(worker) else "end"


def cancel(
    runner: ActionRunner, ids: Iterable[object], by: str, worker: type[Worker[Any]] | None, *, kill: bool
) -> Requested:
    """Stop ids for good. Raises JobError, RequestsFull, BackendError."""
    error: Argument = runner.dump_error(_CANCELLED) if kill else ""
    answer = _ask(runner, "kill_cancelled" if kill else "cancel", ids, lambda _: (error, _named(by)))
    return msgspec.structs.replace(answer, stops_at=stops_at(worker, cancels=True))


def pause_jobs(
    runner: ActionRunner,
    ids: Iterable[object],
    end_of: Callable[[float], Argument],
    by: str,
    worker: type[Worker[Any]] | None,
) -> Requested:
    """Pause ids, each by itself. Raises JobError, RequestsFull, BackendError."""
    answer = _ask(runner, "pause_jobs", ids, lambda snapshot: (end_of(snapshot.at), _named(by)))
    return msgspec.structs.replace(answer, stops_at=stops_at(worker, cancels=False))


def resume_jobs(runner: ActionRunner, ids: Iterable[object]) -> Requested:
    """End the pauses of ids. Raises JobError, BackendError."""
    return _ask(runner, "resume_jobs", ids, lambda _: ())


def _named(by: str) -> str:
    return by.encode(errors="backslashreplace").decode()[:LONGEST_NAME]


def _ask(
    runner: ActionRunner,
    act: ActionName,
    ids: Iterable[object],
    details: Callable[[ShardSnapshot], Sequence[Argument]],
) -> Requested:
    texts, reader = id_texts(ids), runner.reader
    words: dict[str, str] = {}
    action_id, can_undo = new_action_id() if act in UNDOABLE else "", False
    for shard, of_shard in by_shard(dict.fromkeys(texts), reader.shards).items():
        (snapshot,) = runner.snapshots([shard.using((REQUESTS,))])
        left, resume = list(of_shard), b""
        while left:
            progress = runner.call_once(act, snapshot, left, 0, resume, *details(snapshot), action_id=action_id)
            words |= progress.words
            can_undo = can_undo or progress.undoable > 0
            left, resume = left[progress.finished :], progress.resume
        ask_holder(reader.backend, shard, [words[job_id] for job_id in of_shard if job_id in words])
    at_once, in_flight, gone, full = ([job_id for job_id in words if words[job_id] == word] for word in _WORDS)
    if full:
        raise RequestsFull(
            f"{len(full):,} ids, the first of them {full[0]!r}, were not asked for, as their shards have "
            "10,000 requests already: resume ids that are paused, or wait until runs have ended."
        )
    return Requested(at_once, in_flight, gone, action_id if can_undo else "")
