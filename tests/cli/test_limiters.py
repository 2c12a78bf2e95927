"""`lowkiq limits --limiter`: limiters that handlers ask."""

import json

import msgspec
import pytest

from lowkiq_lambda import Concurrent, Rate
from lowkiq_lambda.operate.presentation.limits import LimiterResponse
from lowkiq_lambda.views.activity import ActivityView
from tests.cli.conftest import ShopOfCommands


def test_a_limiter_is_set_shown_and_taken_back(shop: ShopOfCommands) -> None:
    """Its numbers, and the use of a key; each act is in the activity, with its reason."""
    name = f"{shop.queue}-stripe"
    limiter = shop.app.limiter(name, Rate(10, per=60))
    limiter.acquire("acct_7", points=4)

    shown = shop.run("limits", "--limiter", name, "--key", "acct_7")
    changed = shop.run("limits", "--limiter", name, "--set", "rate=5/s", "--yes", "--reason", "slow")
    view = msgspec.json.decode(shop.run("limits", "--limiter", name, "--json")[1], type=LimiterResponse)
    reset = shop.run("limits", "--limiter", name, "--reset", "--yes")

    assert (
        0,
        f"{name}: rate of 10 in 1m\n  of the key acct_7: 6 left, 0 waiting; of all keys: 0 put off so far\n",
    ) == shown[:2]
    assert "  of calls without a key: 5 left, 0 waiting; of all keys: 0 put off so far" == changed[1].splitlines()[1]
    assert (0, f"{name}: rate of 5 in 1.0 s, set by an operator\n") == (
        changed[0],
        changed[1].splitlines(keepends=True)[0],
    )
    assert ("rate", 5, 1.0, True) == (view.kind, view.most, view.seconds, view.is_set)
    assert (0, True) == (reset[0], "rate of 10 in 1m\n" in reset[1])
    past = msgspec.json.decode(shop.run("activity", "--json")[1], type=ActivityView).activity
    mine = [(one.action, one.target, one.reason) for one in past if name in one.target]
    assert [("reset limiter", name, ""), ("set limiter", f"{name}: Rate(ids=5, per=1.0)", "slow")] == mine


def test_all_limiters_are_told_beside_the_queues(shop: ShopOfCommands) -> None:
    """Places can be set by `max_running`, and keep the time for which they are held."""
    name = f"{shop.queue}-erp"
    shop.app.limiter(name, Concurrent(50, hold=30))
    assert 0 == shop.run("limits", "--limiter", name, "--set", "max_running=3", "--yes")[0]

    assert f"{name}: concurrent of 3 in 30 s, set by an operator\n" in shop.run("limits")[1]
    (told,) = json.loads(shop.run("limits", "--json")[1])["limiters"]
    assert (name, 3, 30.0) == (told["name"], told["most"], told["seconds"])


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--limiter", "unknown"], "The app has no limiter 'unknown'"),
        (["--limiter", "stripe", "QUEUE"], "give one of them"),
        (["--limiter", "stripe", "--set", "max_running=3", "--yes"], "rate can be set, to a number"),
        (["--limiter", "stripe", "--set", "rate=none", "--yes"], "rate can be set, to a number"),
        (["--limiter", "stripe", "--set", "rate=5/s"], "There is no terminal to ask at"),
    ],
)
def test_what_cannot_be_is_refused(shop: ShopOfCommands, words: list[str], sentence: str) -> None:
    """Exit code 2, in a sentence; nothing is set."""
    limiter = shop.app.limiter("stripe", Rate(10, per=60))
    code, _, error = shop.run("limits", *words)

    assert (2, True) == (code, sentence in error), error
    assert not limiter.explain().is_set
