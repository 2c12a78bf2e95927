"""Callables around perform and around push: `(worker, batch, call_next)`, the first is outermost.

A middleware calls `call_next()` once and returns what that returned. Around a push, `batch` is the list of
jobs.
"""

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, TypeVar

Worker = TypeVar("Worker")
Batch = TypeVar("Batch")
Result = TypeVar("Result")

# What users write; `Any` because a function that names its own worker's type must fit too.
ServerMiddleware: TypeAlias = Callable[[Any, Any, Callable[..., Any]], Any]
ClientMiddleware: TypeAlias = Callable[[Any, Any, Callable[..., Any]], Any]


def compose(
    middlewares: Sequence[Callable[[Worker, Batch, Callable[..., Result]], Result]],
    inner: Callable[[Worker, Batch], Result],
) -> Callable[[Worker, Batch], Result]:
    """`inner` wrapped in the middlewares; without any, `inner` itself."""
    for middleware in reversed(middlewares):
        inner = _around(middleware, inner)
    return inner


def _around(
    middleware: Callable[[Worker, Batch, Callable[..., Result]], Result],
    inner: Callable[[Worker, Batch], Result],
) -> Callable[[Worker, Batch], Result]:
    return lambda worker, batch: middleware(worker, batch, lambda *other: inner(*(other or (worker, batch))))
