"""Differences between the declarations of the code and those on the server, and handlers that look wrong."""

import ast
import inspect
from collections.abc import Iterator
from functools import partial
from textwrap import dedent
from typing import TYPE_CHECKING, Any

from msgspec.structs import asdict

from lowkiq_lambda.base.errors import LowkiqError
from lowkiq_lambda.core import Core
from lowkiq_lambda.declare.worker import Worker, is_generator
from lowkiq_lambda.engine.queue import Queue
from lowkiq_lambda.operate.doctor.findings import Finding, Mark
from lowkiq_lambda.operate.doctor.promises import DATA, NOTHING_LOST
from lowkiq_lambda.operate.doctor.queue_state import FoundQueues, QueueState
from lowkiq_lambda.operate.doctor.words import several, some, time
from lowkiq_lambda.operate.inspect.limits import QueueLimits
from lowkiq_lambda.store.server.together import SideLook, side_by_side
from lowkiq_lambda.store.shard.backend import Backend
from lowkiq_lambda.store.shard.declarations import mismatch
from lowkiq_lambda.store.shard.history import LATE
from lowkiq_lambda.store.shard.reader import ShardReader
from lowkiq_lambda.store.shard.scripts import CONTRACT_VERSION
from lowkiq_lambda.views.limits import LimitsView
from lowkiq_lambda.views.queues import QueueMetrics

if TYPE_CHECKING:
    from lowkiq_lambda.jobs.auto import Auto


def code_findings(core: Core, queues: FoundQueues, backend: Backend, *, thorough: bool = True) -> Iterator[Finding]:
    """The findings on each queue of the code, then on queues that only the server has.

    Unless it is `thorough`, the limits of a queue are read only where the shards say that they were set, and no source.
    """
    states = {state.name: state for state in queues.found if state.name in core.queues}
    agreed = []
    limited = [states[name] for name in core.queues if name in states and (thorough or _may_be_limited(states[name]))]
    looks = side_by_side(partial(_limits, core, state, backend) for state in limited)
    limits = {state.name: look for state, look in zip(limited, looks, strict=True)}
    for name, queue in core.queues.items():
        differences = list(_of_queue(queue, states.get(name), backend.prefix))
        if name in limits:
            differences += _of_limits(name, limits[name])
        yield from differences
        agreed += [] if differences else [name]
        if thorough and queue.auto is not None and name in states:
            yield from _of_auto(core, name, queue.auto, backend)
        if thorough and _returns_a_list(queue.worker):
            yield _found(
                "results",
                "warning",
                "its perform_job returns a list: a job with a cursor yields, and the result of others is not read",
                "Write yield for each item, or return nothing.",
                name,
            )
    if agreed:
        yield _found("declarations", "ok", f"the server has {some(agreed)} as the code declares them")
    yield from _undeclared(core, queues)


def _found(check: str, mark: Mark, sentence: str, advice: str = "", about: str = "", *promises: int) -> Finding:
    return Finding(section="code", check=check, mark=mark, says=sentence, advice=advice, about=about, promises=promises)


def _of_queue(queue: Queue, state: QueueState | None, prefix: str) -> Iterator[Finding]:
    name = queue.worker.queue_name
    if state is None:
        yield _found(
            "declarations", "ok", "the server does not know it yet: the first push or drain makes it", "", name
        )
        return
    declared = queue.declaration
    if not state.there.agrees(declared):
        refusal = str(mismatch(name, declared, state.there, prefix))
        sentence, _, advice = refusal.partition(". ")
        yield _found("declarations", "broken", f"{sentence}: its pushes and drains are refused", advice, name, *DATA)
    elif state.there.changing:
        yield _found(
            "declarations",
            "warning",
            "it is being declared anew: its pushes are refused meanwhile",
            "If that broke off, call app.redeclare again, with the worker as it was or as it is to be.",
            name,
        )
    elif queue.auto is None and asdict(declared)["shards_count"] != state.there.made_with["shards_count"]:
        count = state.there.made_with["shards_count"]
        yield _found(
            "declarations",
            "warning",
            f"the code declares shards_count={declared.shards_count}, and it was resharded to {count}: {count} holds",
            f"Write shards_count = {count} in the code when it suits.",
            name,
        )
    if (here := queue.payload) and state.there.payload not in ("", here):
        yield _found(
            "payload types",
            "warning",
            f"the code declares payloads as {here}, and other code declared them last as {state.there.payload}",
            "The docs (payloads.md) say which changes are compatible: old payloads may wait, and old code may run.",
            name,
        )
    if state.notes.least_version > CONTRACT_VERSION:
        least = f"only contract version {state.notes.least_version} or newer may write it"
        sentence = f"{least}, and this library has {CONTRACT_VERSION}"
        yield _found("least version", "broken", sentence, "Upgrade lowkiq_lambda here.", name, NOTHING_LOST)


