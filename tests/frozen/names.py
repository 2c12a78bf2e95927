"""The public names as lines: members, what a call takes (<, and <! where it must be given), and simple defaults."""

import inspect
from collections.abc import Iterator
from importlib import import_module
from typing import Any, Final, get_origin

import msgspec

from lowkiq_lambda.declare.options import JobOptions
from lowkiq_lambda.declare.pushable import OfOtherLibrary
from lowkiq_lambda.operate.operations import Operations
from lowkiq_lambda.operate.queue_operations import QueueOperations

_MODULES: Final = ("", ".dashboard", ".iterate", ".testing", ".contrib.django", ".contrib.otel", ".contrib.outbox")
_BEHIND: Final = {"app.operate": Operations, "app.operate(worker)": QueueOperations, "options of a push": JobOptions}
_BUILT: Final = frozenset(
    (
        *("Config", "Debounce", "Incoming", "Job", "KeepRuns", "Later", "Lowkiq", "MorgueLimits", "Outbox", "Rate"),
        *("Account", "Auth", "Token", "TrustedClaims", "LowkiqInstrumentor", "ManualClock", "OwnServer"),
    )
)
"""Classes of which users make objects. What the library makes alone may get fields that must be given."""
_OF_THE_ENGINE: Final = {
    "Batch": frozenset(
        (
            *("done_payloads", "exited", "has_begun", "is_iterated", "iterations", "limit", "notes", "now", "overdue"),
            *("rejected_payloads", "run_of", "tells_more"),
        )
    )
}
"""Defaults of what the engine notes in an object: handlers have no use for them."""
_SIMPLE: Final = (bool, int, float, str, tuple, type(None))


def public_names() -> list[str]:
    """A line for each."""
    names: dict[str, Any] = dict(_BEHIND)
    for module in (import_module(f"lowkiq_lambda{part}") for part in _MODULES):
        names |= {f"{module.__name__}.{name}": getattr(module, name) for name in module.__all__}
    return sorted({line for name, value in names.items() for line in _lines(name, value)})


def _lines(name: str, value: Any) -> Iterator[str]:
    yield name
    if isinstance(value, _SIMPLE):
        yield f"{name} = {value!r}"
    elif callable(value) and get_origin(value) is None and (not isinstance(value, type) or value.__name__ in _BUILT):
        yield from _parameters(name, value)
    if isinstance(value, type):
        ours = [kind for kind in value.__mro__ if kind.__module__.startswith("lowkiq_lambda")]
        for member in sorted({each for kind in ours for each in (*vars(kind), *inspect.get_annotations(kind))}):
            held = inspect.getattr_static(value, member, None)
            is_ours = member in _OF_THE_ENGINE.get(value.__name__, ())
            if not (member.startswith("_") or is_ours or isinstance(held, OfOtherLibrary)):
                yield from _member(f"{name}.{member}", value, member, held)


def _member(name: str, owner: type, member: str, held: Any) -> Iterator[str]:
    if isinstance(held, property) or not hasattr(owner, member):
        yield name
    else:
        # Of a struct a field is a descriptor; its default stands with what a call takes.
        is_field = issubclass(owner, msgspec.Struct) and member in owner.__struct_fields__
        yield from (
            [name] if is_field or isinstance(getattr(owner, member), type) else _lines(name, getattr(owner, member))
        )


def _parameters(name: str, value: Any) -> Iterator[str]:
    try:
        parameters = inspect.signature(value).parameters.values()
    except (TypeError, ValueError):
        return
    for place, one in enumerate(parameters):
        if one.name.startswith("_") or one.name == "self":
            continue
        must = one.default is one.empty and one.kind not in {one.VAR_POSITIONAL, one.VAR_KEYWORD}
        at = "" if one.kind is one.KEYWORD_ONLY else f" {place}"
        yield f"{name} <{'!' if must else ''} {one.name}{at}"
        if isinstance(one.default, _SIMPLE):
            yield f"{name} < {one.name} = {one.default!r}"
