"""Searches on the command line: the same words on each command that lists jobs, or acts on those that fit."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Final

from cyclopts import Parameter

from lowkiq_lambda.base.errors import ConfigError

if TYPE_CHECKING:
    from lowkiq_lambda.operate.inspect.id_filter import IdFilter
    from lowkiq_lambda.settings.protocols import Mask

FILTERS: Final = """
FILTERS are NAME=VALUE, several are all to fit: fingerprint (of the last error,
as lowkiq errors prints it), error (a part of it), prefix (of the id), least_id
and most_id ("[" or "(" and an id), least and most (when it is due, or when it
died, Unix seconds), least_count and most_count (retries; 0 after the first
failure, -1 before it).
"""


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class SearchOptions:
    """The conditions that a command line gives."""

    filter_: Annotated[
        list[str] | None,
        Parameter(name="--filter", help="A condition, as NAME=VALUE; may be given again.", negative=""),
    ] = None
    error: Annotated[str | None, Parameter(name="--error", help="The same as --filter error=TEXT.")] = None
    payload: Annotated[str | None, Parameter(name="--payload", help="The same as --filter payload=QUERY.")] = None

    @property
    def words(self) -> tuple[str, ...]:
        """All of them, as NAME=VALUE."""
        both = (("error", self.error), ("payload", self.payload))
        return *(self.filter_ or ()), *(f"{name}={value}" for name, value in both if value is not None)


SEARCH: Final = SearchOptions()


def criteria_of(words: Sequence[str]) -> Mapping[str, str]:
    """The fields of a filter, by name. Raises ConfigError for a word without a condition, or a field given twice."""
    fields: dict[str, str] = {}
    for word, (name, value) in zip(words, _pairs(words), strict=True):
        if name in fields:
            raise ConfigError(f"--filter {word} is refused: there is another condition on {name} already.")
        fields[name] = value
    return fields


def id_filter_of(words: Sequence[str]) -> "IdFilter":
    """The filter. Raises ConfigError if it cannot work."""
    from lowkiq_lambda.operate.inspect.id_filter import filter_by

    try:
        return filter_by(criteria_of(words))
    except ValueError as error:
        raise ConfigError(str(error)) from error


def logged(words: Sequence[str], mask: "Mask | None") -> str:
    """The conditions for the activity: with a mask without the values that payloads are to have."""
    from lowkiq_lambda.operate.inspect.payload_query import without_values

    return ", ".join(
        f"{name}={without_values(value, mask) if name == 'payload' else value}" for name, value in _pairs(words)
    )


def _pairs(words: Sequence[str]) -> Iterator[tuple[str, str]]:
    for word in words:
        name, sign, value = word.partition("=")
        if not (name and sign and value):
            raise ConfigError(f"--filter {word} is refused: write NAME=VALUE, such as error=timeout.")
        yield name, value
