"""The drain function: drains the shards that its event selects for as long as its time allows.

An execution environment is warm: settings, app, connections and scripts stay between invocations. Nothing else does:
an invocation asks the server what time it is, and takes leases of its own.
"""

import logging
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, Final

from lowkiq_lambda.aws.environment import Environment, environment
from lowkiq_lambda.aws.events import selected
from lowkiq_lambda.aws.logs import Context, is_cold, logged
from lowkiq_lambda.aws.telemetry import Telemetry, lag_by_queue, reasons_by_queue
from lowkiq_lambda.engine.board import Tour
from lowkiq_lambda.engine.budget import Budget
from lowkiq_lambda.engine.drainer import Drainer
from lowkiq_lambda.error_text import headline
from lowkiq_lambda.errors import BackendError, ForDevelopment, LowkiqError, QueueMismatch
from lowkiq_lambda.store.shard.keys import ShardRef

logger = logging.getLogger(__name__)

_SHOWN: Final = 10
"""How many of the failed shards an error names."""
_SHORTEST: Final = 0.001
"""Seconds of a wait: so that they add up, whatever two clocks make of what is due now."""


class DrainFailed(LowkiqError):
    """Shards could not be drained, or handlers exited; what could be drained was."""


@logged
def handler(event: object, context: Context) -> dict[str, Any]:
    """Drain what the event selects; see `events.py`. Returns the `summary` of it.

    Raises BadEvent and, before anything is drained, ConfigError or AppNotFound. DrainFailed names the shards that
    could not be drained, or whose handlers exited (`sys.exit`), when all others were.
    """
    warm = environment()
    telemetry = Telemetry(warm.settings.metrics_namespace, context.function_name)
    if is_cold():
        telemetry.cold_start()
    drainer = warm.app.drainer
    drainer.observer = telemetry
    tour = drainer.tour(selected(event, drainer.shards()))
    tour.on_first_look = telemetry.started
    _drain(warm, tour, drainer.budget(_seconds(context, warm)))
    _look_once_more(drainer, tour)
    telemetry.ended(tour)
    told = summary(tour)
    # Before what may take longer than there is time for.
    logger.info("drained", extra=told)
    if warm.settings.continuations:
        told["continued"] = _go_on(warm, event, context, tour)
    if tour.errors or tour.exits:
        raise _failed(tour)
    return told


def summary(tour: Tour) -> dict[str, Any]:
    """What an invocation returns: why it ended, ids by outcome, and for each queue its lags and why shards were left.

    `left` is how many shards have work that nobody does now.
    """
    at_start, at_end = lag_by_queue(tour.lags_at_start or {}), lag_by_queue(tour.lags)
    return {
        "reason": tour.reason,
        "counts": dict(tour.counts),
        "left": len(tour.left),
        "queues": {
            queue: {
                "shards": dict(reasons),
                "lag_at_start": _rounded(at_start.get(queue)),
                "lag_at_end": _rounded(at_end.get(queue)),
            }
            for queue, reasons in reasons_by_queue(tour).items()
        },
    }


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


def _drain(warm: Environment, tour: Tour, budget: Budget) -> None:
    drainer, config = warm.app.drainer, warm.app.config
    if not warm.settings.linger:
        drain_and_stay(drainer, budget, tour, warm.settings.stay)
        return
    from lowkiq_lambda.aws.linger import Linger  # noqa: PLC0415 - only where it is asked for
    from lowkiq_lambda.store.shard.bell import Bell  # noqa: PLC0415 - as above

    bell = Bell(warm.app.redis_url, tour.shards, timeout=config.redis_timeout, credentials=config.credentials)
    Linger(drainer, bell, config.poll_interval, drainer.clock).drain(budget, tour)


def _go_on(warm: Environment, event: Any, context: Context, tour: Tour) -> bool:  # noqa: ANN401 - checked already
    from lowkiq_lambda.aws.continuation import continue_if_due, in_time  # noqa: PLC0415 - only where it is asked for

    function = warm.settings.drain_function or context.function_name
    seconds = context.get_remaining_time_in_millis() / 1_000
    return in_time(seconds, lambda: continue_if_due(warm, event, tour, function))


def _look_once_more(drainer: Drainer, tour: Tour) -> None:
    """For the lag that is left, where the last thing was a visit. The reserve has time for it."""
    if tour.looked_last or tour.lags_at_start is None:
        return
    with suppress(BackendError, QueueMismatch):
        tour.lags.update({state.ref: state.lag for state in drainer.probe(tour.to_look_at(None))})


def _failed(tour: Tour) -> DrainFailed:
    sentences = []
    if tour.errors:
        rest = ", the rest was" if len(tour.shards) > len(tour.errors) else ""
        shards = f"{len(tour.errors)} of {len(tour.shards)} shards could not be drained{rest}"
        sentences.append(f"{shards}: {_by_shard(tour.errors)}")
    if tour.exits:
        shards = "Handlers exited, and their jobs were given back"
        sentences.append(f"{shards}: {_by_shard(tour.exits)}")
    failed = DrainFailed(". ".join(sentences))
    failed.__cause__ = next(iter(tour.exits.values()), None)
    return failed


def _by_shard(errors: Mapping[ShardRef, BaseException]) -> str:
    named = [f"shard {shard.index} of {shard.queue_name!r}: {headline(error)}" for shard, error in errors.items()]
    more = f"; and {len(named) - _SHOWN} more" if named[_SHOWN:] else ""
    return "; ".join(named[:_SHOWN]) + more


def _prepare(warm: Environment) -> None:
    """Import what calls Lambda's API, where that may be called: at the end of an invocation there is little time."""
    if warm.settings.continuations or warm.app.config.wake_function:
        from lowkiq_lambda.aws.invoker import shared_invoker  # noqa: PLC0415 - only where it is asked for

        shared_invoker().prepare()


def _rounded(lag: float | None) -> float | None:
    return None if lag is None else round(lag, 3)


if os.environ.get("AWS_LAMBDA_FUNCTION_NAME"):
    # On Lambda this is done while it starts the environment; what cannot work is told by the first invocation, but a
    # function that would need a server for development is none.
    try:
        _prepare(environment())
    except ForDevelopment:
        raise
    except LowkiqError:
        pass


def drain_and_stay(drainer: Drainer, budget: Budget, tour: Tour, seconds: float) -> None:
    """Drain the tour's shards, wait for what is due next in one of them, and drain again; hold no lease meanwhile.

    The waits are less than `seconds` in sum, and none begins that would go on after the budget. Where nothing becomes
    due within them, or nobody knows when, this is `Drainer.drain`.
    """
    drainer.drain(budget, tour)
    while (wait := min(_due_in(drainer, tour), default=seconds)) < min(seconds, budget.remaining()):
        drainer.clock.sleep(wait)
        seconds -= wait
        drainer.drain(budget, tour)


def _due_in(drainer: Drainer, tour: Tour) -> Iterator[float]:
    """In how many seconds each empty shard has work. One that is held or paused may not be had when it is due."""
    for shard, at in tour.next_at.items():
        if tour.reasons.get(shard) == "empty":
            try:
                yield max(_SHORTEST, at - drainer.now(shard))
            except BackendError:
                return
