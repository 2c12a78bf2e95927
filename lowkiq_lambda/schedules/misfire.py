"""Which planned times fire, now that they have come, and which were missed."""

from typing import Final, Literal, NamedTuple, TypeAlias

from lowkiq_lambda.schedules.times import Times

Missed: TypeAlias = Literal["once", "skip", "all"]
"""What becomes of planned times that nobody was there for: the newest fires, or none, or all."""

SKIP_GRACE: Final = 120.0
"""Seconds by which a firing may be late where missed times are skipped: a tick comes once a minute."""
MOST_FIRED: Final = 100
"""Firings of an entry in one decision."""
MOST_MISSED: Final = 100
"""Missed times that are listed, the newest: an absence of a year costs no more than one of an hour."""


class Decision(NamedTuple):
    """What becomes of the planned times after a floor, up to now; all in Unix seconds.

    `fire`: to be fired now, in this order. `missed`: too late, or replaced by a newer one, so they never fire;
    ascending, the newest 100 of them. The times of one decision are all decided when the newest of both is written: it
    is the next floor. `next_at`: the first planned time that is not decided; None if there is none. It is not after
    now where there were more to fire than may be at once.
    """

    fire: tuple[float, ...]
    missed: tuple[float, ...]
    next_at: float | None


def decide(times: Times, floor: float, now: float, missed: Missed, grace: float) -> Decision:
    """Decide the planned times after `floor`, up to `now`. Raises DeclarationError as `times.check` does.

    "skip" fires the newest if it is at most 120 s late; "once" the newest if it is at most `grace` seconds late; "all"
    each that is at most `grace` late, 100 at a time.
    """
    raise NotImplementedError
