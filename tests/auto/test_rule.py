"""The rule by values: which cause moves a queue, how far, and what keeps it where it is."""

from itertools import combinations
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from lowkiq_lambda import Auto, DeclarationError
from lowkiq_lambda.operate.auto.facts import AutoFacts
from lowkiq_lambda.operate.auto.memory import Memory
from lowkiq_lambda.operate.auto.rule import Fine, Proposal, Unmoved, decide
from lowkiq_lambda.operate.auto.words import line_of, refusal_of
from lowkiq_lambda.operate.lateness.causes import ROWS, judge
from lowkiq_lambda.store.shard.layout import Layout
from lowkiq_lambda.views.auto import AutoMove
from lowkiq_lambda.views.lateness import HourDigest
from tests.auto.recorded import BOUNDS, CALM, FULL, MinuteOf, Recorded
from tests.kit.evidence import FULL as FULL_SHARD
from tests.kit.evidence import UNHELD, minute, present

NOW: Final = 1_800_000_000.0
NEEDS: Final = AutoFacts(
    now=NOW,
    shards=5,
    bounds=Auto(unreplicated=True),
    mode="act",
    is_late=True,
    cause="shards",
    minutes=6,
    looked=8,
    lag=60.0,
    rises=0.5,
    load=5.0,
    busy=0.97,
    threads=80,
    ids=1_000,
)
"""A queue that needs shards, and may have them."""
SIGNS: Final[dict[str, tuple[dict[str, Any], dict[str, Any]]]] = {
    "somebody is at it": ({}, {"at_it": "it moves from 5 to 10 shards"}),
    "failures": ({"failed": 50}, {}),
    "limits": ({"held_back": 300.0}, {}),
    "slow handlers": ({"took": 3.0}, {"usual": 1.0}),
    "processor": ({"processors": 0.99}, {}),
    "compute": ({"shards": (UNHELD, UNHELD)}, {}),
    "hot ids": ({}, {"hot": 0.9}),
    "slots": ({"computing": 0.0}, {"concurrency": 1}),
    "shards": ({"shards": (FULL_SHARD, FULL_SHARD)}, {}),
}
"""What a minute, and the present, are like with each cause, in the order of the rows."""


def sized(facts: AutoFacts, memory: Memory | None = None) -> Proposal | Unmoved | Fine:
    """The verdict without a simulation."""
    return decide(facts, memory or Memory(epoch=0), lambda _to: None)


def moved(facts: AutoFacts, **fields: Any) -> Memory:
    """The memory of a move that ended an hour ago, but for these fields."""
    at = facts.now - 3_600
    move = AutoMove(at=at, shards=5, to=10, lag_before=60.0, ended_at=at, lag_after=1.0)
    return Memory(epoch=1, moves=(replace(move, **fields),))


def judged(*causes: str) -> Proposal | Unmoved | Fine:
    """The verdict on eight minutes with the signs of these causes, of which the first has its shards."""
    of_minute: dict[str, Any] = {}
    of_present: dict[str, Any] = {}
    for cause in reversed(causes):
        of_minute |= SIGNS[cause][0]
        of_present |= SIGNS[cause][1]
    verdict = judge([minute(**of_minute)] * 8, present(**of_present))
    assert causes[0] == verdict.cause
    return sized(replace(NEEDS, cause=verdict.cause, minutes=verdict.minutes, looked=verdict.looked))


@pytest.mark.parametrize("cause", SIGNS)
def test_only_a_want_of_shards_moves(cause: str) -> None:
    """Eight causes leave the queue as it is, and the ninth does not."""
    assert [*SIGNS] == ["somebody is at it", *ROWS]
    assert (Proposal if cause == "shards" else Unmoved) is type(judged(cause))


