"""Rules by error: which failures of a worker are tried again, which go to the morgue at once, and which are dropped."""

import logging
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from typing import Any, Final, Literal, TypeAlias, TypeVar

import msgspec

from lowkiq_lambda.base.error_text import call_safely, cut, is_a, loggable, shown
from lowkiq_lambda.base.errors import DeclarationError, Rejected
from lowkiq_lambda.jobs.retry import Later, safe_delay, takes_error
from lowkiq_lambda.settings.protocols import is_awaited

logger = logging.getLogger(__name__)

Act: TypeAlias = Literal["retry", "kill", "discard"]
Error = TypeVar("Error", bound=Exception)
Seconds: TypeAlias = float | timedelta

LONGEST_NAME: Final = 100
"""Characters of a rule's name, which Redis keeps with each failure that the rule decided."""
_NO_ERRORS: Final = (Later, Rejected)


class ErrorRule(msgspec.Struct, frozen=True):
    """A rule of `Worker.on_error`, as `retry_on`, `kill_on` and `discard_on` make it.

    `name`: what people see of it, as in `kill_on(SchemaError)`.
    """

    act: Act
    classes: tuple[type[Exception], ...]
    name: str
    when: Callable[[Any], object] | None = None
    delay: float | Callable[..., object] | None = None
    delay_takes_error: bool = False
    most: int | None = None
    all: bool = False

    def __repr__(self) -> str:
        return self.name

    def fits(self, error: BaseException) -> tuple[bool, BaseException | None]:
        """Whether it decides about the error, and what `when` raised. All leaves of an exception group must fit."""
        if not is_a(error, self.classes) and is_a(error, BaseExceptionGroup):
            leaves = error.exceptions
            verdicts = [self.fits(leaf) for leaf in leaves]
            return all(fits for fits, _ in verdicts), next(
                (broken for _, broken in verdicts if broken is not None), None
            )
        if not is_a(error, self.classes):
            return False, None
        if self.when is None:
            return True, None
        when = self.when
        fits, broken = call_safely(lambda raised: bool(when(raised)), error)
        return bool(fits), broken

    def seconds(self, retry_count: int, error: object) -> object:
        """What `delay` makes of a failure with this count. Raises what it raises."""
        if not callable(self.delay):
            return self.delay
        answer = self.delay(retry_count, error) if self.delay_takes_error else self.delay(retry_count)
        return answer.total_seconds() if isinstance(answer, timedelta) else answer


def retry_on(
    *classes: type[Error],
    delay: Seconds | Callable[[int], Seconds] | Callable[[int, Error], Seconds] | None = None,
    most: int | None = None,
    when: Callable[[Error], object] | None = None,
) -> ErrorRule:
    """These errors are tried again: after `delay`, `most` times.

    `delay`: seconds, a timedelta, or a function of the retry count (0 for the first), or of the count and the error;
    None: `Worker.retry_in` decides. `most`: None, or more than `max_retry_count`: as often as other errors.
    `when(error)`: the rule holds only if this is true. Raises DeclarationError for what cannot be.
    """
    checked = _checked_classes("retry_on", classes)
    name = _name("retry_on", checked, when, most)
    _check_when(name, when)
    if most is not None and (type(most) is not int or most < 0):
        raise DeclarationError(f"{name}: most must be a whole number from 0, not {shown(most)}.")
    seconds, sees_error = _checked_delay(name, delay)
    return ErrorRule("retry", checked, name, when, seconds, sees_error, most)


def kill_on(*classes: type[Error], when: Callable[[Error], object] | None = None) -> ErrorRule:
    """These errors are not tried again: the oldest payload goes to the morgue at once, and `dead_head` says the rest.

    `when(error)`: the rule holds only if this is true. Raises DeclarationError for what cannot be.
    """
    checked = _checked_classes("kill_on", classes)
    name = _name("kill_on", checked, when)
    _check_when(name, when)
    return ErrorRule("kill", checked, name, when)


def discard_on(
    *classes: type[Error],
    when: Callable[[Error], object] | None = None,
    all: bool = False,  # noqa: A002 - the word that says it
) -> ErrorRule:
    """These errors say that the job is obsolete: its oldest payload is dropped, and the others of its id run.

    `all`: all payloads that the handler got of the id are dropped. `when(error)`: the rule holds only if this is true.
    Raises DeclarationError for what cannot be.
    """
    checked = _checked_classes("discard_on", classes)
    name = _name("discard_on", checked, when)
    _check_when(name, when)
    if type(all) is not bool:
        raise DeclarationError(f"{name}: all must be True or False, not {shown(all)}.")
    return ErrorRule("discard", checked, name, when, all=all)


