"""Says in words what a type of msgspec accepts."""

from collections.abc import Iterator

from msgspec import inspect


def expected(kind: object) -> str:
    """The valid values of a type, in words.

    >>> from typing import Annotated
    >>> from msgspec import Meta
    >>> expected(Annotated[int, Meta(ge=1, le=10_000)]), expected(Annotated[float, Meta(gt=0)] | None)
    ('a whole number from 1 to 10000', 'a number above 0')
    """
    return " or ".join(_alternatives(inspect.type_info(kind)))


def _alternatives(info: inspect.Type) -> Iterator[str]:
    if isinstance(info, inspect.Metadata):
        yield (info.extra_json_schema or {})["description"]
    elif isinstance(info, inspect.UnionType):
        for alternative in info.types:
            yield from _alternatives(alternative)
    elif isinstance(info, inspect.IntType):
        yield f"a whole number{_bounds(info)}"
    elif isinstance(info, inspect.FloatType):
        yield f"a number{_bounds(info)}"
    elif isinstance(info, inspect.BoolType):
        yield "true or false"
    elif isinstance(info, inspect.LiteralType):
        yield f"one of {', '.join(map(str, info.values))}"
    elif isinstance(info, inspect.StrType):
        yield f"a text{_length(info)}"
    elif isinstance(info, inspect.StructType):
        yield f"name=value with commas between: {', '.join(_parts(info))}"


def _parts(info: inspect.StructType) -> Iterator[str]:
    """The parts that a text can give: no functions."""
    for field in info.fields:
        if not isinstance(field.type, inspect.CustomType):
            yield f"{field.name} ({' or '.join(_alternatives(field.type))})"


def _bounds(info: inspect.IntType | inspect.FloatType) -> str:
    if info.ge is not None and info.le is not None:
        return f" from {_plain(info.ge)} to {_plain(info.le)}"
    if info.gt is not None and info.le is not None:
        return f" above {_plain(info.gt)} and at most {_plain(info.le)}"
    words = {"above": info.gt, "of at least": info.ge, "below": info.lt, "of at most": info.le}
    return " and".join(f" {word} {_plain(bound)}" for word, bound in words.items() if bound is not None)


def _length(info: inspect.StrType) -> str:
    if info.pattern is not None:
        return f" that matches {info.pattern}"
    return f" of {info.min_length or 0} to {info.max_length} characters" if info.max_length else ""


def _plain(number: float) -> str:
    return f"{number:.15g}"
