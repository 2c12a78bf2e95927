"""Points that lines do not have: before the call of a function, and before its answer.

A process that dies between the two has done what the function does, and has not learned it. A line cannot show that if
it calls two functions, or if the function belongs to an installed package.
"""

import functools
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pkgutil import resolve_name
from typing import Any, Final

from lowkiq_lambda.base.errors import ConfigError
from lowkiq_lambda.testing.fuzz.process import SimulatedDeath, current

_SEND: Final = "send"
"""The method by which clients of HTTP send a request, and wait for its response."""
_LIBRARIES: Final[Mapping[str, Sequence[str]]] = {
    "httpx": (f"httpx.Client.{_SEND}", f"httpx.AsyncClient.{_SEND}"),
    "requests": (f"requests.Session.{_SEND}",),
}


def objects_of(watch: Sequence[object]) -> list[object]:
    """The same, but engines, clients and other objects stand in place of their names, MODULE:NAME."""
    subjects = []
    for one in watch:
        value: object = one
        if isinstance(one, str) and ":" in one:
            with suppress(ImportError, AttributeError, ValueError):
                value = resolve_name(one)
        subjects.append(one if callable(value) else value)
    return subjects


@contextmanager
def watched(subjects: Sequence[object]) -> Iterator[None]:
    """In the block, calls of these functions, libraries and clients have points. Raises ConfigError for others."""
    with ExitStack() as stack:
        for one in subjects:
            if not isinstance(one, str):
                stack.enter_context(_watched(one, _SEND, repr(one)))
                continue
            for name in _LIBRARIES.get(one, (one,)):
                place, _, attribute = name.replace(":", ".").rpartition(".")
                try:
                    owner = resolve_name(place)
                except (ImportError, AttributeError, ValueError) as error:
                    raise ConfigError(f"watch=: {name!r} cannot be watched: {error}.") from error
                stack.enter_context(_watched(owner, attribute, name))
        yield


@contextmanager
def _watched(owner: Any, attribute: str, name: str) -> Iterator[None]:  # noqa: ANN401 - a module, a class or an object
    try:
        function = getattr(owner, attribute)
        before = inspect.getattr_static(owner, attribute)
        is_own = attribute in vars(owner)
        setattr(owner, attribute, _watching(name, function, before))
    except (AttributeError, TypeError) as error:
        raise ConfigError(f"watch=: {name!r} cannot be watched: {error}.") from error
    try:
        yield
    finally:
        if is_own:
            setattr(owner, attribute, before)
        else:
            delattr(owner, attribute)


def _watching(name: str, function: Callable[..., Any], before: object) -> Any:  # noqa: ANN401 - what stands in its place
    @functools.wraps(function)
    def called(*arguments: Any, **keywords: Any) -> Any:  # noqa: ANN401 - as the function has them
        place = _place(name, arguments)
        note(place)
        answer = function(*arguments, **keywords)
        note(f"the answer of {place.removeprefix('the call of ')}")
        return answer

    @functools.wraps(function)
    async def awaited(*arguments: Any, **keywords: Any) -> Any:  # noqa: ANN401 - as above
        place = _place(name, arguments)
        note(place)
        answer = await function(*arguments, **keywords)
        note(f"the answer of {place.removeprefix('the call of ')}")
        return answer

    wrapper = awaited if inspect.iscoroutinefunction(function) else called
    return staticmethod(wrapper) if isinstance(before, staticmethod | classmethod) else wrapper


def _place(name: str, arguments: Sequence[Any]) -> str:
    """The name of a call; of a request without what may differ each time, or is secret."""
    for one in arguments:
        method, url = getattr(one, "method", None), getattr(one, "url", None)
        if isinstance(method, str) and url is not None:
            return f"the request {method} {str(url).partition('?')[0]}"
    return f"the call of {name}"


def note(place: str | None) -> None:
    """The handler is here; None if that is not a point. Raises what its fault raises; a dead process calls nothing."""
    process = current.get()
    if process is None:
        return
    if process.is_dead:
        raise SimulatedDeath
    if place is not None:
        process.note_call(place)
