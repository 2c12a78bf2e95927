"""Which pushes are stored only if their id has no work, and what becomes of the others: a value of declarations."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias, get_args

from lowkiq_lambda.base.errors import DeclarationError, JobError
from lowkiq_lambda.jobs.job import Pushed

Unless: TypeAlias = Literal["waiting", "busy"]
"""The id waits; or it waits, is retried, or runs."""
OnConflict: TypeAlias = Literal["drop", "raise", "replace"] | Callable[[Mapping[str, Any], Pushed], object]
"""The push is dropped; or dropped, and then `Conflict` is raised, or the function called with the job and its `Pushed`;
or it replaces what waits."""

REPLACE: Final = "replace"
_CHOICES: Final = ("drop", "raise", REPLACE)


@dataclass(frozen=True, slots=True)
class Unique:
    """For all pushes of a worker, what `unless` and `on_conflict` say for one.

    Examples:
        >>> Unique("busy")
        Unique(unless='busy', on_conflict='drop')
        >>> Unique("running")
        Traceback (most recent call last):
        ...
        lowkiq_lambda.base.errors.DeclarationError: unless of a Unique must be "waiting" or "busy", not 'running'.
    """

    unless: Unless = "waiting"
    on_conflict: OnConflict = "drop"

    def __post_init__(self) -> None:
        """Raises DeclarationError for what cannot be."""
        if problem := _problem(self.unless, self.on_conflict):
            raise DeclarationError(f"{problem[0]} of a Unique {problem[1]}.")


def terms_of(job: Mapping[str, Any], unique: Unique | None) -> Unique:
    """What holds for the job: what it says itself, else what its worker's `unique` says. Raises JobError."""
    default = unique or Unique()
    unless, on_conflict = job.get("unless", default.unless), job.get("on_conflict", default.on_conflict)
    if problem := _problem(unless, on_conflict):
        raise JobError(problem[1], field=problem[0])
    return Unique(unless, on_conflict)


def check_unique(unique: object, name: str, *, score_decides: bool) -> None:
    """Raises DeclarationError for what the worker of that name cannot have. `score_decides`: with merge="latest"."""
    if not isinstance(unique, Unique):
        raise DeclarationError(f'{name}.unique must be a Unique, as in Unique("busy"), not {unique!r}.')
    if unique.on_conflict == REPLACE and score_decides:
        raise DeclarationError(
            f'{name}.unique cannot replace what waits with merge = "latest": there the score decides which stays.'
        )


def _problem(unless: object, on_conflict: object) -> tuple[str, str] | None:
    """The field that cannot be so, and what it must be."""
    if unless not in get_args(Unless):
        return "unless", f'must be "waiting" or "busy", not {unless!r}'
    if on_conflict not in _CHOICES and not callable(on_conflict):
        names = '"drop", "raise", "replace" or a function of the job and its Pushed'
        return "on_conflict", f"must be {names}, not {on_conflict!r}"
    return None
