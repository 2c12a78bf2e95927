"""What operators do to the morgue."""

from collections.abc import Callable

import pytest

from lowkiq_lambda.operate.queue_operations import QueueOperations
from lowkiq_lambda.settings.protocols import MorgueLimits
from tests.kit.desk import Desk, MakeDesk
from tests.kit.looks import ids_of, pairs

Act = Callable[[QueueOperations], int]


def test_d3_a_job_comes_back_from_the_morgue_as_new(desk: Desk) -> None:
    """D-3, L-34, LN-11: due now, retry_count -1, with all its payloads and its error; then it is performed."""
    desk.kill([{"id": "a", "payload": n, "score": n} for n in (2, 1)] + [{"id": "b"}])
    desk.clock.advance(5)

    assert 1 == desk.queue.morgue.requeue(["a", "unknown"])
    (job,) = desk.queue.waiting.fetch(["a"])
    assert [(1, 1.0), (2, 2.0)] == pairs(job)
    assert (desk.clock.time(), -1.0, "a is broken") == (job.due_at, job.retry_count, job.error)
    assert ["b"] == ids_of(desk.queue.morgue.list("id"))
    desk.drain()
    assert {"a": [1, 2]} == desk.handler.batches[-1]
    assert desk.is_empty()


def test_it_merges_into_what_waits(desk: Desk) -> None:
    """L-25, L-26, L-29: payloads unite in order of score, equal ones by the queue's rule; due now, retry_count -1."""
    desk.kill([{"id": "a", "payload": payload, "score": n} for n, payload in enumerate("xyz")])
    desk.handler.words = "is broken still"
    desk.fail([{"id": "a", "payload": payload, "score": n} for n, payload in ((0.5, "w"), (9, "y"))])
    desk.clock.advance(1)

    assert 1 == desk.queue.morgue.requeue(["a"])
    (job,) = desk.queue.waiting.fetch(["a"])
    assert [("x", 0.0), ("w", 0.5), ("y", 1.0), ("z", 2.0)] == pairs(job)
    assert (desk.clock.time(), -1.0, "a is broken still") == (job.due_at, job.retry_count, job.error)


def test_it_waits_for_what_is_in_flight(desk: Desk) -> None:
    """E-76: an id that comes back while it runs is performed afterwards; were it to fail, both wait for its retry."""
    desk.kill([{"id": "a", "payload": "dead", "score": 1}])
    desk.push([{"id": "a", "payload": "runs", "score": 2}])
    desk.handler.meanwhile, desk.handler.failing = lambda: desk.queue.morgue.requeue(["a"]), {"a"}
    desk.drain()

    (job,) = desk.queue.waiting.fetch(["a"])
    assert ([("dead", 1.0), ("runs", 2.0)], 0.0) == (pairs(job), job.retry_count)
    assert {} == desk.state()["morgue"]


def test_it_is_due_now_whatever_waits_under_it(make_desk: MakeDesk) -> None:
    """L-29: the time of what it meets is now, also of a next chunk and of what is to run alone."""
    desk = make_desk({"batch_size": 2}, claim_payloads=4)
    desk.kill([{"id": job_id, "payload": "dead"} for job_id in ("many", "alone")])
    desk.push([{"id": "many", "payload": n, "score": n} for n in range(9)])
    desk.clock.advance(5)
    seen = []

    def bring_back() -> None:
        desk.clock.advance(5)
        desk.queue.morgue.requeue(everything=True)
        seen.append((desk.state(), desk.clock.time()))

    desk.handler.meanwhile = bring_back
    desk.drain()
    found, now = seen[0]
    assert (now, -1.0, None) == found["waiting"]["many"][1:4]

    def raise_in_company() -> None:
        desk.handler.meanwhile = bring_back
        raise ValueError("somebody is broken")

    desk.kill([{"id": "alone", "payload": "dead"}])
    desk.push([{"id": "one"}, {"id": "alone"}])
    desk.handler.meanwhile = raise_in_company
    desk.drain()
    found, now = seen[1]
    assert (now, now) == (found["suspects"]["alone"], found["waiting"]["alone"][1])
    assert desk.is_empty()


