"""Times in requests: Unix seconds or ISO 8601."""

from datetime import UTC, datetime
from typing import Annotated, Final, TypeAlias

from msgspec import Meta

NUMBER: Final = r"[(\[]?[+-]?([0-9]{1,32}(\.[0-9]{0,32})?([eE][+-]?[0-9]{1,3})?|inf)|[+-]"
"""A numeric bound."""
_LEAP_YEAR: Final = "(19(72|76|8[048]|9[26])|20([02468][048]|[13579][26]))"
_DAY_OF_YEAR: Final = "((0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])|(0[13-9]|1[0-2])-(29|30)|(0[13578]|1[02])-31)"
_CLOCK: Final = r"([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9](\.[0-9]{1,6})?)?"
_ISO: Final = (
    rf"((19[7-9][0-9]|20[0-9]{{2}})-{_DAY_OF_YEAR}|{_LEAP_YEAR}-02-29)"
    rf"(T{_CLOCK}(Z|[+-](0[0-9]|1[0-4]):[0-5][0-9])?)?"
)

TimeBound: TypeAlias = Annotated[
    str,
    Meta(
        pattern=rf"^({NUMBER}|[(\[]?{_ISO})$",
        description="A time (inclusive), `(` and a time (exclusive), `-inf` or `+inf`. A time is in Unix seconds or in "
        "ISO 8601: years 1970 to 2099, UTC without a zone; a date stands for its first second.",
    ),
]


def in_seconds(bound: str) -> str:
    """A valid `TimeBound` in Unix seconds.

    >>> in_seconds("(2027-01-15T09:00:00+01:00"), in_seconds("2027-01-15"), in_seconds("-inf")
    ('(1800000000.0', '1799971200.0', '-inf')
    """
    sign = bound[:1] if bound[:1] in {"(", "["} else ""
    text = bound.removeprefix(sign)
    if text[4:5] != "-":
        return bound
    at = datetime.fromisoformat(text)
    return f"{sign}{(at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()!r}"
