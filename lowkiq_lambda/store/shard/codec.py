"""Payloads to bytes and back: canonical JSON, one byte string for one value whatever the order of its keys."""

import math
from dataclasses import is_dataclass
from operator import countOf
from typing import Any, Final, TypeAlias

import msgspec

from lowkiq_lambda.base.errors import JobError

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"

_SCALARS: Final = frozenset({str, int, bool, type(None)})
_CONTAINERS: Final = frozenset({dict, list, tuple})
_TYPES: Final = _SCALARS | _CONTAINERS | {float}
_SHORT: Final = 32
"""Bytes of JSON in which so little stands that to go through it field by field is faster."""
_LEVELS: Final = 100
"""How deep a payload may be nested to be judged by its types. The call stack limits those that are nested deeper."""
_DIGITS: Final = 4_000
"""Of an integer that the decoder surely takes."""
_encoder: Final = msgspec.json.Encoder(order="sorted")
_decoder: Final = msgspec.json.Decoder()


def dump_json(payload: object) -> bytes:
    """The payload as canonical JSON.

    Raises JobError, naming the path, for anything that JSON would not give back as it was; tuples pass as lists.
    """
    try:
        dumped = _encoder.encode(payload)
        kind = type(payload)
        if kind is str or (len(dumped) > _SHORT and kind in _CONTAINERS and _surely_comes_back(payload, dumped)):
            return dumped
        restored = _decoder.decode(dumped)
    except (TypeError, ValueError, RecursionError, msgspec.MsgspecError) as error:
        raise JobError(_why_not(payload, payload) or f"cannot be written as JSON: {error}", field="payload") from error
    wrong = _why_not(payload, restored)
    if wrong:
        raise JobError(wrong, field="payload")
    return dumped


def load_json(dumped: bytes) -> object:
    """The payload that was dumped. Raises msgspec.DecodeError if the bytes are not JSON."""
    return _decoder.decode(dumped)


def _surely_comes_back(payload: Any, dumped: bytes) -> bool:  # noqa: ANN401 - a dict, a list or a tuple
    """Whether the types in it prove that JSON gives it back: a look for each level, and not one for each field.

    The encoder has refused lone surrogates and keys that are not texts, but not those of a subclass.
    """
    keys: list[object] = []
    kinds: set[type] = set()
    nones = 0
    containers = [payload]
    for _ in range(_LEVELS):
        parts: list[Any] = []
        for one in containers:
            if type(one) is dict:
                keys += one
                parts += one.values()
            else:
                parts += one
        here = {*map(type, parts)}
        if not here <= _TYPES:
            return False
        kinds |= here
        nones += parts.count(None)
        if here.isdisjoint(_CONTAINERS):
            break
        containers = [part for part in parts if type(part) in _CONTAINERS]
    else:
        return False
    if int in kinds and len(dumped) > _DIGITS:
        _decoder.decode(dumped)
    # The encoder writes null for a number that is not finite.
    return countOf(map(type, keys), str) == len(keys) and (float not in kinds or dumped.count(b"null") == nones)


def _why_not(payload: object, restored: object) -> str | None:
    """The first value that JSON has no form for, or does not give back, by its path."""
    try:
        return _difference(payload, restored, "")
    except RecursionError:
        return "is nested too deeply"


def _difference(payload: object, restored: object, path: str) -> str | None:
    """The path at which the two differ, or have a type that JSON lacks; None if they are equal."""
    kind = type(payload)
    if kind in _SCALARS:
        same = payload == restored and type(restored) is kind
        return (
            None
            if same and not _unpaired(payload)
            else f"{_at(path)}{payload!r} does not come back from JSON as it was"
        )
    if kind is float:
        return _float_difference(payload, restored, path)
    if isinstance(payload, dict):
        return _dict_difference(payload, restored, path)
    if isinstance(payload, list | tuple):
        return _list_difference(payload, restored, path)
    return f"{_at(path)}JSON has no form for {kind.__name__}: {_instead(payload, path)}"


def _instead(payload: object, path: str) -> str:
    """The advice for a replacement."""
    if isinstance(payload, set | frozenset):
        return "give a list instead"
    if is_dataclass(payload) or isinstance(payload, msgspec.Struct):
        declared = "" if path else f", or declare the type of the payloads: Worker[{type(payload).__name__}]"
        return f"give a dict instead{declared}"
    return "give a str or a number instead"


def _float_difference(payload: object, restored: object, path: str) -> str | None:
    if not isinstance(payload, float) or not math.isfinite(payload):
        return f"{_at(path)}JSON has no form for {payload!r}"
    return None if payload == restored else f"{_at(path)}{payload!r} does not come back from JSON as it was"


def _dict_difference(payload: dict[object, object], restored: object, path: str) -> str | None:
    if not isinstance(restored, dict):
        return f"{_at(path)}does not come back from JSON as it was"
    for key, value in payload.items():
        if type(key) is not str:
            return f"{_at(path)}the key {key!r} is not a text, as JSON has it: write {str(key)!r}"
        if _unpaired(key):
            return f"{_at(path)}the key {key!r} has half of a surrogate pair, which JSON does not keep"
        if key not in restored:
            return f"{_at(path)}the key {key!r} does not come back from JSON"
        wrong = _difference(value, restored[key], f"{path}.{key}")
        if wrong:
            return wrong
    return None


def _list_difference(payload: list[object] | tuple[object, ...], restored: object, path: str) -> str | None:
    if not isinstance(restored, list | tuple) or len(restored) != len(payload):
        return f"{_at(path)}does not come back from JSON as it was"
    for index, (value, back) in enumerate(zip(payload, restored, strict=True)):
        wrong = _difference(value, back, f"{path}[{index}]")
        if wrong:
            return wrong
    return None


def _at(path: str) -> str:
    """The place in the payload, to stand before what is wrong with it."""
    return f"at {path}: " if path else ""


def _unpaired(text: object) -> bool:
    """Whether a text holds a lone surrogate, which no byte string in UTF-8 has."""
    if not isinstance(text, str):
        return False
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False