def test_it_runs_in_company_again(desk: Desk) -> None:
    """What failed alone ran alone; what starts anew shares batches with fresh ones."""
    desk.kill([{"id": "a", "payload": 1}])
    desk.fail([{"id": "a", "payload": 2}, {"id": "z"}])
    desk.queue.morgue.requeue(["a"])
    desk.push([{"id": "fresh"}])
    desk.drain()

    assert ["a", "fresh"] == list(desk.handler.batches[-1])


def test_what_died_twice_comes_back_whole(desk: Desk) -> None:
    """E-76, L-26: payloads of several deaths are one job in the order of scores, and equal ones are one payload."""
    for later, payloads in enumerate(([3, 1], [2, 1])):
        desk.kill([{"id": "a", "payload": n, "score": n + later * 0.5 * (n == 1)} for n in payloads])
        desk.clock.advance(1)
    assert [(1, 1), (2, 2), (3, 3)] == pairs(desk.queue.morgue.fetch(["a"])[0])

    assert 1 == desk.queue.morgue.requeue(everything=True)
    assert [(1, 1), (2, 2), (3, 3)] == pairs(desk.queue.waiting.fetch(["a"])[0])


def test_what_operators_kill_meets_equal_payloads_in_the_morgue(desk: Desk) -> None:
    """L-26: a payload that is killed joins the one of its id that lies there, at the smaller score."""
    for score in (5, 3):
        desk.fail([{"id": "a", "payload": 1, "score": score}])
        assert 1 == desk.queue.waiting.kill(everything=True)

    assert [(1, 3)] == pairs(desk.queue.morgue.fetch(["a"])[0])


def test_ties_keep_their_order_of_arrival_through_the_morgue(desk: Desk) -> None:
    """E-63: equal scores stand as they were pushed, also between what came back and what waits."""
    desk.kill([{"id": "a", "payload": payload, "score": 1} for payload in "zx"])
    desk.push([{"id": "a", "payload": "a", "score": 1}])
    desk.queue.morgue.requeue(["a"])

    assert ["z", "x", "a"] == [payload for payload, _ in desk.queue.waiting.fetch(["a"])[0].payloads]


EVERY_ACTION: dict[str, tuple[str, Act]] = {
    "requeue": ("requeue", lambda actions: actions.morgue.requeue(["a"])),
    "requeue all": ("requeue", lambda actions: actions.morgue.requeue(everything=True)),
    "delete": ("delete_morgue", lambda actions: actions.morgue.delete(["a"])),
    "delete all": ("delete_morgue", lambda actions: actions.morgue.delete(everything=True)),
}


@pytest.mark.parametrize("name", EVERY_ACTION)
def test_what_dies_after_the_look_stays(desk: Desk, name: str) -> None:
    """LB-11: an operator who saw one death does not act on the next: whose payloads are whose is not known."""
    script, act = EVERY_ACTION[name]
    desk.kill([{"id": "a", "payload": "old", "score": 1}])

    def kill_another() -> None:
        desk.clock.advance(1)
        desk.kill([{"id": job_id, "payload": "new", "score": 2} for job_id in "ab"])

    desk.before(script, kill_another)

    assert 0 == act(desk.queue)
    a, b = desk.queue.morgue.fetch(["a", "b"])
    assert ([("old", 1.0), ("new", 2.0)], [("new", 2.0)]) == (pairs(a), pairs(b))


