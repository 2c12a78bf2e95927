"""The task of a tick that starts drains: one for each free shard with due work, never two for the same."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from lowkiq_lambda.aws.tick import HousekeepingFailed, Tick
from lowkiq_lambda.base.errors import LowkiqError
from lowkiq_lambda.engine.queue import Queue
from lowkiq_lambda.engine.shard_queue import urgency
from lowkiq_lambda.providers.aws.invoker import InvocationRefused, shared_invoker
from lowkiq_lambda.store.shard.keys import ShardRef
from lowkiq_lambda.store.shard.state import ProbeResult, probe_each
from lowkiq_lambda.store.shard.waking import unwake, wake

WINDOW: Final = 50.0
"""Seconds for which a drain that was started may take to come: less than a minute, so that the next tick starts a
second one for an invocation that was lost."""
AT_ONCE: Final = 10
"""Invocations that are under way together: as many connections as boto3 keeps."""


def start_drains(tick: Tick) -> dict[str, int]:
    """How many shards had due work and were free, and how many drains were started for them.

    The most urgent are left to the drain after the tick, as many as it visits at once. A shard is left out where an
    earlier start still counts: of another tick, of a push, of a drain that goes on.
    """
    now_due = _due(tick)
    due = now_due[tick.keep :]
    started = 0
    with ThreadPoolExecutor(AT_ONCE) as threads:
        for at in range(0, len(due), AT_ONCE):
            if tick.remaining() <= 0:
                tick.note(
                    HousekeepingFailed(f"The time was over before {len(due) - at} shards with due work had a drain.")
                )
                break
            part = due[at : at + AT_ONCE]
            woken = wake(tick.app.core.backend, part, WINDOW, tick.retry_for)
            for error in woken.errors.values():
                tick.note(error)
            refused = _start(tick, threads, woken.shards)
            tick.handed.update(set(woken.shards) - set(refused))
            started += len(woken.shards) - len(refused)
            if refused:
                # The next would be refused too, and the next tick tries again.
                unwake(tick.app.core.backend, woken.nonce, refused, tick.retry_for)
                break
    return {"due": len(now_due), "started": started}


def _due(tick: Tick) -> list[ShardRef]:
    """The shards that a drain can be started for, the most urgent first."""
    states: list[ProbeResult] = []
    mine = [queue for queue in tick.queues if tick.settings.drains(queue.worker.queue_name)]
    for state in _probed(tick, mine):
        if isinstance(state, LowkiqError):
            tick.note(state)
        elif state.has_work and state.lag >= tick.app.config.burst_after:
            states.append(state)
    weights = {queue.worker.queue_name: queue.worker.weight for queue in tick.queues}
    states.sort(key=lambda state: urgency(state.lag, weights[state.ref.queue_name]), reverse=True)
    return [state.ref for state in states]


def _probed(tick: Tick, queues: Sequence[Queue]) -> list[ProbeResult | LowkiqError]:
    """The probe results of the shards of the queues, also of shards that a queue turns out to have since."""
    shards = [shard for queue in queues for shard in queue.shards]
    states = probe_each(tick.app.core.backend, shards, tick.retry_for) if shards else []
    by_name = {queue.worker.queue_name: queue for queue in queues}
    for shard, state in zip(shards, states, strict=True):
        if isinstance(state, ProbeResult) and not state.is_open:
            by_name[shard.queue_name].doubt_for(shard)
    before = set(shards)
    doubtful = [tick.app.core.queues.agreed(queue.worker) for queue in queues if not queue.is_agreed]
    new = [shard for queue in doubtful for shard in queue.shards if shard not in before]
    return [*states, *(probe_each(tick.app.core.backend, new, tick.retry_for) if new else [])]


def _start(tick: Tick, threads: ThreadPoolExecutor, shards: Sequence[ShardRef]) -> list[ShardRef]:
    """Invoke the drain function for each; those for which that was refused."""
    invoker = tick.invoker or shared_invoker()

    def start(shard: ShardRef) -> InvocationRefused | None:
        event = {"queue": shard.queue_name, "shard": shard.index}
        try:
            invoker.invoke(tick.invoked_name or tick.function_name, event)
        except InvocationRefused as error:
            return error
        return None

    refused = []
    for shard, error in zip(shards, threads.map(start, shards), strict=True):
        if error:
            tick.note(error)
            refused.append(shard)
    return refused
