"""Checks of the times that a worker declares: when its jobs expire, and for how long they may run."""

import logging
from datetime import timedelta
from typing import Any, Final

from lowkiq_lambda.base.error_text import call_safely
from lowkiq_lambda.base.errors import DeclarationError, PastError
from lowkiq_lambda.declare.worker import TIMES, Worker, in_seconds, is_generator, retry_in_takes_error
from lowkiq_lambda.jobs.job import MAX_EXACT, is_number
from lowkiq_lambda.jobs.retry import MAX_DELAY, safe_delay

logger = logging.getLogger(__name__)

LEAST: Final = {"expires_in": 1.0, "retry_for": 1.0, "max_run_time": 0.001, "resume_in": 0.0}
_EXPIRED: Final = ("discard", "kill")


def check_times(worker: type[Worker[Any]], name: str) -> None:
    """Refuses, with DeclarationError, times that cannot be; warns of a `retry_for` within which nothing is retried."""
    for field in TIMES:
        if getattr(worker, field) is not None:
            check_time(name, field, getattr(worker, field))
    if worker.expired not in _EXPIRED:
        raise DeclarationError(f"{name}.expired must be one of {', '.join(_EXPIRED)}, not {worker.expired!r}.")
    items: object = worker.max_run_items
    if items is not None and (type(items) is not int or not 1 <= items <= MAX_EXACT):
        raise DeclarationError(f"{name}.max_run_items must be a whole number from 1 to {MAX_EXACT:,}, not {items!r}.")
    if items is not None and not is_generator(worker):
        raise DeclarationError(f"{name}.max_run_items is for a perform_job that yields a cursor.")
    waits: float = getattr(worker.debounce, "at_most", 0.0)
    if worker.expires_in is not None and in_seconds(worker.expires_in) <= waits:
        raise DeclarationError(
            f"{name}.expires_in must be more than the {waits:g} seconds for which its debounce may hold an id back, "
            f"not {worker.expires_in!r}: a job would be over before it is due."
        )
    if worker.retry_for is not None:
        _warn_of_short(worker, name, in_seconds(worker.retry_for))


def check_time(name: str, field: str, value: object) -> None:
    """Refuses, with DeclarationError, a value that is not a time, or is shorter than the field may be."""
    seconds = value.total_seconds() if isinstance(value, timedelta) else value
    if not is_number(seconds) or not isinstance(seconds, int | float) or not LEAST[field] <= seconds <= MAX_DELAY:
        least = f"{LEAST[field]:g}"
        raise DeclarationError(f"{name}.{field} must be seconds, at least {least}, or a timedelta, not {value!r}.")


def _warn_of_short(worker: type[Worker[Any]], name: str, seconds: float) -> None:
    arguments: list[Any] = [0]
    if retry_in_takes_error(worker):
        arguments.append(PastError("no error: how long the first delay is", type_name="Exception"))
    answer, _ = call_safely(lambda values: worker().retry_in(*values), arguments)
    delay = safe_delay(answer)
    if delay is not None and delay > seconds:
        text = "%s.retry_for is %g s, and the first retry comes after %g s: no failed job is tried again"
        logger.warning(text, name, seconds, delay)
