"""Failures of payloads that expire: none is retried beyond its time."""

from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from lowkiq_lambda.declare.worker import Worker, in_seconds
from lowkiq_lambda.engine.deciding import Fate
from lowkiq_lambda.engine.failure import CountedFailure, ErrorText
from lowkiq_lambda.jobs.job import Delivery

EXPIRED: Final = "expired"
"""In place of a rule, for a failure that was the last as the time of its payload is over."""


def bounded(  # noqa: PLR0913, PLR0917 - the failure, and all that decides about it
    worker: type[Worker[Any]], texts: ErrorText, delivery: Delivery, failure: CountedFailure, fate: Fate, now: float
) -> tuple[CountedFailure, Fate, float | None]:
    """The failure of a delivery and its fate, as the time of its oldest payload allows.

    And the expiry that the payload gets with its retry, if it had a later one, or none. The count is that of its tries.
    """
    own = delivery.expiries[0] if delivery.expiries else float("inf")
    latest = own if worker.retry_for is None else min(own, now + in_seconds(worker.retry_for))
    if delivery.retry_count >= 0 and own < float("inf"):
        # Only the first failure sets it.
        latest = own
    if fate.act != "retry":
        return failure, fate, None
    # What did not run, as its group failed, is given one retry: it is over then, or is not.
    if failure.is_charged or now + fate.delay <= latest:
        return failure, fate, latest if latest < own else None
    tries = int(delivery.retry_count) + 2
    text = f"{expired_at(latest)} {_after(tries)}: {texts.text(failure.error)}"
    last = texts.failure(text, blamed=failure.blamed)
    over = msgspec.structs.replace(failure, dumped=last.dumped, brief=last.brief)
    return over, Fate("kill" if worker.expired == "kill" else "discard", rule=EXPIRED, why=EXPIRED), None


def last_failure(texts: ErrorText, delivery: Delivery) -> CountedFailure:
    """The last failure of a delivery whose oldest payload was over before its retry."""
    tries = int(delivery.retry_count) + 1
    error = "" if delivery.error is None else texts.read(delivery.error)
    return texts.failure(f"{expired_at(delivery.expiries[0])} {_after(tries)}: {error}", blamed=False)


def _after(tries: int) -> str:
    return f"after {tries} {'try' if tries == 1 else 'tries'}"


def expired_at(time: float) -> str:
    """The beginning of the error of what has expired."""
    return f"expired at {datetime.fromtimestamp(time, UTC):%Y-%m-%dT%H:%M:%SZ}"
