"""Bounds within which the library says how many shards a queue needs: a value of declarations."""

from typing import Final, Self

import msgspec

from lowkiq_lambda.base.errors import DeclarationError
from lowkiq_lambda.jobs.job import is_number

AUTO: Final = "auto"
"""The word for the bounds that are usual."""
MOST: Final = 1_000
"""Shards: each has a lease, a look and a place on pages, so that more are for somebody to decide."""
SHORTEST_LAG: Final = 0.1
LONGEST_LAG: Final = 86_400.0
"""Seconds. A shorter target would be missed by the pause of any move."""


class Auto(msgspec.Struct, frozen=True):
    """The queue has `least` shards at first; from `least` to `most` are proposed, or made, so that `lag` is kept.

    `lag`: seconds that the oldest due id may wait. `back`: whether fewer shards may be made too, and not only proposed.
    `unreplicated`: whether shards may be made on a server without a replica that has each step.

    Examples:
        >>> Auto(most=40)
        Auto(least=5, most=40, lag=5.0, back=False, unreplicated=False)
        >>> Auto(least=50, most=40)
        Traceback (most recent call last):
        ...
        lowkiq_lambda.base.errors.DeclarationError: least of an Auto must be at most its most, 40, not 50.
    """

    least: int = 5
    most: int = 80
    lag: float = 5.0
    back: bool = False
    unreplicated: bool = False

    def __post_init__(self) -> None:
        """Raises DeclarationError for what cannot be."""
        for field in ("least", "most"):
            value: object = getattr(self, field)
            if not is_number(value) or not isinstance(value, int) or not 1 <= value <= MOST:
                raise DeclarationError(f"{field} of an Auto must be a whole number from 1 to {MOST:,}, not {value!r}.")
        if self.least > self.most:
            raise DeclarationError(f"least of an Auto must be at most its most, {self.most:,}, not {self.least:,}.")
        lag: object = self.lag
        if not is_number(lag) or not SHORTEST_LAG <= self.lag <= LONGEST_LAG:
            raise DeclarationError(
                f"lag of an Auto must be seconds from {SHORTEST_LAG} to {LONGEST_LAG:,.0f}, not {lag!r}."
            )
        for field in ("back", "unreplicated"):
            value = getattr(self, field)
            if not isinstance(value, bool):
                raise DeclarationError(f"{field} of an Auto must be True or False, not {value!r}.")

    @classmethod
    def of(cls, declared: object, where: str) -> Self:
        """What a worker declares: an Auto, or "auto". Raises DeclarationError for anything else."""
        if isinstance(declared, cls):
            return declared
        if declared == AUTO:
            return cls()
        raise DeclarationError(f'{where} must be a whole number, "auto" or an Auto, not {declared!r}.')

    def within(self, other: "Auto") -> "Auto | None":
        """The bounds that keep both, as two apps may declare one queue; None where there are none."""
        least, most = max(self.least, other.least), min(self.most, other.most)
        if least > most:
            return None
        return Auto(
            least=least,
            most=most,
            lag=max(self.lag, other.lag),
            back=self.back and other.back,
            unreplicated=self.unreplicated and other.unreplicated,
        )