def check_rules(worker: str, rules: object) -> None:
    """Refuses, with DeclarationError, what `on_error` cannot be."""
    if not isinstance(rules, tuple | list):
        comma = ": put a comma behind it, on_error = (rule,)" if isinstance(rules, ErrorRule) else ""
        raise DeclarationError(f"{worker}.on_error must be a tuple of rules, not {shown(rules)}{comma}.")
    for rule in rules:
        if not isinstance(rule, ErrorRule):
            raise DeclarationError(
                f"{worker}.on_error has {shown(rule)}, which is not a rule: write retry_on, kill_on or discard_on."
            )
    for position, rule in enumerate(rules):
        for earlier in rules[:position]:
            if earlier.when is None and all(issubclass(cls, earlier.classes) for cls in rule.classes):
                raise DeclarationError(
                    f"{worker}.on_error: {rule.name} never decides, because {earlier.name} stands before it and takes "
                    "its errors: put it first."
                )


def rule_for(worker: str, rules: Sequence[ErrorRule], error: BaseException | str) -> ErrorRule | None:
    """The first rule of the worker of this name that fits the error; None for a text, which has no class.

    If the `when` of a rule raises, that is logged, and the rule does not fit.
    """
    for rule, fits, broken in _tried(rules, error):
        if broken is not None:
            message = "%s: when of %s raised: the rule does not decide"
            logger.error(message, worker, rule.name, exc_info=loggable(broken))
        if fits:
            return rule
    return None


def is_discarded(rules: Sequence[ErrorRule], error: BaseException | str) -> bool:
    """Whether one of the rules discards a job that fails with the error by itself: then it has not failed."""
    return next((rule.act == "discard" for rule, fits, _ in _tried(rules, error) if fits), False)


def _tried(
    rules: Sequence[ErrorRule], error: BaseException | str
) -> Iterator[tuple[ErrorRule, bool, BaseException | None]]:
    """Each rule, whether it fits, and what its `when` raised."""
    if is_a(error, BaseException):
        for rule in rules:
            yield rule, *rule.fits(error)


def _name(function: str, classes: Sequence[type], when: object, most: object = None) -> str:
    """The rule as people see it: a function is known by its name, and has none if it is a lambda."""
    words = [_printable(cls.__name__) for cls in classes]
    if when is not None:
        own = getattr(when, "__name__", "...")
        words.append(f"when={'...' if own == '<lambda>' else _printable(str(own))}")
    if most is not None:
        words.append(f"most={shown(most, 20)}")
    return cut(f"{function}({', '.join(words)})", LONGEST_NAME)


def _printable(name: str) -> str:
    """Without what no text of Redis can be: the name of a class may hold a lone surrogate."""
    return name.encode(errors="backslashreplace").decode()


def _checked_classes(function: str, classes: Sequence[object]) -> tuple[type[Exception], ...]:
    if not classes:
        raise DeclarationError(f"{function}() has no class: name the errors that it is for.")
    checked: list[type[Exception]] = []
    for cls in classes:
        if not isinstance(cls, type) or not issubclass(cls, Exception) or issubclass(cls, _NO_ERRORS):
            name = cls.__name__ if isinstance(cls, type) else shown(cls)
            what = "is no error" if isinstance(cls, type) else "is no class"
            raise DeclarationError(f"{function}({name}): {name} {what}: name subclasses of Exception.")
        checked.append(cls)
    return tuple(checked)


def _check_when(name: str, when: object) -> None:
    if when is None:
        return
    if not callable(when) or is_awaited(when):
        raise DeclarationError(f"{name}: when must be a plain function of the error, not {shown(when)}.")
    if not takes_error(when):
        raise DeclarationError(f"{name}: when must be a function of the error alone, not {shown(when)}.")


def _checked_delay(name: str, delay: object) -> tuple[Any, bool]:
    """The delay in seconds, or the function; and whether that takes the error."""
    if delay is None:
        return None, False
    if callable(delay):
        sees_error = None if is_awaited(delay) else takes_error(delay, 0)
        if sees_error is None:
            raise DeclarationError(
                f"{name}: delay must be a plain function of (retry_count) or (retry_count, error), not {shown(delay)}."
            )
        return delay, sees_error
    seconds = safe_delay(delay.total_seconds() if isinstance(delay, timedelta) else delay)
    if seconds is None:
        raise DeclarationError(f"{name}: delay must be seconds, a timedelta or a function, not {shown(delay)}.")
    return seconds, False