@pytest.mark.parametrize(("first", "second"), [*combinations(SIGNS, 2)])
def test_of_two_causes_the_first_counts(first: str, second: str) -> None:
    """Whatever else holds, a cause that more shards would make worse stands before one that they cure."""
    assert Unmoved is type(judged(first, second))


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"looked": 6, "minutes": 6}, "only 6 of the last 8 minutes are known"),
        ({"is_held": True}, "somebody has stopped it here"),
        ({"failing": True}, "failures were a good part of its work in the last ten minutes"),
        ({"rises": -1.5}, "its lag falls by 1.5 s a second"),
        ({"ids": 5_000_000, "rises": 0.0}, "a move takes 8 minutes, and in ten minutes the oldest id will have"),
        ({"shards": 80}, "its declaration allows 80 at most"),
        ({"threads": 4}, "4 threads drain, and more than 8 shards would only take turns"),
    ],
)
def test_a_refusal_has_a_reason(changes: dict[str, Any], reason: str) -> None:
    """Each veto is told in words."""
    verdict = sized(replace(NEEDS, **changes))

    assert isinstance(verdict, Unmoved)
    assert verdict.reason.startswith(reason)


def test_the_line_has_the_numbers_that_were_measured() -> None:
    """Minutes of those that are known, and shards of those that are late: two thirds of them suffice."""
    facts = replace(NEEDS, looked=7, full=(4, 5))
    verdict = sized(facts)

    assert isinstance(verdict, Proposal)
    assert line_of(facts, verdict, (19.8, 0.03)) == (
        "5 → 10 shards: for 6 of 7 min late shards were full, 4 of 5 in the last, slots 97% busy, oldest 60 s"
        "; p95 20 s → 30 ms expected, pause some 2.0 s"
    )


def test_the_page_shows_what_is_printed() -> None:
    """Its example is a line of each kind, as `lowkiq auto` has it."""
    facts = replace(NEEDS, full=(5, 5), lag=41.0)
    verdict = sized(facts)
    assert isinstance(verdict, Proposal)
    hot = replace(NEEDS, lag=180.0, cause="hot ids", part=0.84)

    lines = [line_of(facts, verdict, (19.8, 0.03)), refusal_of(hot, Unmoved("-"))]

    page = (Path(__file__).parents[2] / "docs" / "auto.md").read_text()
    assert "```text\n" + "".join(f"SyncOrder: {line}\n" for line in lines) + "```\n" in page


def test_a_refusal_for_one_id_names_the_command_that_tells_which() -> None:
    """The line itself stands in the activity for months, where no id belongs."""
    facts = replace(NEEDS, cause="hot ids", clause="the id 'ada' has 84% of what is due in its shard", part=0.84)

    assert refusal_of(facts, Unmoved("-")).endswith("one id has 84% of the jobs in its shard (id in lowkiq why)")


@pytest.mark.parametrize(
    ("load", "concurrency", "to"), [(5.0, 1, 10), (6.1, 1, 20), (11.0, 1, 20), (90.0, 1, 20), (50.0, 10, 10)]
)
def test_the_count_is_the_smallest_that_has_room(load: float, concurrency: int, to: int) -> None:
    """Six tenths of the slots may be busy, and a move makes at most four times as many."""
    verdict = sized(replace(NEEDS, load=load, concurrency=concurrency))

    assert isinstance(verdict, Proposal)
    assert (to, ()) == (verdict.to, verdict.bars)


def test_a_simulation_may_ask_for_more_or_refuse() -> None:
    """The load alone would let 10 shards suffice: the waits that are expected of them do not."""
    waits = {5: 60.0, 10: 20.0, 20: 1.0}
    verdict = decide(NEEDS, Memory(), waits.get)
    assert isinstance(verdict, Proposal)
    assert 20 == verdict.to

    verdict = decide(NEEDS, Memory(), lambda _to: 55.0)
    assert Unmoved("by a simulation of the last minutes 20 shards would not help: p95 55 s → 55 s") == verdict


