"""P1, P2, P3: the scripts do what the model of the lease says, whichever copies of calls arrive, and when."""

from collections.abc import Iterable
from random import Random
from typing import Final

import pytest

from tests.kit.examples import examples, mostly_nightly
from tests.kit.servers import Server
from tests.models.conforming import LONGEST, play_traces, random_trace, tells_token
from tests.models.planting import plant

TRACES: Final = 1_000
"""A sixth of them in each check, twice as many at night."""
SEEN: Final = (
    *("a push", "time goes by", "the key is evicted", "ahead of time", "its answer is lost", "gives up", "goes on"),
    *("is answered None", "is answered ()", "is answered (1, 2)", "'s call 2 of", "A dies", "B dies"),
)
"""What traces have to do: one that never does a thing says nothing of it."""
GUARDS: Final = {
    "token": ("or current ~= token then return 'LOST' end", "then return 'LOST' end"),
    "nonce": ("if holder ~= nonce or current ~= token then return 'LOST' end", ""),
    "call number": ("return n == tonumber(last) and 'AGAIN' or 'LOST'", "return 'NEXT'"),
    "until": ("if now < held_until or exists(lease) then", "if exists(lease) then"),
    "key": ("if now < held_until or exists(lease) then", "if now < held_until then"),
    "recovery": (
        "ids[#ids + 1] = left[i] end",
        "ids[#ids + 1] = left[i] end table.remove(ids) if #ids == 0 then call('DEL', flight) return 0, {}, {} end",
    ),
    "until kept": ("math.max(now + ttl, held_until)", "now + ttl"),
}
"""Text of the scripts that the model has, too, and the text without it."""


def play(server: Server, queue_name: str, seeds: Iterable[int]) -> set[str]:
    """The traces of these seeds, and what they did. Raises AssertionError."""
    return {*play_traces(server.url, server.admin, queue_name, seeds)}


@pytest.mark.timeout(900)
def test_the_scripts_go_the_way_of_the_model_in_random_traces(server: Server, queue_name: str) -> None:
    """After each step nonce, call, token, until, flight and waiting are equal: late, doubled and lost calls, too."""
    labels = play(server, queue_name, range(examples(TRACES)))

    assert [] == [word for word in SEEN if not any(word in label for label in labels)]


@pytest.mark.parametrize("guard", mostly_nightly(GUARDS, "call number"))
def test_a_script_without_a_guard_leaves_the_way_of_the_model(
    server: Server, queue_name: str, monkeypatch: pytest.MonkeyPatch, guard: str
) -> None:
    """Traces that find no planted fault would say nothing of the scripts."""
    old, new = GUARDS[guard]
    changed = plant(monkeypatch, old, new)
    # One trace in some hundreds needs the token: it takes a whole session whose copies come behind another one.
    is_needed = tells_token if guard == "token" else bool
    seeds = (seed for seed in range(2 * TRACES) if is_needed(random_trace(Random(seed), LONGEST)))

    with pytest.raises(AssertionError, match=r"differ|was handed"):
        play(server, queue_name, seeds)
    assert changed
