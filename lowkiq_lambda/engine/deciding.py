"""The decision about an id whose failure counts, as the worker declares, and the record of it."""

import logging
from random import SystemRandom
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from lowkiq_lambda.base.error_text import call_safely, loggable, shown
from lowkiq_lambda.base.errors import PastError
from lowkiq_lambda.declare.worker import Worker, retry_in_takes_error
from lowkiq_lambda.engine.failure import CountedFailure, digits
from lowkiq_lambda.jobs.job import PLACE, Delivery, WhyDead
from lowkiq_lambda.jobs.retry import DISCARD, KILL, default_retry_in, safe_delay
from lowkiq_lambda.store.shard.session import OutcomeRecord

if TYPE_CHECKING:
    from lowkiq_lambda.declare.error_rules import Act, ErrorRule

logger = logging.getLogger(__name__)

_rng: Final = SystemRandom()


class Fate(NamedTuple):
    """The fate of an id that has failed.

    `delay`: seconds until its retry. `rule`: the name of the rule that decided, "" for none. `why` it dies: its retries
    are used up, or a rule says so. `all`: all of its delivered payloads are discarded, and not the oldest alone.
    """

    act: "Act"
    delay: float = 0.0
    rule: str = ""
    why: WhyDead = "retries"
    all: bool = False


def decide(worker: type[Worker[Any]], failure: CountedFailure, retry_count: int) -> Fate:
    """Decide by the first rule that fits the error, then by `retry_in`. No rule decides about an id that did not run.

    `retry_count`: that of the failure, 0 for the first.
    """
    rule = None if failure.is_charged or not worker.on_error else _rule_for(worker, failure)
    if rule is None:
        return _by_retry_in(worker, failure, retry_count)
    if rule.act != "retry":
        return Fate(rule.act, rule=rule.name, why="rule", all=rule.all)
    if retry_count >= worker.max_retry_count:
        return Fate("kill", rule=rule.name)
    if rule.most is not None and retry_count >= rule.most:
        return Fate("kill", rule=rule.name, why="rule")
    return Fate("retry", _delay_of(worker, rule, failure, retry_count), rule.name)


def _rule_for(worker: type[Worker[Any]], failure: CountedFailure) -> "ErrorRule | None":
    from lowkiq_lambda.declare.error_rules import rule_for  # noqa: PLC0415 - only for workers with rules

    return rule_for(worker.__name__, worker.on_error, failure.error)


def _by_retry_in(worker: type[Worker[Any]], failure: CountedFailure, retry_count: int) -> Fate:
    if retry_count >= worker.max_retry_count:
        return Fate("kill")
    answer = _retry_in(worker, failure, retry_count)
    if not failure.is_charged and answer is KILL:
        return Fate("kill", rule="retry_in: KILL", why="rule")
    if not failure.is_charged and answer is DISCARD:
        return Fate("discard", rule="retry_in: DISCARD", why="rule")
    return Fate("retry", _safe(answer, retry_count))


def _delay_of(worker: type[Worker[Any]], rule: "ErrorRule", failure: CountedFailure, retry_count: int) -> float:
    if rule.delay is None:
        return _safe(_retry_in(worker, failure, retry_count), retry_count)
    answer, broken = call_safely(lambda error: rule.seconds(retry_count, error), failure.error)
    if broken is not None:
        message = "%s: delay of %s raised: the default delay is taken"
        logger.error(message, worker.__name__, rule.name, exc_info=loggable(broken))
    elif safe_delay(answer) is None:
        message = "%s: delay of %s returned %s: the default delay is taken"
        logger.error(message, worker.__name__, rule.name, shown(answer))
    return _safe(answer, retry_count)


def _retry_in(worker: type[Worker[Any]], failure: CountedFailure, retry_count: int) -> object:
    """What `retry_in` answers: if that cannot be, it is logged."""
    arguments: list[Any] = [retry_count]
    if retry_in_takes_error(worker):
        arguments.append(_past(str(failure.error)) if failure.is_charged else failure.error)
    answer, broken = call_safely(lambda values: worker().retry_in(*values), arguments)
    if broken is not None:
        logger.error("%s.retry_in raised: the default delay is taken", worker.__name__, exc_info=loggable(broken))
    elif safe_delay(answer) is None and answer is not KILL and answer is not DISCARD:
        logger.error("%s.retry_in returned %s: the default delay is taken", worker.__name__, shown(answer))
    return answer


def _past(text: str) -> PastError:
    from lowkiq_lambda.base.fingerprint import first_line, type_of  # noqa: PLC0415 - few workers need it

    return PastError(text, type_name=type_of(first_line(text)))


def _safe(answer: object, retry_count: int) -> float:
    delay = safe_delay(answer)
    return default_retry_in(retry_count, _rng) if delay is None else delay


FAILED_WITH: Final = {"retried": 4, "dead": 2, "blocked": 2}
"""Where the record of a failure has its stored error; the signature comes next."""


def retry_record(  # noqa: PLR0913, PLR0917 - the parts of the record
    delivery: Delivery,
    failure: CountedFailure,
    count: float,
    due_at: float,
    rule: str,
    expiry: float | None = None,
) -> OutcomeRecord:
    """A retry, as include/outcomes.lua reads it. `expiry`: the oldest payload has it from now on."""
    marks = failure.signature, failure.blamed, failure.brief
    more = (rule, expiry) if expiry is not None else (rule,) if rule else ()
    return delivery.id, "retried", count, due_at, failure.dumped, *marks, *more


def end_record(worker: type[Worker[Any]], delivery: Delivery, failure: CountedFailure, end: Fate) -> OutcomeRecord:
    """A failure without a retry, as include/outcomes.lua reads it."""
    if end.act == "discard" and end.why == "expired":
        return delivery.id, "expired", "", failure.brief, int.from_bytes(delivery.entries[0][8:PLACE])
    if end.act == "discard":
        return delivery.id, "discarded", failure.brief, digits(failure.error), end.rule, int(end.all)
    rule = (end.rule,) if end.rule else ()
    # An error that a rule calls permanent is the job's own, and so is its time: others of its group have to run, to be
    # decided each.
    signature = "" if end.why in {"rule", "expired"} else failure.signature
    if worker.dead_head == "block":
        return delivery.id, "blocked", failure.dumped, signature, failure.brief, *rule
    others = (worker.dead_head,) if rule or worker.dead_head != "skip" else ()
    return delivery.id, "dead", failure.dumped, signature, failure.brief, *others, *rule
