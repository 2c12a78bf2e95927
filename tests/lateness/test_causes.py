"""The nine causes by values: each alone, all pairs, and what is no verdict."""

from itertools import combinations
from typing import Any, Final, get_args

import msgspec
import pytest

from lowkiq_lambda.operate.lateness.causes import ENOUGH, LOOKED, judge, judge_moment
from lowkiq_lambda.operate.lateness.words import in_words
from lowkiq_lambda.views.lateness import Cause
from tests.kit.evidence import FULL, ON_TIME, UNHELD, minute, present

CAUSES: Final[tuple[Cause, ...]] = get_args(Cause)
EVIDENCE: Final[dict[Cause, tuple[dict[str, Any], dict[str, Any]]]] = {
    "somebody is at it": ({}, {"at_it": "it moves from 2 to 4 shards"}),
    "failures": ({"failed": 30}, {}),
    "limits": ({"held_back": 200.0}, {}),
    "slow handlers": ({"took": 2.1}, {"usual": 1.0}),
    "processor": ({"processors": 0.86}, {}),
    "compute": ({"shards": (FULL, UNHELD)}, {}),
    "hot ids": ({}, {"hot": 0.71}),
    "slots": ({"computing": 0.29}, {"concurrency": 9}),
    "shards": ({}, {}),
}
"""What is so in each minute, and beside the minutes, if this is the cause."""


@pytest.mark.parametrize("cause", CAUSES)
def test_each_cause_is_told_by_its_evidence(cause: Cause) -> None:
    """Alone it is the cause, in all minutes, and has a sentence of its own; what somebody does is a fact of now."""
    fields, beside = EVIDENCE[cause]
    minutes = [minute(**fields)] * LOOKED

    verdict = judge(minutes, present(**beside))

    held = 0 if cause == "somebody is at it" else LOOKED
    assert (cause, held, held) == verdict
    assert in_words(cause, minutes, present(**beside), LOOKED).clause
    assert in_words(cause, minutes, present(**beside), LOOKED).advice


@pytest.mark.parametrize(("first", "second"), [*combinations(CAUSES, 2)])
def test_of_two_causes_the_first_is_told(first: Cause, second: Cause) -> None:
    """More shards would make the first worse, so that the second waits."""
    fields = {**EVIDENCE[second][0], **EVIDENCE[first][0]}
    beside = {**EVIDENCE[second][1], **EVIDENCE[first][1]}
    if second == "compute":
        fields["shards"] = EVIDENCE[second][0]["shards"]

    assert first == judge([minute(**fields)] * LOOKED, present(**beside)).cause


@pytest.mark.parametrize("cause", [cause for cause in CAUSES if cause != "somebody is at it"])
def test_a_cause_has_to_hold_in_six_of_eight_minutes(cause: Cause) -> None:
    """In five it may be that of a burst; minutes in which the queue was not late speak for nothing."""
    fields, beside = EVIDENCE[cause]
    on_time, late = minute(shards=(ON_TIME, ON_TIME)), minute(**fields)

    enough = judge([*[on_time] * (LOOKED - ENOUGH), *[late] * ENOUGH], present(**beside))
    too_few = judge([*[on_time] * (LOOKED - ENOUGH + 1), *[late] * (ENOUGH - 1)], present(**beside))

    assert (cause, ENOUGH) == (enough.cause, enough.minutes)
    assert None is too_few.cause


@pytest.mark.parametrize(
    ("late", "clause"),
    [(5, 'the cause "shards" holds for 5 of 8 minutes, and 6 are needed'), (0, "no known cause holds")],
)
def test_a_cause_that_holds_for_too_short_is_told(late: int, clause: str) -> None:
    """Whoever looks in the first minutes reads what will probably be the cause, and how long it takes."""
    minutes = [*[minute(shards=(ON_TIME, ON_TIME))] * (LOOKED - late), *[minute()] * late]

    assert clause == in_words(judge(minutes, present()).cause, minutes, present(), LOOKED).clause


