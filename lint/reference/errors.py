"""The page of errors, made of their classes: the docstring of each is its default message."""

import inspect
from collections.abc import Iterator
from typing import Final

import lowkiq_lambda
from lint.reference.tables import code, table
from lowkiq_lambda.base import errors
from lowkiq_lambda.base.errors import LowkiqError

_INTRODUCTION: Final = """\
# Errors

All errors of the library are kinds of `LowkiqError`, and most of them are in the module `lowkiq_lambda.base.errors`. An
`except` of one catches those whose *kind of* leads to it. The meaning is the message that an error has where nothing
more is known. [redis](../redis.md#what-errors-mean) says what to do about those of the server.
"""


def page() -> str:
    """The text of the page."""
    return f"{_INTRODUCTION}\n{table(('error', 'kind of', 'meaning', 'has'), _rows())}\n"


def _rows() -> Iterator[list[str]]:
    exported = {name: getattr(lowkiq_lambda, name) for name in lowkiq_lambda.__all__}
    for cls in {**vars(errors), **exported}.values():
        if inspect.isclass(cls) and issubclass(cls, LowkiqError):
            bases = ", ".join(code(base.__name__) for base in cls.__bases__)
            yield [code(cls.__name__), bases, " ".join((cls.__doc__ or "").split()), _attributes(cls)]


def _attributes(cls: type[LowkiqError]) -> str:
    parameters = inspect.signature(cls.__init__).parameters.values()
    return ", ".join(code(one.name) for one in parameters if one.kind is one.KEYWORD_ONLY)