@pytest.mark.parametrize(
    ("changes", "memory", "bar"),
    [
        ({"mode": "propose"}, Memory(), 'auto is "propose"'),
        ({"mode": "off"}, Memory(), 'auto is "off"'),
        ({}, Memory(moved_by_hand=NOW - 86_400), "somebody else moved it 24.0 hours ago"),
        ({}, Memory(useless_at=NOW - 86_400), "its last move did not help"),
        ({"dying": True}, Memory(), "ids die"),
        ({"schedules": "foreign"}, Memory(), "its shards have schedules on AWS"),
        ({"bounds": Auto(), "is_replicated": False}, Memory(), "no replica would keep a move"),
    ],
)
def test_a_bar_leaves_a_proposal(changes: dict[str, Any], memory: Memory, bar: str) -> None:
    """What somebody has to decide is proposed, and not done."""
    verdict = sized(replace(NEEDS, **changes), memory)

    assert isinstance(verdict, Proposal)
    assert verdict.bars[0].startswith(bar)


@pytest.mark.parametrize(
    ("memory", "reason"),
    [
        (moved(NEEDS, at=NOW - 60, ended_at=NOW - 30), "it moved 30 s ago, and the effect is waited for"),
        (Memory(rests_until=NOW + 3_600), "its last move had to be turned round, so it rests for 60 minutes more"),
        (Memory(failed_at=NOW - 500), "failures were a good part of its work in the last ten minutes"),
        (Memory(moves=moved(NEEDS).moves * 4), "it moved 4 times within a day"),
        (Memory(back_at=NOW - 899), "nobody could look at it until 15 minutes ago, as in an outage"),
    ],
)
def test_moves_are_few(memory: Memory, reason: str) -> None:
    """One in half an hour, four in a day, none after failures, and six hours of rest after one that went back."""
    assert Unmoved(reason) == sized(NEEDS, memory)


def hours(busiest: int, count: int = 24 * 7) -> tuple[HourDigest, ...]:
    """The hours before now, of a second an id; that which goes on now is the quietest of each day."""
    return tuple(
        HourDigest(
            at=NOW - NOW % 3_600 - 3_600 * back,
            seconds=3_600.0,
            ids=60 * busiest,
            payloads=60 * busiest,
            calls=60 * busiest,
            busy=60.0 * busiest * (0.5 if back % 24 == 0 else 1.0),
            computing=0.0,
            held=3_600.0,
            failed=0,
            dead=0,
            busiest=busiest,
            p50=None,
            p95=None,
            p99=None,
        )
        for back in range(1, count + 1)
    )


def test_the_way_back_is_proposed_in_the_quietest_hour() -> None:
    """Half the shards would be 40 % busy in the busiest minute of the day: fewer are proposed, more are kept."""
    calm = replace(NEEDS, is_late=False, cause=None, shards=20, lag=0.0, length=10, hours=hours(busiest=200))
    verdict = sized(calm)
    assert isinstance(verdict, Proposal)
    assert (10, ("Auto(back=True) is not declared",)) == (verdict.to, verdict.bars)

    later = replace(calm, now=NOW + 3_600)
    assert [Fine, Proposal] == [type(sized(replace(later, any_hour=any_hour))) for any_hour in (False, True)]
    for changes in (
        {"now": NOW + 3_600},
        {"hours": hours(busiest=300)},
        {"hours": hours(busiest=200, count=20)},
        {"length": 1_000},
        {"shards": 8},
        {"is_held": True},
        {"at_it": "one of its shards is paused"},
        {"failing": True},
    ):
        assert isinstance(sized(replace(calm, **changes)), Fine), changes

    back = replace(calm, bounds=Auto(back=True, unreplicated=True))
    verdict = sized(back)
    assert isinstance(verdict, Proposal)
    assert () == verdict.bars


