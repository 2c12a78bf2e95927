"""How many examples a property is tried on, and which values of a matrix: few in each check, the others at night."""

import itertools
from collections.abc import Iterable
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, settings

EACH_CHECK: Final = "each check"
NIGHTLY: Final = "nightly"
"""Profiles of Hypothesis: `make test` takes the first, `make nightly` names the second."""

# A busy machine may take long for one example, which says nothing of it.
_ANY_MACHINE: Final = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


def register_profiles() -> None:
    """Make both known to Hypothesis, and the first the one in use."""
    settings.register_profile(EACH_CHECK, _ANY_MACHINE, max_examples=16)
    settings.register_profile(NIGHTLY, _ANY_MACHINE, max_examples=200)
    settings.load_profile(EACH_CHECK)


def examples(usual: int) -> int:
    """How many a property with a number of its own gets: a sixth of it in each check, twice as many at night."""
    return max(1, usual * settings().max_examples // 100)


def crossed(first: Iterable[Any], second: Iterable[Any]) -> list[Any]:
    """All pairs of two lists, for `parametrize`: each check has each value in some pair, the night has all pairs."""
    firsts, seconds = list(first), list(second)
    pairs = itertools.product(firsts, seconds)
    most = max(len(firsts), len(seconds))
    kept = {(firsts[place % len(firsts)], seconds[place % len(seconds)]) for place in range(most)}
    return mostly_nightly(pairs, *kept)


def mostly_nightly(values: Iterable[Any], *kept: Any) -> list[Any]:
    """The values of a matrix, for `parametrize`: the kept ones for each check, all others for the night alone."""
    found = list(values)
    assert set(kept) < set(found), f"{set(kept) - set(found)} are not among the values, or nothing is left"
    night = pytest.mark.nightly("the kept values of the same matrix are part of each check")
    return [
        value if value in kept else pytest.param(*value if isinstance(value, tuple) else (value,), marks=night)
        for value in found
    ]
