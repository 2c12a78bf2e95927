"""Types of payloads: from pushed objects to JSON values, and from the values in Redis to the handler's objects.

A type is one that msgspec supports (its own, a dataclass, a TypedDict, a NamedTuple, one of attrs, those of the
standard library), or a pydantic model, if the program has imported pydantic itself.
"""

import sys
from collections.abc import Callable, Mapping
from functools import cache
from hashlib import sha256
from typing import Any, Final, Protocol, is_typeddict

import msgspec

from lowkiq_lambda.base.errors import DeclarationError

_PYDANTIC: Final = "pydantic"
_DIGITS: Final = 12
"""Of the fingerprint of a schema."""


class PayloadType(Protocol):
    """A type of payloads. A value of another type raises an exception, whose text names the fault."""

    @property
    def name(self) -> str:
        """As people read it."""
        ...

    def dump(self, payload: object) -> object:
        """The JSON values that stand for the payload: the same for equal payloads, whether objects or JSON values."""
        ...

    def load(self, values: object) -> object:
        """The payload that those JSON values stand for."""
        ...

    def decode(self, dumped: bytes) -> object:
        """The same, of the bytes of JSON."""
        ...

    def schema(self) -> object:
        """Its JSON Schema."""
        ...


class _Msgspec:
    """A type that msgspec supports."""

    def __init__(self, kind: Any) -> None:  # noqa: ANN401 - any type
        self.name = _name(kind)
        self._kind = kind
        # Says at the declaration that JSON cannot hold the type, which a decoder says when it meets a value.
        self.schema()
        # Without a method around it: a drain calls it for each payload.
        self.decode: Callable[[bytes], object] = msgspec.json.Decoder(kind).decode

    def dump(self, payload: object) -> object:
        if _is_of_another_class(payload, self._kind):
            raise TypeError(f"Expected `{self.name}`, got `{type(payload).__name__}`")
        # A dict leaves defaults out, and an object may hold what its fields do not allow.
        plain = msgspec.to_builtins(self.load(payload), str_keys=True)
        # In one order whatever a set's is.
        return msgspec.to_builtins(self.load(plain), str_keys=True, order="deterministic")

    def load(self, values: object) -> object:
        return msgspec.convert(values, self._kind, str_keys=True)

    def schema(self) -> object:
        return msgspec.json.schema(self._kind)


class _Pydantic:
    """A pydantic model."""

    def __init__(self, kind: Any) -> None:  # noqa: ANN401 - a class of a package that need not be installed
        self.name = _name(kind)
        self._kind = kind
        self._adapter = sys.modules[_PYDANTIC].TypeAdapter(kind)

    def dump(self, payload: object) -> object:
        model = payload if isinstance(payload, self._kind) else self.load(payload)
        # By way of the model once more, as its fields may have been assigned to.
        return self._values(self.load(self._values(model)))

    def load(self, values: object) -> object:
        # As JSON: a strict model takes the text of a time from JSON alone.
        return self.decode(msgspec.json.encode(values))

    def decode(self, dumped: bytes) -> object:
        try:
            payload: object = self._adapter.validate_json(dumped)
        except ValueError as error:
            raise ValueError(_in_one_line(error)) from error
        return payload

    def schema(self) -> object:
        return self._adapter.json_schema()

    def _values(self, model: object) -> object:
        values: object = self._adapter.dump_python(model, mode="json", by_alias=True, warnings="none")
        return values


def payload_type(kind: Any) -> PayloadType:  # noqa: ANN401 - any type
    """How payloads of this type are written and read. Raises DeclarationError where JSON cannot hold the type."""
    try:
        hash(kind)
    except TypeError as error:
        raise DeclarationError(f"{_name(kind)} cannot be the type of a payload: {error}") from error
    return _payload_type(kind)


@cache
def _payload_type(kind: Any) -> PayloadType:  # noqa: ANN401 - any type
    try:
        return _Pydantic(kind) if _is_of_pydantic(kind) else _Msgspec(kind)
    except Exception as error:
        raise DeclarationError(f"{_name(kind)} cannot be the type of a payload: {error}") from error


def fingerprint(kind: Any) -> str:  # noqa: ANN401 - any type
    """The name of the type, and digits that are others where its JSON Schema is another."""
    kind_of_payload = payload_type(kind)
    schema = msgspec.json.encode(kind_of_payload.schema(), order="sorted")
    return f"{kind_of_payload.name} {sha256(schema).hexdigest()[:_DIGITS]}"


def _is_of_another_class(payload: object, kind: Any) -> bool:  # noqa: ANN401 - any type
    """Whether it is an object, and none of the class that is wanted: tuples with names are all one to msgspec."""
    if not isinstance(kind, type) or is_typeddict(kind) or type(payload) is tuple:
        return False
    return not isinstance(payload, (kind, Mapping, list, str, int, float, type(None)))


def _is_of_pydantic(kind: object) -> bool:
    pydantic = sys.modules.get(_PYDANTIC)
    return pydantic is not None and isinstance(kind, type) and issubclass(kind, pydantic.BaseModel)


def _in_one_line(error: Any) -> str:  # noqa: ANN401 - a ValidationError of pydantic
    """What is wrong with each field, as msgspec would say it."""
    errors = error.errors(include_url=False, include_context=False, include_input=False)
    return "; ".join(f"{one['msg']} - at `{'.'.join(['$', *map(str, one['loc'])])}`" for one in errors)


def _name(kind: Any) -> str:  # noqa: ANN401 - any type
    return kind.__name__ if isinstance(kind, type) and not hasattr(kind, "__args__") else str(kind)
