"""The drain function: drains the shards that its event selects for as long as its time allows, after a tick if asked.

An execution environment is warm: settings, app, connections and scripts stay between invocations. Nothing else does:
an invocation asks the server what time it is, and takes leases of its own.
"""

import logging
import os
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from lowkiq_lambda.aws.collector import settle
from lowkiq_lambda.aws.environment import Environment, answering, environment, flushing
from lowkiq_lambda.aws.events import ALONE, selection, ticks
from lowkiq_lambda.aws.logs import Context, invoked_name, is_cold, logged
from lowkiq_lambda.aws.telemetry import summary, telemetry_of
from lowkiq_lambda.base.error_text import headline
from lowkiq_lambda.base.errors import BackendError, ForDevelopment, LowkiqError, QueueMismatch
from lowkiq_lambda.engine.budget import Budget
from lowkiq_lambda.store.shard.keys import ShardRef

if TYPE_CHECKING:
    from lowkiq_lambda.aws.ticking import TickOutcome
    from lowkiq_lambda.engine.loop import Loop

logger = logging.getLogger(__name__)

_SHOWN: Final = 10
"""How many of the failed shards an error names."""
_SHORTEST: Final = 0.001
"""Seconds of a wait: so that they add up, whatever two clocks make of what is due now."""


class DrainFailed(LowkiqError):
    """Shards could not be drained, or handlers exited; what could be drained was."""