def test_a_move_that_did_not_help_is_told_by_the_lag_after_it() -> None:
    """The lag of half an hour is no third better: the next one is only proposed, until somebody answers."""
    queue = Recorded()
    queue.minutes(9)
    assert [(5, 20)] == [(move.shards, move.to) for move in queue.moves]

    verdict = queue.minutes(35)

    assert queue.memory.useless_at is not None
    assert isinstance(verdict, Proposal)
    assert "its last move did not help" in verdict.bars
    assert 20 == queue.shards


@pytest.mark.parametrize("phase", [5.0, 20.0, 40.0, 55.0])
@pytest.mark.parametrize(
    ("worked_off", "left", "helped"),
    [(120.0, 0.0, True), (300.0, 0.0, True), (600.0, 0.0, True), (300.0, 39.0, True), (300.0, 41.0, False)],
)
def test_a_backlog_that_is_worked_off_does_not_speak_against_a_move(
    phase: float, worked_off: float, left: float, *, helped: bool
) -> None:
    """A lag of 60 s falls evenly after the move, whenever the minutes begin: what counts is the lag that stays."""
    memory = Memory(moves=(AutoMove(at=NOW - 30, shards=5, to=10, lag_before=60.0, ended_at=NOW),))
    for number in range(32):
        after = phase + 60.0 * number
        lag = max(left, 60.0 * (1 - after / worked_off))
        memory = memory.with_lag(NOW + after, lag).judged(NOW + after)

    assert helped == (memory.useless_at is None)


def test_a_move_that_helped_leaves_nothing() -> None:
    """The lag is gone: the next want of shards is served again."""
    queue = Recorded()
    queue.minutes(9)
    queue.minutes(35, CALM)
    assert (None, 0.0) == (queue.memory.useless_at, queue.moves[0].lag_before - 300.0)

    queue.minutes(10)

    assert [(5, 20), (20, 80)] == [(move.shards, move.to) for move in queue.moves]


def test_what_somebody_moved_is_left_alone_for_a_week() -> None:
    """They had a reason: more is proposed, and not done."""
    queue = Recorded()
    queue.minutes(3, CALM)
    queue.by_hand(10)
    verdict = queue.minutes(12)
    assert isinstance(verdict, Proposal)
    assert verdict.bars[0].startswith("somebody else moved it")

    queue.now += 7 * 86_400
    queue.minutes(16)

    assert [(10, 40)] == [(move.shards, move.to) for move in queue.moves]


@pytest.mark.parametrize(("away", "moves"), [(60.0, 1), (1_000.0, 0), (9_000.0, 0)])
def test_a_backlog_of_an_outage_is_no_want_of_shards(away: float, moves: int) -> None:
    """The first quarter of an hour after minutes in which nobody could look, however many these were."""
    queue = Recorded()
    queue.minutes(3, CALM)
    queue.now += away
    queue.minutes(15)
    assert moves == len(queue.moves)

    queue.minutes(2)

    assert 1 == len(queue.moves)


def test_a_begin_that_never_was_is_forgotten() -> None:
    """The mover died between its note and its move: the next look finds the old layout."""
    memory = Memory(epoch=3).begins(NOW, 5, 10)

    assert () == memory.sees(Layout(before=5, after=5, epoch=3), NOW + 60).moves


def test_a_move_that_is_seen_on_its_way_back_counts_as_of_somebody() -> None:
    """The duty looks while the ids go back, and the layout keeps its epoch when all have arrived."""
    there = Layout(before=5, after=10, epoch=4, at=NOW)
    back = there.turned_back(5).noted(NOW + 30, "ann")
    memory = Memory(epoch=3).begins(NOW, 5, 10).sees(there, NOW).sees(back, NOW + 60)

    after = memory.sees(back.ended().noted(NOW + 90, "ann"), NOW + 120)

    assert (NOW + 30, [(True, NOW + 90)]) == (
        after.moved_by_hand,
        [(move.is_turned, move.ended_at) for move in after.moves],
    )


