"""Mapping functions: they make jobs of what comes in from outside, each for the sources that its pattern names."""

import inspect
from collections.abc import Callable, Iterable, Mapping
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

from lowkiq_lambda.errors import DeclarationError, LowkiqError
from lowkiq_lambda.incoming import Incoming

if TYPE_CHECKING:
    from lowkiq_lambda.worker import FunctionWorker, Worker

Mapped: TypeAlias = "tuple[type[Worker[Any]] | FunctionWorker[Any], Mapping[str, Any]]"
"""A worker, and a job for it as `perform_async` takes it."""
MappingFunction: TypeAlias = Callable[[Incoming], Iterable[Mapped] | None]
F = TypeVar("F", bound=MappingFunction)

_ALL_OTHERS: Final = None


class NoMappingFunction(LowkiqError):
    """Not exactly one mapping function is for the source: correct the patterns of `@app.ingest`."""


class MappingFunctions:
    """Those of one app, by their patterns."""

    def __init__(self) -> None:
        self._by_pattern: dict[str | None, MappingFunction] = {}

    def declare(self, target: F | str) -> F | Callable[[F], F]:
        """The function, or a decorator with that pattern for one. Raises DeclarationError."""
        if not isinstance(target, str):
            return self._add(_ALL_OTHERS, target)
        if not target:
            raise DeclarationError("The pattern of @app.ingest is empty: leave it out for a function for all sources.")
        return lambda function: self._add(target, function)

    def for_source(self, incoming: Incoming) -> MappingFunction:
        """The one whose pattern fits, else the one without a pattern. Raises NoMappingFunction."""
        names = incoming.names
        fitting = [
            pattern
            for pattern in self._by_pattern
            if pattern is not _ALL_OTHERS and any(fnmatchcase(name, pattern) for name in names)
        ]
        if len(fitting) > 1:
            both = " and ".join(repr(pattern) for pattern in fitting[:2])
            raise NoMappingFunction(
                f"The patterns {both} of @app.ingest both fit {names[0]!r}: make one of them stricter."
            )
        chosen = self._by_pattern.get(fitting[0] if fitting else _ALL_OTHERS)
        if chosen is None:
            raise NoMappingFunction(f"No mapping function is for {names[0]!r}: {self._there_are()}.")
        return chosen

    def _add(self, pattern: str | None, function: F) -> F:
        _check(function)
        if pattern in self._by_pattern:
            which = "without a pattern" if pattern is None else f"for {pattern!r}"
            raise DeclarationError(f"There is a mapping function {which} already: {_name(self._by_pattern[pattern])}.")
        self._by_pattern[pattern] = function
        return function

    def _there_are(self) -> str:
        patterns = [repr(pattern) for pattern in self._by_pattern]
        return f"the patterns are {', '.join(patterns)}" if patterns else "declare one with @app.ingest"


def _check(function: object) -> None:
    """Refuses, with DeclarationError, what would fail each time that it is called."""
    if not callable(function):
        raise DeclarationError(f"@app.ingest takes a function, or a pattern for one, not {function!r}.")
    if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
        raise DeclarationError(f"The mapping function {_name(function)} is a coroutine function: write def.")
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        # Not everything that is written in C tells what it takes.
        return
    try:
        signature.bind("record")
    except TypeError as error:
        raise DeclarationError(
            f"The mapping function {_name(function)} cannot be called with a record: {error}."
        ) from error


def _name(function: object) -> str:
    return getattr(function, "__qualname__", repr(function))