class Stay:
    """Waits for what is due next in a shard, so that the drain goes on with it; holds no lease meanwhile.

    The waits are less than `seconds` in sum, and none begins that would go on after the budget.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def __call__(self, loop: "Loop", budget: Budget) -> bool:
        """Wait; False, at once, where nothing becomes due in time, or nobody knows when."""
        clock = loop.drainer.clock
        # What is held or paused may not be had when it is due.
        empty = [shard for shard, reason in loop.reasons.items() if reason == "empty"]
        wait = max(_SHORTEST, loop.board.wait_until(empty) - clock.monotonic())
        if wait >= min(self._seconds, budget.remaining()):
            return False
        clock.sleep(wait)
        self._seconds -= wait
        return True


@logged
def handler(event: object, context: Context) -> dict[str, Any]:
    """Drain what the event selects; see `events.py`. Returns the `summary` of it.

    Raises BadEvent and, before anything is drained, ConfigError or AppNotFound. DrainFailed names the shards that
    could not be drained, or whose handlers exited (`sys.exit`), when all others were; HousekeepingFailed what went
    wrong in a tick, when all else was done; NotFlushed says that jobs which handlers pushed are still in this process.
    """
    with answering(context):
        warm = environment()
        with flushing(warm.app, context):
            return _ticked_and_drained(warm, event, context)


def _ticked_and_drained(warm: Environment, event: object, context: Context) -> dict[str, Any]:
    ticks_wanted = ticks(event)
    if not ticks_wanted:
        return _drained(warm, event, context)
    from lowkiq_lambda.aws.ticking import tick_alone, ticked  # noqa: PLC0415 - most events ask for none

    if ticks_wanted == ALONE:
        return tick_alone(warm.app, warm.settings, context)
    selection(event, warm.app.core.drains.drainer, warm.settings)
    done = ticked(warm.app, warm.settings, context, keep=warm.app.config.threads_per_node)
    try:
        answer = _drained(warm, event, context, done)
    except DrainFailed as failed:
        raise (DrainFailed(f"{failed} {done.failure}") if done.failure else failed) from failed.__cause__
    if done.failure:
        raise done.failure
    return answer


def _drained(warm: Environment, event: object, context: Context, tick: "TickOutcome | None" = None) -> dict[str, Any]:
    handed = tick.handed if tick else frozenset[ShardRef]()
    telemetry = telemetry_of(warm.settings, context.function_name)
    if is_cold():
        telemetry.cold_start()
    drainer = warm.app.core.drains.drainer
    drainer.observer = telemetry
    shards = selection(event, drainer, warm.settings, handed)
    loop = warm.app.core.drains.loop(shards, at_once=warm.app.config.threads_per_node)
    loop.on_first_probe = telemetry.started
    budget = Budget(drainer.clock, _seconds(context, warm))
    # Else the function would be killed with what runs, and nobody would know why.
    budget.is_hard = True
    # `lowkiq stack invoke` runs this in a terminal; on Lambda there is none, and the process would die for one job.
    budget.is_unattended = "AWS_LAMBDA_FUNCTION_NAME" in os.environ
    with ExitStack() as heartbeats:
        loop.after_probe = partial(_begin_heartbeats, warm, budget, heartbeats)
        _run(warm, loop, budget)
    _probe_once_more(loop)
    telemetry.ended(loop)
    answer = {**({"tick": tick.summary} if tick else {}), **summary(loop)}
    # Before what may take longer than there is time for.
    logger.info("drained", extra=telemetry.line(answer))
    if warm.settings.starts_drains:
        answer["continued"] = _go_on(warm, event, context, loop)
    if loop.errors or loop.exits:
        raise _failed(loop)
    return answer


def _seconds(context: Context, warm: Environment) -> float:
    remaining = context.get_remaining_time_in_millis() / 1_000
    if remaining <= warm.settings.reserve:
        logger.warning(
            "nothing can be drained: %.1f s are left and LOWKIQ_RESERVE keeps %.1f of them back; give the function "
            "a longer timeout",
            remaining,
            warm.settings.reserve,
        )
    return remaining - warm.settings.reserve


def _run(warm: Environment, loop: "Loop", budget: Budget) -> None:
    # Notifications are for daemons, where drains burst.
    if not (warm.settings.lingers and loop.shards) or warm.app.config.burst_after:
        loop.run(budget, Stay(warm.settings.stay))
        return
    from lowkiq_lambda.aws.linger import Linger  # noqa: PLC0415 - only where it is asked for
    from lowkiq_lambda.store.shard.notifications import Notifications  # noqa: PLC0415 - as above

    config = warm.app.config
    subscription = Notifications(
        warm.app.core.connections.url,
        loop.shards,
        timeout=config.redis_timeout,
        credentials=config.credentials,
        client=config.redis,
    )
    Linger(subscription).run(loop, budget)


def _begin_heartbeats(warm: Environment, budget: Budget, heartbeats: ExitStack, loop: "Loop") -> None:
    """With the first work: an invocation that finds none, and does not wait for any, is over before anybody looks."""
    if loop.left or warm.settings.lingers:
        from lowkiq_lambda.aws.invocation_heartbeat import InvocationHeartbeat  # noqa: PLC0415 - imported lazily: cold start

        heartbeats.enter_context(InvocationHeartbeat(warm.app, loop, budget))


def _go_on(warm: Environment, event: Any, context: Context, loop: "Loop") -> bool:  # noqa: ANN401 - checked already
    from lowkiq_lambda.aws.continuation import continue_if_due, in_time  # noqa: PLC0415 - only where it is asked for

    seconds = context.get_remaining_time_in_millis() / 1_000
    return in_time(seconds, lambda: continue_if_due(warm, event, loop, invoked_name(context)))


def _probe_once_more(loop: "Loop") -> None:
    """For the lag that is left, where the last thing was a visit. The reserve has time for it."""
    if loop.has_probed_last or loop.lags_at_start is None:
        return
    with suppress(BackendError, QueueMismatch):
        loop.lags.update({result.ref: result.lag for result in loop.drainer.probe(loop.to_probe())})


def _failed(loop: "Loop") -> DrainFailed:
    sentences = []
    if loop.errors:
        rest = ", the rest was" if len(loop.shards) > len(loop.errors) else ""
        shards = f"{len(loop.errors)} of {len(loop.shards)} shards could not be drained{rest}"
        sentences.append(f"{shards}: {_by_shard(loop.errors)}")
    if loop.exits:
        shards = "Handlers exited, and their jobs were given back"
        sentences.append(f"{shards}: {_by_shard(loop.exits)}")
    failed = DrainFailed(". ".join(sentences))
    failed.__cause__ = next(iter(loop.exits.values()), None)
    return failed


def _by_shard(errors: Mapping[ShardRef, BaseException]) -> str:
    lines = [f"shard {shard.number} of {shard.queue_name!r}: {headline(error)}" for shard, error in errors.items()]
    more = f"; and {len(lines) - _SHOWN} more" if lines[_SHOWN:] else ""
    return "; ".join(lines[:_SHOWN]) + more


def _prepare(warm: Environment) -> None:
    """Import what ticks, and what calls Lambda's API where that may be called: later that would take longer."""
    if warm.settings.starts_drains or isinstance(warm.app.config.wake_function, str):
        from lowkiq_lambda.providers.aws.invoker import shared_invoker  # noqa: PLC0415 - only where it is asked for

        shared_invoker().prepare()


if os.environ.get("AWS_LAMBDA_FUNCTION_NAME"):
    # On Lambda this is done while it starts the environment; what cannot work is told by the first invocation, but a
    # function that would need a server for development is none.
    try:
        _prepare(environment())
    except ForDevelopment:
        raise
    except LowkiqError:
        pass
    finally:
        settle()
