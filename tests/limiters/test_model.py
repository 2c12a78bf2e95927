"""The script against a plain reference: the same answers to any calls at any times, and never more than the limit."""

import math
from dataclasses import dataclass, field
from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.kit.servers import Server
from tests.limiters.asking import Limit, LimiterScript

DOUBT = 0.25
SLACK = 0.1
_ROUNDED = 1e-5


@dataclass
class Reference:
    """What the limit allows, by the plainest means: each grant, and the bounds of the time of its use."""

    limit: Limit
    granted: list[tuple[float, float, int]] = field(default_factory=list)
    """The earliest and the latest time of its use, and its points."""

    def fits(self, earliest: float, latest: float, points: int) -> bool:
        """Whether no window that may hold this use would have too many."""
        kind, most, per = self.limit
        if kind == "bucket":
            period = math.floor(earliest / per)
            spent = sum(count for _, at, count in self.granted if math.floor(at / per) == period)
            return math.floor(latest / per) == period and spent + points <= most
        if kind == "rate":
            return sum(count for _, at, count in self.granted if at > earliest - per + _ROUNDED) + points <= most
        spent = points
        fits = points <= most
        for _, at, count in reversed(self.granted):
            spent += count
            fits = fits and spent <= most + (earliest - at) * most / per + _ROUNDED
        return fits

    def take(self, earliest: float, latest: float, points: int) -> None:
        """It is granted."""
        self.granted.append((earliest, latest, points))


calls = st.lists(
    st.tuples(st.sampled_from([0.0, 0.1, 0.3, 1.0, 3.2]), st.integers(1, 4), st.sampled_from([-1, 0, 1])),
    min_size=1,
    max_size=25,
)


@pytest.mark.parametrize("kind", ["rate", "leaky", "bucket"])
@given(calls=calls)
def test_the_script_answers_as_the_reference_does(
    server: Server, kind: str, calls: list[tuple[float, int, int]]
) -> None:
    """A caller's clock is off by up to its doubt; the script may refuse a little more, never less."""
    limit = Limit(kind, 4, 3.2)
    asking, reference = LimiterScript(server, uuid4().hex, limit, slack=SLACK), Reference(limit)
    true, seen = 3.2 * 400_000 + 0.437, 0.0
    for rest, points, off in calls:
        true += rest
        now = true + off * DOUBT
        seen = max(seen, now - DOUBT)
        latest = now + DOUBT + SLACK
        fits = reference.fits(seen, latest, points)

        status, *_ = asking(now, points, doubt=DOUBT)

        assert not (status == "OK" and not fits)
        if status == "OK":
            reference.take(seen, latest, points)
        elif fits:
            # One part of the log, a thirty-second of `per`, may be dated later than it has to.
            assert kind == "rate"
            assert not reference.fits(seen - limit.per / 32, latest, points)


@given(
    calls=st.lists(
        st.tuples(st.sampled_from(["take", "give", "keep"]), st.integers(0, 5), st.sampled_from([0.0, 0.5, 2.0, 6.0])),
        max_size=30,
    )
)
def test_places_are_those_of_a_plain_set(server: Server, calls: list[tuple[str, int, float]]) -> None:
    """A place is taken once, whatever is sent twice, and lasts until it ends, or is given back; each can be renewed."""
    asking, now = LimiterScript(server, uuid4().hex, Limit("concurrent", 3, 5.0)), 1_000_000.0
    places: dict[str, float] = {}
    for op, number, rest in calls:
        now += rest
        places = {name: until for name, until in places.items() if until > now}
        nonce = f"place-{number}"
        status, *_ = asking(now, op=op, nonce=nonce)
        if op == "take":
            fits = nonce in places or len(places) < 3
            assert ("OK" if fits else "FULL") == status
            if fits:
                places.setdefault(nonce, now + 5.0)
        elif op == "give":
            places.pop(nonce, None)
        else:
            assert ("OK" if nonce in places else "GONE") == status
            if nonce in places:
                places[nonce] = now + 5.0
        assert [3 - len(places)] == asking(now, op="look")[2:3]
