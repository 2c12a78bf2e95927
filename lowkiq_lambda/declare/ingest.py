"""Mapping functions and inboxes: they make jobs of messages from outside, each for the sources of its pattern.

An inbox is a queue of SQS whose messages may name any queue of the app, past its mapping functions. A message
counts as one of an inbox only by the queue that it came from, because its sender wrote its content.
"""

import inspect
from collections.abc import Callable, Collection, Iterable, Mapping
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias, TypeVar

from lowkiq_lambda.base.errors import DeclarationError, LowkiqError
from lowkiq_lambda.jobs.incoming import Incoming, names_of

if TYPE_CHECKING:
    from lowkiq_lambda.declare.pushable import AnyWorker


Mapped: TypeAlias = "tuple[AnyWorker, Mapping[str, Any]]"
"""A worker, and a job for it as `push_many` takes it."""
MappingFunction: TypeAlias = Callable[[Incoming], Iterable[Mapped] | None]
F = TypeVar("F", bound=MappingFunction)

_ALL_OTHERS: Final = None


class NoMappingFunction(LowkiqError):
    """Not exactly one mapping function is for the source: correct the patterns of `@app.ingest`."""


class MappingFunctions:
    """Those of one app, by their patterns."""

    def __init__(self) -> None:
        self._by_pattern: dict[str | None, MappingFunction] = {}
        self._via: dict[str | None, str] = {}
        """The pattern of the queues that a function is given notifications by, besides."""

    def declare(self, target: F | str | None, via: str | None = None) -> F | Callable[[F], F]:
        """The function, or a decorator for one with that pattern and that queue. Raises DeclarationError."""
        if target is not None and not isinstance(target, str):
            if via is not None:
                raise DeclarationError("@app.ingest takes a function, or `via` for one that follows, not both at once.")
            return self._add(_ALL_OTHERS, None, target)
        if "" in {target, via}:
            raise DeclarationError("The pattern of @app.ingest is empty: leave it out for a function for all sources.")
        return lambda function: self._add(target, via, function)

    def unwraps(self, queue: str) -> bool:
        """Whether a function asks for the notifications that come by this queue of SQS."""
        return any(_fits(via, queue) for via in self._via.values())

    def for_source(self, incoming: Incoming) -> MappingFunction:
        """The function whose pattern fits, else the one without a pattern. Raises NoMappingFunction.

        A message from a queue goes only to functions that name the queue, because its sender wrote the source.
        """
        names = incoming.names
        open_to = [pattern for pattern in self._by_pattern if self._is_open(pattern, incoming.via)]
        fitting = [pattern for pattern in open_to if pattern is not _ALL_OTHERS and _fits(pattern, incoming.source)]
        if len(fitting) > 1:
            both = " and ".join(repr(pattern) for pattern in fitting[:2])
            raise NoMappingFunction(
                f"The patterns {both} of @app.ingest both fit {names[0]!r}: make one of them stricter."
            )
        pattern = fitting[0] if fitting else _ALL_OTHERS
        if pattern not in open_to:
            by = f" by the queue {incoming.via!r}" if incoming.via else ""
            raise NoMappingFunction(f"No mapping function is for {names[0]!r}{by}: {self._there_are()}.")
        return self._by_pattern[pattern]

    def _is_open(self, pattern: str | None, queue: str | None) -> bool:
        return queue is None or (pattern in self._via and _fits(self._via[pattern], queue))

    def _add(self, pattern: str | None, via: str | None, function: F) -> F:
        _check(function)
        if pattern in self._by_pattern:
            which = "without a pattern" if pattern is None else f"for {pattern!r}"
            raise DeclarationError(f"There is a mapping function {which} already: {_name(self._by_pattern[pattern])}.")
        self._by_pattern[pattern] = function
        if via is not None:
            self._via[pattern] = via
        return function

    def _there_are(self) -> str:
        patterns = [repr(pattern) for pattern in self._by_pattern]
        return f"the patterns are {', '.join(patterns)}" if patterns else "declare one with @app.ingest"


def _fits(pattern: str, arn: str) -> bool:
    return any(fnmatchcase(name, pattern) for name in names_of(arn))


def _check(function: object) -> None:
    """Refuses, with DeclarationError, what would fail each time that it is called."""
    if not callable(function):
        raise DeclarationError(f"@app.ingest takes a function, or a pattern for one, not {function!r}.")
    if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
        raise DeclarationError(f"The mapping function {_name(function)} is a coroutine function: write def.")
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        # A callable that is written in C may lack a signature.
        return
    try:
        signature.bind("record")
    except TypeError as error:
        raise DeclarationError(
            f"The mapping function {_name(function)} cannot be called with a record: {error}."
        ) from error


def _name(function: object) -> str:
    return getattr(function, "__qualname__", repr(function))


class DeclaredInbox(NamedTuple):
    """One of them."""

    pattern: str
    """Fits the ARN or the name of the queue."""
    queues: frozenset[str] | None
    """The queues of the app that its messages may name; None is all."""

    def lets_in(self, queue_name: str) -> bool:
        """Whether its messages may name this queue of the app."""
        return self.queues is None or queue_name in self.queues


class Inboxes:
    """Those of one app."""

    def __init__(self) -> None:
        self._declared: list[DeclaredInbox] = []

    def declare(self, pattern: str, queues: Collection[str] | None) -> None:
        """Messages of queues that the pattern fits may name these queues of the app. Raises DeclarationError."""
        if not pattern:
            raise DeclarationError(f"app.inbox takes the ARN or the name of a queue of SQS, not {pattern!r}.")
        if isinstance(queues, str):
            raise DeclarationError(f"The queues of app.inbox are a list of names, not the text {queues!r}.")
        self._declared.append(DeclaredInbox(pattern, None if queues is None else frozenset(queues)))

    def for_queue(self, arn: str, of_stack: str | None) -> DeclaredInbox | None:
        """The first that fits the queue of SQS, else the stack's own, if this is it."""
        for inbox in self._declared:
            if any(fnmatchcase(name, inbox.pattern) for name in names_of(arn)):
                return inbox
        return DeclaredInbox(arn, None) if arn == of_stack else None
