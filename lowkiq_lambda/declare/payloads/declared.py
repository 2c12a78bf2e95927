"""Which type the payloads of a worker have, by whichever of the ways it declares one."""

import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from types import SimpleNamespace
from typing import Any, Final, TypeVar, get_args, get_origin, get_type_hints

from lowkiq_lambda.base.errors import DeclarationError
from lowkiq_lambda.declare.payloads.kinds import payload_type
from lowkiq_lambda.declare.pushable import Untyped
from lowkiq_lambda.declare.worker import Worker, handler_of

_BATCHES: Final = "lowkiq_lambda.engine.batch"
"""Has `Batch` and `BatchJob`; it lies above this module."""
_RETURNED: Final = "return"


def declared_type(worker: type[Worker[Any]]) -> Any:  # noqa: ANN401 - any type, or None
    """The type that a worker declares: by `payload`, by its base `Worker[...]`, or by its handler's argument.

    Raises DeclarationError if these differ, if it cannot be found, or if JSON cannot hold it.
    """
    payload = _said(worker)
    handled = _of_handler(worker, must_be_found=payload is None)
    if payload is not None and handled is not None and payload != handled:
        raise DeclarationError(
            f"{worker.__name__} declares payloads of the type {payload_type(payload).name}, and its handler takes "
            f"those of {payload_type(handled).name}: write one of them."
        )
    kind = handled if payload is None else payload
    if kind is not None:
        payload_type(kind)
    return kind


def _said(worker: type[Worker[Any]]) -> Any:  # noqa: ANN401 - any type, or None
    """What its `payload` and the brackets of its bases say."""
    kinds = [] if worker.payload is None else [_of_attribute(worker)]
    for kind in _arguments(worker):
        if kind not in kinds:
            kinds.append(kind)
    if len(kinds) > 1:
        names = " and ".join(payload_type(kind).name for kind in kinds)
        raise DeclarationError(f"{worker.__name__} declares payloads of the types {names}: write one of them.")
    return kinds[0] if kinds else None


def _of_attribute(worker: type[Worker[Any]]) -> Any:  # noqa: ANN401 - any type
    try:
        payload_type(worker.payload)
    except DeclarationError as error:
        raise DeclarationError(f"{worker.__name__}.payload is the type of its payloads, and {error}") from error
    return worker.payload


def _arguments(cls: type) -> Iterator[Any]:
    """The types that stand in the brackets of its bases, each as often as it does."""
    for base in cls.__dict__.get("__orig_bases__", cls.__bases__):
        kind = _argument(cls, get_origin(base) or base, get_args(base))
        if kind not in (None, Any, Untyped) and not isinstance(kind, TypeVar):
            yield kind


def _argument(cls: type, base: Any, arguments: tuple[Any, ...]) -> Any:  # noqa: ANN401 - any type, or None
    """The type that a class has by one of its bases, and by what stands in the brackets behind that."""
    if base is Worker:
        return _found(cls, arguments[0]) if arguments else None
    if not (isinstance(base, type) and issubclass(base, Worker)):
        return None
    for upper in base.__dict__.get("__orig_bases__", base.__bases__):
        kind = _argument(base, get_origin(upper) or upper, get_args(upper))
        if kind is not None:
            return _filled(cls, kind, dict(zip(getattr(base, "__parameters__", ()), arguments, strict=False)))
    return None


def _filled(cls: type, kind: Any, arguments: Mapping[Any, Any]) -> Any:  # noqa: ANN401 - any type
    """The type, with arguments in place of its variables."""
    if isinstance(kind, TypeVar):
        return _found(cls, arguments[kind]) if kind in arguments else kind
    return (
        kind[tuple(_filled(cls, variable, arguments) for variable in kind.__parameters__)] if _is_open(kind) else kind
    )


def _found(cls: type, kind: Any) -> Any:  # noqa: ANN401 - any type
    """The type behind names that are written as text."""
    space = SimpleNamespace(__annotations__={"kind": kind})
    # Code that is executed from a text may name a module that is not imported.
    names = getattr(sys.modules.get(cls.__module__), "__dict__", {})
    try:
        return get_type_hints(space, names, include_extras=True)["kind"]
    except NameError as error:
        raise DeclarationError(
            f"{cls.__name__}: the type of its payloads cannot be found, as {error.name!r} is not in "
            f"{cls.__module__}: declare it before."
        ) from error


def _of_handler(worker: type[Worker[Any]], *, must_be_found: bool) -> Any:  # noqa: ANN401 - any type, or None
    """What stands in the brackets of `Batch[...]` or `BatchJob[...]`."""
    try:
        hints = [*_hints(inspect.unwrap(handler_of(worker)))]
    except NameError as error:
        if not must_be_found:
            return None
        raise DeclarationError(
            f"{worker.__name__}: the type of its payloads cannot be found, as {error.name!r} is not there when the "
            "program runs: import it outside of TYPE_CHECKING, or name the type with `payload = ...`."
        ) from error
    for hint in hints:
        if getattr(get_origin(hint), "__module__", None) == _BATCHES:
            (kind,) = get_args(hint)
            return None if kind is Any or _is_open(kind) else kind
    return None


def _is_open(kind: Any) -> bool:  # noqa: ANN401 - any type
    """Whether it has variables: what is in their place, the worker says."""
    return isinstance(kind, TypeVar) or bool(getattr(kind, "__parameters__", ()) and not isinstance(kind, type))


def _hints(handler: Callable[..., object]) -> Iterator[Any]:
    """The annotations of its arguments; what the handler returns may be known to type checkers alone."""
    for name, annotation in getattr(handler, "__annotations__", {}).items():
        if name != _RETURNED:
            space = SimpleNamespace(__annotations__={name: annotation})
            yield get_type_hints(space, getattr(handler, "__globals__", {}), include_extras=True)[name]
