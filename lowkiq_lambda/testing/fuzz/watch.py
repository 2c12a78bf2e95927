"""Points that lines do not have: before the call of a function, and before its answer.

A process that dies between the two has done what the function does, and has not learned it. A line cannot show that if
it calls two functions, or if the function belongs to an installed package.
"""

import functools
import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pkgutil import resolve_name
from typing import Any

from lowkiq_lambda.base.errors import ConfigError
from lowkiq_lambda.testing.fuzz.process import SimulatedDeath, current


@contextmanager
def watched(names: Sequence[str]) -> Iterator[None]:
    """In the block, calls of these functions have points. Raises ConfigError for a name that stands for none."""
    with ExitStack() as stack:
        for name in names:
            stack.enter_context(_watched(name))
        yield


@contextmanager
def _watched(name: str) -> Iterator[None]:
    place, _, attribute = name.replace(":", ".").rpartition(".")
    try:
        owner = resolve_name(place)
        function = getattr(owner, attribute)
        before = inspect.getattr_static(owner, attribute)
        is_own = attribute in vars(owner)
        setattr(owner, attribute, _watching(name, function, before))
    except (ImportError, AttributeError, TypeError, ValueError) as error:
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
        _note(f"the call of {name}")
        answer = function(*arguments, **keywords)
        _note(f"the answer of {name}")
        return answer

    @functools.wraps(function)
    async def awaited(*arguments: Any, **keywords: Any) -> Any:  # noqa: ANN401 - as above
        _note(f"the call of {name}")
        answer = await function(*arguments, **keywords)
        _note(f"the answer of {name}")
        return answer

    wrapper = awaited if inspect.iscoroutinefunction(function) else called
    return staticmethod(wrapper) if isinstance(before, staticmethod | classmethod) else wrapper


def _note(place: str) -> None:
    """The handler is here. Raises what its fault raises; a dead process calls nothing."""
    process = current.get()
    if process is None:
        return
    if process.is_dead:
        raise SimulatedDeath
    process.note_call(place)