def _of_auto(core: Core, name: str, bounds: "Auto", backend: Backend) -> Iterator[Finding]:
    """Other apps that declare the queue with other bounds."""
    from lowkiq_lambda.operate.auto.kept import BOUNDS_FOR, read_kept  # noqa: PLC0415 - only where a queue is "auto"

    try:
        kept = read_kept(backend, name, core.config.redis_retry_for)
    except LowkiqError as error:
        yield _found("shards", "unknown", f"what is kept of its shards cannot be read: {error}", "", name)
        return
    now = core.clock.time()
    others = {other for at, other in kept.others if now - at < BOUNDS_FOR and other != bounds}
    if not others:
        return
    narrowest = kept.bounds_with(bounds, now)
    clause = f"another app declares it with other bounds than {bounds.least} to {bounds.most} shards"
    holds = "they exclude each other, so that nothing moves"
    if narrowest is not None:
        holds = f"the narrower hold, {narrowest.least} to {narrowest.most}, lag up to {narrowest.lag:g} s"
    yield _found("shards", "warning", f"{clause}: {holds}", "Declare the same Auto in both.", name)


def _returns_a_list(worker: type[Worker[Any]]) -> bool:
    """Whether a `return` of a `perform_job` that does not yield has a list; False if its source cannot be read."""
    if is_generator(worker) or not hasattr(worker, "perform_job"):
        return False
    try:
        body = ast.parse(dedent(inspect.getsource(inspect.unwrap(worker.perform_job)))).body
    except (OSError, SyntaxError, TypeError):
        return False
    inner = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
    nodes: list[ast.AST] = [node for function in body for node in ast.iter_child_nodes(function)]
    while nodes:
        node = nodes.pop()
        if isinstance(node, ast.Return) and isinstance(node.value, ast.List | ast.ListComp):
            return True
        nodes += [] if isinstance(node, inner) else ast.iter_child_nodes(node)
    return False


def _may_be_limited(state: QueueState) -> bool:
    return not isinstance(state.metrics, QueueMetrics) or state.metrics.limited > 0


def _limits(core: Core, state: QueueState, backend: Backend) -> LimitsView:
    reader = ShardReader(backend, core.config.redis_retry_for, state.shards)
    return QueueLimits(reader, core.queues[state.name].worker).explain()


def _of_limits(name: str, look: SideLook[LimitsView]) -> Iterator[Finding]:
    try:
        limits = look.result
    except LowkiqError as error:
        yield _found("limits", "unknown", f"its limits cannot be read: {error}", "", name)
        return
    if limits.is_set:
        here = f"max_running={limits.max_running}, rate={limits.rate}"
        yield _found(
            "limits",
            "warning",
            f"limits that were set at run time count in place of the code's: {here}",
            "Take them back with app.operate(worker).limits.reset(), or write them in the code.",
            name,
        )


def _undeclared(core: Core, queues: FoundQueues) -> Iterator[Finding]:
    others = [state for state in queues.found if state.name not in core.queues]
    left = [state for state in others if not isinstance(state.metrics, QueueMetrics) or _is_left(state.metrics)]
    for state in left:
        yield _found(
            "other queues",
            "warning",
            f"the code does not declare it, and it holds {_contents(state)}",
            "Restore its worker, or see to the app that has it; or requeue its jobs elsewhere.",
            state.name,
            NOTHING_LOST,
        )
    if others and not left:
        names = some([state.name for state in others])
        yield _found(
            "other queues", "ok", f"{several(len(others), 'queue')} not of this app, and looked after: {names}"
        )
    if not queues.are_all:
        yield _found(
            "other queues",
            "unknown",
            "the user may not SCAN, so queues that the code does not declare are not known",
            "Let the user call SCAN, or look as another one.",
        )


def _is_left(metrics: QueueMetrics) -> bool:
    """Whether it has due work that no process takes: the work of another app's queue is taken."""
    return metrics.oldest_due_age > LATE


def _contents(state: QueueState) -> str:
    metrics = state.metrics
    if not isinstance(metrics, QueueMetrics):
        return f"what cannot be told: {metrics}"
    waiting = several(metrics.length, "waiting id")
    held = f"{waiting}, {metrics.in_flight:,} in flight and {metrics.morgue_length:,} in the morgue"
    return f"{held}, of which the oldest has been due for {time(metrics.oldest_due_age)}"
