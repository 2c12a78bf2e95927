"""Continuation: a drain whose time was over before the work was starts its successor, so many times in a row.

Never both that and another start for the same shard: each start is noted in the shard first (store/shard/waking.py).
"""

import logging
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from threading import Thread
from typing import Any, Final

from lowkiq_lambda.aws.environment import Environment
from lowkiq_lambda.aws.events import generation_of
from lowkiq_lambda.engine.loop import Loop
from lowkiq_lambda.providers.aws.invoker import InvocationRefused, Invoker, shared_invoker
from lowkiq_lambda.store.shard.waking import WINDOW, unwake, wake

logger = logging.getLogger(__name__)

RETRY_FOR: Final = 0.5
"""Seconds for which Redis is asked: this is done at the end of an invocation, which has few of them left."""

ANSWER: Final = 0.3
"""Seconds of an invocation that are left for its own answer."""

GENERATIONS: Final = 100
"""How many drains, at most, start one another in a row; then a schedule or a push starts the next."""
_TARGET: Final = ("queue", "shard")
_PROGRESS: Final = ("done", "retried", "dead", "blocked", "rejected", "expired", "cancelled", "checkpointed")


def continue_if_due(
    warm: Environment, event: Mapping[str, Any], loop: Loop, function: str, invoker: Invoker | None = None
) -> bool:
    """Start `function` (name or ARN) once more for the event's selection, if that is due; whether it was.

    It is due if the drain ran out of time with due work for which no other invocation was started, if the drain made
    progress, and if this is not the last of GENERATIONS. An error here is logged: the next schedule goes on too.
    """
    generation = generation_of(event)
    left = [shard for shard, reason in loop.reasons.items() if reason == "out of time"]
    may_start = warm.settings.starts_drains and generation < GENERATIONS
    if not (may_start and left and _got_on(loop)):
        return False
    backend = warm.app.core.backend
    woken = wake(backend, left, WINDOW, RETRY_FOR)
    for error in woken.errors.values():
        logger.warning("the drain does not go on: %s", error)
    if not woken.shards:
        return False
    try:
        (invoker or shared_invoker()).invoke(function, _successor(event, generation))
    except InvocationRefused as error:
        logger.warning("the drain does not go on: %s", error)
        unwake(backend, woken.nonce, woken.shards, RETRY_FOR)
        return False
    logger.info("the drain goes on", extra={"generation": generation + 1})
    return True


def in_time(seconds: float, start: Callable[[], bool]) -> bool:
    """What `start` returns; False where that takes longer than an invocation with so many seconds left may wait."""
    answer: Future[bool] = Future()

    def run() -> None:
        try:
            answer.set_result(start())
        except BaseException as error:  # noqa: BLE001 - raised where the answer is waited for
            answer.set_exception(error)

    left = seconds - ANSWER
    if left > 0:
        # A late start goes on when Lambda thaws the process. A second start is harmless: the shard has one holder.
        Thread(target=run, name="lowkiq-continuation", daemon=True).start()
        try:
            return answer.result(left)
        except TimeoutError:
            if answer.done():
                raise
    logger.warning("the drain does not go on: its successor was not started in the time that was left")
    return False


def _got_on(loop: Loop) -> bool:
    """Whether the next drain has less to do: else it could go on like this for ever."""
    return any(loop.counts[outcome] for outcome in _PROGRESS)


def _successor(event: Mapping[str, Any], generation: int) -> dict[str, Any]:
    """The event of the next drain: the same target."""
    target = {name: event[name] for name in _TARGET if name in event}
    return {**target, "generation": generation + 1}