@pytest.mark.parametrize(("unknown", "cause"), [(0, "shards"), (1, "shards"), (2, None), (8, None)])
def test_two_unknown_minutes_are_no_verdict(unknown: int, cause: Cause | None) -> None:
    """Of one that is unknown the others may tell, of two they do not."""
    assert cause == judge([*[None] * unknown, *[minute()] * (LOOKED - unknown)], present()).cause


@pytest.mark.parametrize(
    ("cause", "fields", "beside"),
    [
        ("failures", {"failed": 5, "ended": 95}, {}),
        ("failures", {"retries": 250}, {}),
        ("limits", {"held_back": 120.0}, {}),
        ("slow handlers", {"took": 2.0}, {"usual": 1.0}),
        ("slow handlers", {"took": 9.0}, {"usual": None}),
        ("processor", {"processors": 0.84}, {}),
        ("processor", {"processors": None}, {}),
        ("compute", {"shards": (FULL, FULL, UNHELD)}, {}),
        ("compute", {"threads": 0}, {}),
        ("hot ids", {}, {"hot": 0.7}),
        ("slots", {"computing": 0.3}, {"concurrency": 1}),
        ("slots", {"computing": 0.0}, {"concurrency": 10}),
        ("slots", {"computing": None}, {"concurrency": 1}),
        ("slots", {"computing": 0.0}, {"concurrency": 20, "most": 20}),
        ("slots", {"computing": 0.0}, {"concurrency": 5, "most": 5}),
    ],
)
def test_at_its_bound_a_cause_does_not_hold(cause: Cause, fields: dict[str, Any], beside: dict[str, Any]) -> None:
    """So the last one is told, as the shards are full."""
    verdict = judge([minute(**fields)] * LOOKED, present(**beside))

    assert "shards" == verdict.cause
    assert cause != verdict.cause


def test_shards_that_are_not_full_speak_for_nothing() -> None:
    """Late ids in shards that are held and idle have none of the nine causes."""
    idle = minute(shards=(ON_TIME, msgspec.structs.replace(FULL, busy=0.5, held=0.95)))

    assert None is judge([idle] * LOOKED, present()).cause


def test_fewer_threads_than_shards_with_work_are_too_little_compute() -> None:
    """Shards take turns then, and more of them would only wait elsewhere; held ones show that invocations hold them."""
    in_turns = (msgspec.structs.replace(FULL, busy=0.6, held=0.6),) * 2

    assert "compute" == judge([minute(shards=in_turns, threads=1)] * LOOKED, present()).cause
    assert None is judge([minute(shards=in_turns, threads=2)] * LOOKED, present()).cause


def test_suspects_are_failures() -> None:
    """Ids that run alone hold up their shard, whatever their outcomes are."""
    assert "failures" == judge([minute()] * LOOKED, present(suspects=1)).cause


def test_of_a_coroutine_processes_tell_the_computing() -> None:
    """Its thread has several calls at once, so that no minute shows it."""
    minutes = [minute(computing=0.0)] * LOOKED

    assert "slots" == judge(minutes, present(concurrency=1, computing=0.1)).cause
    assert "shards" == judge(minutes, present(concurrency=1, computing=0.9)).cause


def test_slots_count_as_long_as_holders_may_have_more_of_them() -> None:
    """Above ten calls at once, too, where the declaration allows it: they need no advice, and no move."""
    minutes, raised = [minute(computing=0.0)] * LOOKED, present(concurrency=12, most=20)

    assert "slots" == judge(minutes, raised).cause
    assert "Wait: holders raise its concurrency, 12 now, to 20" in in_words("slots", minutes, raised, LOOKED).advice


@pytest.mark.parametrize("cause", CAUSES)
def test_a_moment_tells_what_needs_no_share_of_time(cause: Cause) -> None:
    """Without minutes the first causes are told as far as the present shows them, and the others are not."""
    fields, beside = EVIDENCE[cause]
    shown = cause in {"somebody is at it", "failures", "limits", "compute"}
    moment = minute(**{"threads": 0, **fields})

    assert (cause if shown else None) == judge_moment(moment, present(**beside)).cause


def test_a_moment_without_a_holder_is_no_cause_while_a_process_lives() -> None:
    """It may have held the shard until then."""
    assert None is judge_moment(minute(shards=(UNHELD, UNHELD), threads=1), present()).cause
