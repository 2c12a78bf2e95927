"""Selects runs of a queue: those that ran in some time, of an id, with an outcome, and so on."""

from collections.abc import Iterable, Sequence
from math import inf
from typing import Any, Final, Self, get_args

import msgspec

from lowkiq_lambda.jobs.job import id_text, is_number
from lowkiq_lambda.store.shard.run_entries import short_id
from lowkiq_lambda.views.runs import RunOutcome

_SECONDS: Final = ("since", "until", "took_over")
_OUTCOMES: Final = get_args(RunOutcome)


class RunFilter(msgspec.Struct, frozen=True, kw_only=True):
    """A part of the runs; all of them by default.

    `since`, `until`: those that ran at some moment between, Unix seconds. `outcomes`: empty for any. `took_over`: those
    that took longer than so many seconds.
    """

    since: float = -inf
    until: float = inf
    id: str | None = None
    outcomes: frozenset[str] = frozenset()
    fingerprint: str | None = None
    release: str | None = None
    holder: str | None = None
    took_over: float | None = None

    @classmethod
    def of(cls, *, id: object = None, outcome: str | Iterable[str] | None = None, **fields: Any) -> Self:  # noqa: ANN401 - the public name, any field
        """The filter with these fields; None is as if not given. Raises JobError for an invalid id, ValueError."""
        values = {name: value for name, value in fields.items() if value is not None}
        for name in _SECONDS:
            if name in values and not is_number(values[name]):
                raise ValueError(f"{name} must be a number of seconds, not {values[name]!r}.")
        outcomes = frozenset(() if outcome is None else (outcome,) if isinstance(outcome, str) else outcome)
        for name in sorted(outcomes - {*_OUTCOMES}):
            raise ValueError(f"{name!r} is not an outcome of runs: expected one of {', '.join(_OUTCOMES)}.")
        return cls(id=None if id is None else id_text(id), outcomes=outcomes, **values)

    def place_of(self, ids: Sequence[str]) -> int | None:
        """The place of its id among those of an entry, which has long ones cut unless it keeps payloads; or None."""
        for name in () if self.id is None else (self.id, short_id(self.id)):
            if name in ids:
                return ids.index(name)
        return None

    def has_time(self, began: float, took: float | None) -> bool:
        """Whether a run of that time is among them; of one whose holder died the length is unknown."""
        is_long = self.took_over is None or (took is not None and took > self.took_over)
        return is_long and began <= self.until and began + (took or 0.0) >= self.since

    def has_process(self, owner: str, release: str) -> bool:
        """Whether runs of that holder and release are among them."""
        return self.holder in {None, owner} and self.release in {None, release}

    def has_outcome(self, outcome: str) -> bool:
        """Whether runs with that outcome are among them."""
        return not self.outcomes or outcome in self.outcomes
