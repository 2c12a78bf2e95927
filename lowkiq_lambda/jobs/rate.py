"""How many ids may begin in a time: a value of declarations."""

from dataclasses import dataclass
from typing import Final

from lowkiq_lambda.base.errors import DeclarationError
from lowkiq_lambda.jobs.job import MAX_EXACT, is_number
from lowkiq_lambda.jobs.retry import MAX_DELAY

_SHORTEST: Final = 0.1
"""Seconds: in a tenth of these, what a call to the server grants has to begin."""


@dataclass(frozen=True, slots=True)
class Rate:
    """At most `ids` begin in any `per` seconds; an id that is tried again counts again.

    Examples:
        >>> Rate(100, per=60)
        Rate(ids=100, per=60)
        >>> Rate(0, per=60)
        Traceback (most recent call last):
        ...
        lowkiq_lambda.base.errors.DeclarationError: Rate(0, per=60) would let nothing begin: pause the queue for that.
    """

    ids: int
    per: float

    def __post_init__(self) -> None:
        """Raises DeclarationError if the fields are not a rate."""
        ids: object = self.ids
        per: object = self.per
        if ids == 0 and not isinstance(ids, bool):
            raise DeclarationError(f"Rate({ids}, per={per!r}) would let nothing begin: pause the queue for that.")
        if not is_number(ids) or not isinstance(ids, int) or not 0 < ids <= MAX_EXACT:
            raise DeclarationError(f"The ids of a Rate must be a whole number from 1 to {MAX_EXACT:,}, not {ids!r}.")
        if not is_number(per) or not _SHORTEST <= self.per <= MAX_DELAY:
            raise DeclarationError(f"per of a Rate must be seconds from {_SHORTEST} to 100 years, not {per!r}.")