@pytest.mark.parametrize("name", EVERY_ACTION)
def test_payloads_pushed_after_the_look_stay_in_the_morgue(desk: Desk, name: str) -> None:
    """Where the clock cannot tell two deaths apart, the arrival number can."""
    script, act = EVERY_ACTION[name]
    desk.kill([{"id": "a", "payload": "old", "score": 2}])
    desk.before(script, lambda: desk.kill([{"id": "a", "payload": "new", "score": 1}]))

    assert 1 == act(desk.queue)
    (job,) = desk.queue.morgue.fetch(["a"])
    assert ([("new", 1.0)], "a is broken") == (pairs(job), job.error)
    back = [("old", 2.0)] if script == "requeue" else []
    assert back == [pair for job in desk.queue.waiting.fetch(["a"]) for pair in pairs(job)]


def test_a_death_by_a_clock_that_is_ahead_was_seen(desk: Desk) -> None:
    """Two processes' measures of the server's time differ a little: what an operator sees they can act on."""
    desk.clock.advance(0.3)
    desk.kill([{"id": "a"}])
    desk.clock.advance(-0.3)

    assert 1 == desk.queue.morgue.requeue(["a"])


def test_what_came_back_is_a_push_to_other_operators(desk: Desk) -> None:
    """Who looked before an id came back does not delete it."""
    desk.kill([{"id": "a", "payload": n, "score": n} for n in range(2)] + [{"id": "b"}])
    desk.before("delete", lambda: desk.queue.morgue.requeue(["a", "b"]))

    assert 0 == desk.queue.waiting.delete(["a", "b"])
    assert 2 == desk.queue.waiting.delete(["a", "b"])


@pytest.mark.parametrize("name", EVERY_ACTION)
def test_the_second_of_two_operators_changes_nothing(desk: Desk, name: str) -> None:
    """E-81: two click at the same moment, and one is told 0."""
    script, act = EVERY_ACTION[name]
    desk.kill([{"id": "a", "payload": n, "score": n} for n in range(2)])
    first: list[int] = []
    desk.before(script, lambda: first.append(act(desk.queue)))

    assert (0, [1]) == (act(desk.queue), first)


def test_delete_leaves_nothing_behind(desk: Desk) -> None:
    """One id, then all: payloads, dates, errors and bytes are gone, and what waits under the same id is not."""
    desk.kill([{"id": job_id, "payload": n, "score": n} for job_id in "abc" for n in range(2)])
    desk.push([{"id": "b", "payload": "waits"}])

    assert 1 == desk.queue.morgue.delete(["a"])
    assert {"b", "c"} == set(desk.state()["morgue"])
    assert 2 == desk.queue.morgue.delete(everything=True)
    found = desk.state()
    assert ({}, 0, ["b"]) == (found["morgue"], found["morgue_bytes"], list(found["waiting"]))


@pytest.mark.nightly("parts of any size are part of each check")
def test_very_much_comes_back_in_parts(make_desk: MakeDesk) -> None:
    """E-78: one id with 30,000 payloads and 3,000 ids with one, over many calls, each id counted once."""
    desk = make_desk(morgue=MorgueLimits(entries=100_000))
    jobs = [{"id": "big", "payload": n, "score": n} for n in range(30_000)] + [{"id": n} for n in range(3_000)]
    desk.kill(jobs)

    assert 3_001 == desk.queue.morgue.requeue(everything=True)
    found = desk.state()
    assert ({}, 3_001, 30_000) == (found["morgue"], len(found["waiting"]), len(found["waiting"]["big"][0]))
    desk.fail(jobs[:1])
    desk.queue.waiting.kill(everything=True)
    assert 1 == desk.queue.morgue.delete(everything=True)
    assert {} == desk.state()["morgue"]


def test_who_comes_back_is_heard_of(desk: Desk) -> None:
    """A daemon that waits is told, as by a push."""
    desk.kill([{"id": "a"}])
    with desk.admin.pubsub(ignore_subscribe_messages=True) as subscription:
        subscription.subscribe(f"lowkiq:{desk.worker.queue_name}:notify")
        subscription.get_message(timeout=5)
        desk.queue.morgue.requeue(["a"])
        heard = subscription.get_message(timeout=5)

    assert heard is not None
    assert b"0" == heard["data"]
