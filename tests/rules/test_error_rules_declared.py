"""What rules by error may not be, alone and together; and where they may be declared (SK-5)."""

import asyncio
import math
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, ClassVar

import pytest

import lowkiq_lambda
from lowkiq_lambda import (
    KILL,
    Batch,
    DeclarationError,
    ErrorRule,
    Later,
    Lowkiq,
    Rejected,
    Worker,
    discard_on,
    kill_on,
    retry_on,
)
from tests.kit.handlers import Broken, Notes
from tests.kit.workers import declare


class Lost(Broken):
    """A special one."""


api: Any = lowkiq_lambda
"""Type checkers refuse most of these, too."""


async def coroutine(*_arguments: object) -> bool:
    """What no rule can call."""
    return True


class CalledAsCoroutine:
    """An object of the same kind."""

    async def __call__(self, *_arguments: object) -> bool:
        """Called and awaited."""
        return True


@pytest.mark.parametrize(
    ("declared", "why"),
    [
        (retry_on, r"retry_on\(\) has no class: name the errors"),
        (kill_on, r"kill_on\(\) has no class"),
        (discard_on, r"discard_on\(\) has no class"),
        (lambda: api.kill_on("Broken"), r"kill_on\('Broken'\): 'Broken' is no class: name subclasses of Exception"),
        (lambda: api.kill_on(KeyboardInterrupt), r"kill_on\(KeyboardInterrupt\): KeyboardInterrupt is no error"),
        (lambda: api.kill_on(SystemExit), "SystemExit is no error"),
        (lambda: api.kill_on(asyncio.CancelledError), "CancelledError is no error"),
        (lambda: api.kill_on(BaseException), "BaseException is no error"),
        (lambda: api.retry_on(Later), "Later is no error"),
        (lambda: api.discard_on(Rejected), "Rejected is no error"),
        (lambda: api.kill_on(int), "int is no error"),
        (lambda: api.kill_on(Broken, Broken()), "Broken.. is no class"),
        (
            lambda: api.retry_on(Broken, most=-1),
            r"retry_on\(Broken, most=-1\): most must be a whole number from 0",
        ),
        (lambda: api.retry_on(Broken, most=True), "most must be a whole number from 0, not True"),
        (lambda: api.retry_on(Broken, most=1.0), "most must be a whole number from 0, not 1.0"),
        (
            lambda: api.retry_on(Broken, delay=-1),
            r"retry_on\(Broken\): delay must be seconds, a timedelta or a function",
        ),
        (lambda: api.retry_on(Broken, delay="30"), "delay must be seconds, .*, not '30'"),
        (lambda: api.retry_on(Broken, delay=math.nan), "delay must be seconds, .*, not nan"),
        (lambda: api.retry_on(Broken, delay=True), "delay must be seconds, .*, not True"),
        (lambda: api.retry_on(Broken, delay=KILL), "delay must be seconds, .*, not KILL"),
        (
            lambda: api.retry_on(Broken, delay=timedelta(seconds=-1)),
            "delay must be seconds, a timedelta or a function",
        ),
        (lambda: api.retry_on(Broken, delay=lambda: 1), r"delay must be a plain function of \(retry_count\) or "),
        (
            lambda: api.retry_on(Broken, delay=coroutine),
            "delay must be a plain .* not <function coroutine",
        ),
        (
            lambda: api.retry_on(Broken, delay=CalledAsCoroutine()),
            "delay must be a plain .* not <.*CalledAs",
        ),
        (lambda: api.kill_on(Broken, when=True), "when must be a plain function of the error, not True"),
        (
            lambda: api.kill_on(Broken, when=coroutine),
            r"kill_on\(Broken, when=coroutine\): when must be a plain",
        ),
        (lambda: api.discard_on(Broken, when=CalledAsCoroutine()), "when must be a plain function"),
        (lambda: api.discard_on(Broken, when=lambda: True), "when must be a function of the error alone"),
        (lambda: api.discard_on(Broken, all=1), "all must be True or False, not 1"),
    ],
)
def test_a_rule_that_cannot_be_is_refused(declared: Callable[[], ErrorRule], why: str) -> None:
    """SK-5: where it is written, in a sentence."""
    with pytest.raises(DeclarationError, match=why):
        declared()


@pytest.mark.parametrize(
    ("on_error", "why"),
    [
        (kill_on(Broken), r"Noting.on_error must be a tuple of rules, not kill_on\(Broken\): put a comma behind it"),
        (None, "Noting.on_error must be a tuple of rules, not None"),
        ((kill_on,), "Noting.on_error has <function kill_on .*, which is not a rule: write retry_on, kill_on"),
        ((Broken,), "Noting.on_error has <class .*, which is not a rule"),
        (
            (retry_on(Exception, delay=30), kill_on(Broken)),
            r"Noting.on_error: kill_on\(Broken\) never decides, because retry_on\(Exception\) stands before it",
        ),
        (
            (kill_on(Broken, Lost), discard_on(Lost)),
            r"discard_on\(Lost\) never decides, because kill_on\(Broken, Lost\)",
        ),
        ((kill_on(Lost), discard_on(Lost)), "never decides"),
    ],
)
def test_rules_that_cannot_be_together_are_refused(app: Lowkiq, queue_name: str, on_error: Any, why: str) -> None:
    """SK-5: both rules are named."""
    with pytest.raises(DeclarationError, match=why):
        declare(app, queue_name, Notes(), on_error=on_error)


@pytest.mark.parametrize(
    "on_error",
    [
        (kill_on(Lost), discard_on(Broken)),
        (kill_on(Broken, when=lambda error: bool(error.args)), discard_on(Lost)),
        (kill_on(Lost), discard_on(Lost, KeyError)),
        # A group of both fits none but the last.
        (kill_on(Lost), retry_on(KeyError), discard_on(Lost, KeyError)),
        [kill_on(Lost)],
        (),
    ],
)
def test_rules_that_may_be_together(app: Lowkiq, queue_name: str, on_error: Any) -> None:
    """SK-5: each may decide about an error that no rule before it takes."""
    assert on_error == declare(app, queue_name, Notes(), on_error=on_error).on_error


def test_rules_are_inherited_and_added_to(app: Lowkiq, queue_name: str) -> None:
    """SK-5: as any field."""
    name = queue_name

    class Base(Worker):
        on_error: ClassVar[Sequence[ErrorRule]] = (kill_on(Lost),)

        def perform(self, _batch: Batch) -> None:
            raise Lost

    @app.worker
    class Adding(Base):
        queue_name = f"{name} adding"
        on_error = (*Base.on_error, discard_on(KeyError))

    @app.worker
    class Inheriting(Base):
        queue_name = f"{name} inheriting"

    for worker in (Adding, Inheriting):
        worker.push("a")

    assert {"dead": 2, "failed": 2} == app.drain()


def test_a_function_has_rules_too(app: Lowkiq, queue_name: str) -> None:
    """SK-5: as an option."""

    @app.worker(queue_name=queue_name, on_error=(discard_on(Broken),))
    def work(_batch: Batch) -> None:
        raise Broken

    work.push("a")

    assert {"discarded": 1, "rejected": 1} == app.drain()