def test_a_move_that_somebody_turned_round_counts_as_theirs() -> None:
    """They have seen it, and did not want it."""
    memory = Memory(epoch=3).begins(NOW, 5, 10).sees(Layout(before=5, after=10, epoch=4, at=NOW), NOW)

    after = memory.sees(Layout(before=5, after=5, epoch=5, at=NOW + 30), NOW + 60)

    assert NOW + 30 == after.moved_by_hand
    assert after.moves[0].is_turned


LIKE = st.builds(
    MinuteOf,
    busy=st.sampled_from([0.1, 0.9, 0.97]),
    failed=st.sampled_from([0.0, 0.0, 0.0, 0.2]),
    lag=st.sampled_from([0.0, 20.0, 300.0]),
    hot=st.sampled_from([0.5, 0.5, 0.9]),
    waiting=st.sampled_from([0, 500, 5_000]),
    is_known=st.sampled_from([True, True, True, False]),
    falls=st.sampled_from([False, False, False, True]),
)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(LIKE, st.integers(1, 40)), min_size=5, max_size=40))
def test_whatever_the_counters_moves_are_few_and_in_bounds(stretches: list[tuple[MinuteOf, int]]) -> None:
    """At most four moves in a day, always to doubles of the first count in bounds, and none soon after failures."""
    queue = Recorded()
    for like, count in stretches:
        for _ in range(count):
            before = len(queue.moves)
            queue.minute(like)
            assert len(queue.moves) == before or queue.now - queue.failed_at >= 600
    ats = [move.at for move in queue.moves]
    assert all(later - ats[place] > 86_400 for place, later in enumerate(ats[4:]))
    assert all(move.to in {5, 10, 20, 40, 80} and move.to <= 4 * move.shards for move in queue.moves)


def test_a_hostile_tenant_makes_no_more_than_four_moves_a_day() -> None:
    """One id for nine minutes, a million ids for nine minutes, in turn for a day."""
    queue = Recorded(Auto(least=1, most=80))
    for _ in range(80):
        queue.minutes(9, FULL._replace(hot=0.95))
        queue.minutes(9, FULL._replace(lag=400.0))
    assert len(queue.moves) <= 4


def test_a_load_that_flaps_for_a_week_moves_little() -> None:
    """Bursts of a quarter of an hour, each four hours: after the first days the shards suffice, and stay."""
    queue, backlog = Recorded(BOUNDS), 0.0
    late = 0
    for number in range(7 * 24 * 60):
        load = 16.0 if number % 240 < 15 else 2.0
        backlog = max(0.0, backlog + (load - queue.shards) * 60)
        lag = backlog / queue.shards
        late += lag > 5
        busy = 0.97 if backlog else load / queue.shards
        queue.minute(MinuteOf(busy=busy, lag=lag, waiting=int(backlog)))

    assert 1 <= len(queue.moves) <= 2
    assert 20 == queue.shards
    assert late < 60


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"most": 1_001}, "most of an Auto must be a whole number from 1 to 1,000, not 1001"),
        ({"least": 0}, "least of an Auto must be a whole number from 1 to 1,000, not 0"),
        ({"least": 90}, "least of an Auto must be at most its most, 80, not 90"),
        ({"lag": 0}, "lag of an Auto must be seconds from 0.1 to 86,400, not 0"),
        ({"back": 1}, "back of an Auto must be True or False, not 1"),
    ],
)
def test_bounds_that_cannot_be_are_refused(fields: dict[str, Any], says: str) -> None:
    """The declaration says what is wrong."""
    with pytest.raises(DeclarationError, match=says):
        Auto(**fields)


def test_the_bounds_of_two_apps_are_the_narrower_ones() -> None:
    """Both are kept, or there are none."""
    assert Auto(least=10, most=40, lag=9.0) == Auto(least=10, most=80, back=True).within(Auto(most=40, lag=9.0))
    assert Auto(least=50).within(Auto(most=40)) is None
