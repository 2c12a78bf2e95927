"""Bounds within which the library finds a number of a declaration by itself: a value of declarations."""

from typing import Final, Self

import msgspec

from lowkiq_lambda.base.errors import DeclarationError
from lowkiq_lambda.jobs.job import is_number

AUTO: Final = "auto"
"""The word for the bounds that are usual."""
MOST: Final = 1_000
"""Of shards, of calls at once, of ids in a call: more of any is for somebody to decide."""
SHARDS: Final = (5, 80)
"""The usual bounds of `shards_count`."""
CALLS: Final = (1, 10)
"""Those of `concurrency`: it is the service behind the handler that has to bear more."""
IDS: Final = (1, 100)
"""Those of `batch_size`: a larger one saves little."""
SHORTEST_LAG: Final = 0.1
LONGEST_LAG: Final = 86_400.0
"""Seconds. A shorter target would be missed by the pause of any move."""


class Usual(int):
    """A bound that nobody has given: each field has its own, and that of shards is told until then."""


class Auto(msgspec.Struct, frozen=True):
    """A number from `least` to `most`, so that `lag` is kept; a bound that is not given is the field's own.

    `lag`: seconds that the oldest due id may wait. Of shards: `back`: whether fewer may be made too, and not only
    proposed; `unreplicated`: whether they may be made on a server without a replica that has each step.

    Examples:
        >>> Auto.of(Auto(most=40), "Sync.shards_count")
        Auto(least=5, most=40, lag=5.0, back=False, unreplicated=False)
        >>> Auto(least=50, most=40)
        Traceback (most recent call last):
        ...
        lowkiq_lambda.base.errors.DeclarationError: least of an Auto must be at most its most, 40, not 50.
    """

    least: int = Usual(SHARDS[0])
    most: int = Usual(SHARDS[1])
    lag: float = 5.0
    back: bool = False
    unreplicated: bool = False

    def __post_init__(self) -> None:
        """Raises DeclarationError for what cannot be."""
        for field in ("least", "most"):
            value: object = getattr(self, field)
            if not is_number(value) or not isinstance(value, int) or not 1 <= value <= MOST:
                raise DeclarationError(f"{field} of an Auto must be a whole number from 1 to {MOST:,}, not {value!r}.")
        if self.least > self.most and not isinstance(self.least, Usual):
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
    def of(cls, declared: object, where: str, usual: tuple[int, int] = SHARDS) -> Self:
        """What a worker declares, with bounds: an Auto, or "auto". Raises DeclarationError for anything else."""
        auto = cls() if declared == AUTO else declared
        if not isinstance(auto, cls):
            raise DeclarationError(f'{where} must be a whole number, "auto" or an Auto, not {declared!r}.')
        least, most = (
            of_field if isinstance(value, Usual) else value
            for value, of_field in zip((auto.least, auto.most), usual, strict=True)
        )
        if isinstance(auto.least, Usual):
            least = min(least, most)
        return msgspec.structs.replace(auto, least=least, most=max(least, most))

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
