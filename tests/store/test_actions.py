"""What operators do, to what waits and to what has failed."""

from collections.abc import Callable

import pytest

from lowkiq_lambda import BackendError, JobError, MorgueLimits
from lowkiq_lambda.operate.queue_operations import QueueOperations
from tests.kit.desk import Desk, MakeDesk
from tests.kit.handlers import LATER
from tests.kit.looks import ids_of, pairs

Act = Callable[[QueueOperations], int]


def test_delete_leaves_nothing_behind(desk: Desk) -> None:
    """Of an id with one payload, of one with several, of one that failed; only what was there counts."""
    desk.fail([{"id": "failed"}])
    desk.push([{"id": "single", "delay": 9}, {"id": "twice", "payload": "x"}, {"id": "twice", "payload": "x"}])
    desk.push([{"id": "many", "payload": n} for n in range(5)] + [{"id": "stays"}])

    assert 4 == desk.queue.waiting.delete(["failed", "single", "twice", "many", "unknown", "many"])
    assert ["stays"] == list(desk.state()["waiting"])
    assert 1 == desk.queue.waiting.delete(["stays"])
    assert desk.is_empty()


def test_delete_refuses_what_is_no_list_of_ids(desk: Desk) -> None:
    """Nothing is deleted because of a slip."""
    with pytest.raises(TypeError, match="as a list"):
        desk.queue.waiting.delete("abc")
    with pytest.raises(JobError, match="must be a str"):
        desk.queue.morgue.delete([None])
    assert 0 == desk.queue.waiting.delete([])


def test_delete_leaves_what_is_in_flight(desk: Desk) -> None:
    """E-80: only the waiting part goes; what runs is done, or comes back, with its own payloads."""
    desk.push([{"id": "a", "payload": "runs", "score": 1}])
    deleted = []

    def meanwhile() -> None:
        desk.push([{"id": "a", "payload": "waits", "score": 2}])
        deleted.append(desk.queue.waiting.delete(["a"]))

    desk.handler.meanwhile, desk.handler.failing = meanwhile, {"a"}
    desk.drain()
    (job,) = desk.queue.waiting.fetch(["a"])

    assert ([1], [("runs", 1.0)], 0.0, "a is broken") == (deleted, pairs(job), job.retry_count, job.error)
    assert ["a"] == list(desk.state()["waiting"])


def test_what_is_suspected_in_flight_stays_suspected(desk: Desk) -> None:
    """Deleting the waiting part of an id that runs alone takes nothing from what is known of the running one."""

    def raise_in_company() -> None:
        raise ValueError("somebody is broken")

    seen = []

    def delete_meanwhile() -> None:
        desk.push([{"id": "a"}])
        desk.queue.waiting.delete(["a"])
        seen.append(desk.state())

    def then() -> None:
        desk.handler.meanwhile = delete_meanwhile
        raise_in_company()

    desk.push([{"id": "a", "payload": 1}, {"id": "b"}])
    desk.handler.meanwhile = then
    desk.drain()

    assert [{"a", "b"}] == [set(one["suspects"]) for one in seen]
    assert [["a", "b"], ["a"], ["b"]] == [list(batch) for batch in desk.handler.batches]
    assert desk.is_empty()


def test_a_suspect_can_be_deleted(desk: Desk) -> None:
    """Whoever is to run alone next may be gone by then; the others run, and no group of suspects is left over."""

    def raise_in_company() -> None:
        desk.handler.meanwhile = lambda: desk.queue.waiting.delete(["b", "c"])
        raise ValueError("somebody is broken")

    desk.push([{"id": job_id} for job_id in "abcd"])
    desk.handler.meanwhile = raise_in_company
    desk.drain()

    assert [["a", "b", "c", "d"], ["a"], ["d"]] == [list(batch) for batch in desk.handler.batches]
    assert desk.is_empty()


EVERY_DELETION: dict[str, tuple[str, Act]] = {
    "delete": ("delete", lambda actions: actions.waiting.delete(["a"])),
    "delete all failed": ("delete", lambda actions: actions.waiting.delete(filter={"least_count": "0"})),
    "kill all failed": ("kill", lambda actions: actions.waiting.kill(everything=True)),
}


@pytest.mark.parametrize("name", EVERY_DELETION)
@pytest.mark.parametrize("payloads", [1, 3])
def test_what_is_pushed_after_the_look_survives(desk: Desk, payloads: int, name: str) -> None:
    """LB-11, E-80, check 10: it stays where it belongs by its score, and starts anew without the old one's error."""
    script, act = EVERY_DELETION[name]
    desk.fail([{"id": "a", "payload": n, "score": n} for n in range(payloads)])
    desk.before(
        script,
        lambda: desk.push([{"id": "a", "payload": "new", "score": 1.5}, {"id": "b", "delay": 7}]),
    )
    queries = desk.queue

    assert 1 == act(desk.queue)
    (job,) = queries.waiting.fetch(["a"])
    assert [("new", 1.5)] == pairs(job)
    assert (desk.clock.time(), -1.0, None) == (job.due_at, job.retry_count, job.error)
    assert ["b"] == ids_of(queries.waiting.fetch(["b"]))
    dead = [(n, n) for n in range(payloads)] if script == "kill" else []
    assert dead == [pair for job in queries.morgue.fetch(["a"]) for pair in pairs(job)]
    desk.drain()
    assert {"a": ["new"]} == desk.handler.batches[-1]


@pytest.mark.parametrize("name", EVERY_DELETION)
@pytest.mark.parametrize("payloads", [1, 3])
def test_an_equal_payload_pushed_after_the_look_survives(desk: Desk, payloads: int, name: str) -> None:
    """It merged into the old one, so the two cannot be told apart: the id is left as it is."""
    script, act = EVERY_DELETION[name]
    desk.fail([{"id": "a", "payload": n, "score": n} for n in range(payloads)])
    desk.before(script, lambda: desk.push([{"id": "a", "payload": 0, "score": 9}]))

    assert 0 == act(desk.queue)
    (job,) = desk.queue.waiting.fetch(["a"])
    assert [(n, n) for n in range(payloads)] == pairs(job)
    assert (desk.clock.time() + LATER, 0.0, "a is broken") == (job.due_at, job.retry_count, job.error)


def test_an_id_that_is_new_since_the_look_is_left(desk: Desk) -> None:
    """LB-11: who asks to delete an id that is not there deletes nothing that comes a moment later."""
    desk.push([{"id": "old"}])
    desk.before(
        "delete", lambda: desk.push([{"id": "new"}, {"id": "newer", "payload": 1}, {"id": "newer", "payload": 2}])
    )

    assert 1 == desk.queue.waiting.delete(["old", "new", "newer"])
    assert ["new", "newer"] == list(desk.state()["waiting"])


def test_a_job_that_did_not_fail_keeps_its_time(desk: Desk) -> None:
    """What was pushed to a waiting id was told the id's time (L-27), and keeps it when the rest is deleted."""
    desk.push([{"id": "a", "payload": "old", "delay": 70}])
    desk.before("delete", lambda: desk.push([{"id": "a", "payload": "new"}]))

    assert 1 == desk.queue.waiting.delete(["a"])
    (job,) = desk.queue.waiting.fetch(["a"])
    assert (["new"], desk.clock.time() + 70) == ([payload for payload, _ in job.payloads], job.due_at)


@pytest.mark.parametrize("merge", ["min", "max", "never"])
def test_deletion_forgets_what_was_merged(make_desk: MakeDesk, merge: str) -> None:
    """What is pushed after a deletion meets nothing of what was deleted, however the queue merges."""
    desk = make_desk({"merge": merge})
    jobs = [{"id": "a", "payload": str(n) * (50 * n), "score": n} for n in range(4)]
    desk.push(jobs)
    desk.before("delete", lambda: desk.push([{"id": "a", "payload": "new", "score": 2.5}]))
    desk.queue.waiting.delete(["a"])
    assert ["new"] == [payload for payload, _ in desk.queue.waiting.fetch(["a"])[0].payloads]

    desk.push(jobs)
    assert [0, 1, 2, 2.5, 3] == [score for _, score in pairs(desk.queue.waiting.fetch(["a"])[0])]
    assert 1 == desk.queue.waiting.delete(["a"])
    assert desk.is_empty()


def test_kill_sends_what_failed_to_the_morgue(desk: Desk) -> None:
    """LN-26, LN-11: all payloads in their order, with the last error; who has not failed stays."""
    desk.fail([{"id": "a", "payload": n, "score": n} for n in (2, 1)] + [{"id": "b"}])
    desk.push([{"id": "fresh"}])
    desk.clock.advance(5)

    assert 2 == desk.queue.waiting.kill(everything=True)
    (job,) = desk.queue.morgue.fetch(["a"])
    assert ([(1, 1.0), (2, 2.0)], desk.clock.time(), "a is broken") == (pairs(job), job.updated_at, job.error)
    found = desk.state()
    assert (["fresh"], {"a", "b"}) == (list(found["waiting"]), set(found["morgue"]))
    assert 0 == desk.queue.waiting.kill(everything=True)


def test_kill_keeps_the_morgue_within_its_limits(make_desk: MakeDesk) -> None:
    """E-77: the oldest goes, and is counted, however much is killed at once."""
    desk = make_desk(morgue=MorgueLimits(entries=100))
    desk.fail([{"id": n} for n in range(2_000)])
    desk.fail([{"id": "big", "payload": n, "score": n} for n in range(20_000)])

    assert 2_001 == desk.queue.waiting.kill(everything=True)
    found = desk.state()
    assert desk.is_empty()
    assert 100 == sum(len(entries) for _, _, entries in found["morgue"].values())
    assert 22_000 - 100 == found["counters"]["trimmed"]


@pytest.mark.nightly("parts of any size are part of each check")
def test_an_id_with_very_many_payloads_is_deleted_in_parts(desk: Desk) -> None:
    """100,000 payloads go in bounded calls, one id counts once, and each stop between them is a sound state."""
    desk.fail([{"id": "big", "payload": n, "score": n} for n in range(100_000)])
    lengths = []

    def look() -> None:
        lengths.append(len(desk.state()["waiting"]["big"][0]))

    desk.before("delete", look, calls=50)
    desk.before("delete", lambda: desk.push([{"id": "big", "payload": "new", "score": -1}]), calls=30)

    assert 1 == desk.queue.waiting.delete(["big", "other"])
    assert [True] == [50_000 < length < 52_000 for length in lengths]
    (job,) = desk.queue.waiting.fetch(["big"])
    assert ([("new", -1.0)], -1.0) == (pairs(job), job.retry_count)
    assert 1 == desk.queue.waiting.delete(["big"])
    assert desk.is_empty()


@pytest.mark.parametrize("payloads", [998, 999, 1000, 1998, 2500])
def test_parts_of_any_size_end_alike(desk: Desk, payloads: int) -> None:
    """Wherever the last call begins, no id is left without payloads, and what is newer starts anew."""
    desk.fail([{"id": job_id, "payload": n, "score": n} for job_id in ("a", "b") for n in range(payloads)])
    desk.before("delete", lambda: desk.push([{"id": "b", "payload": "new", "score": 9_999}]))
    for call in range(1, 9):
        desk.before("delete", desk.state, calls=call)

    assert 2 == desk.queue.waiting.delete(filter={"least_count": "0"})
    (job,) = desk.queue.waiting.fetch(["a", "b"])
    assert ("b", [("new", 9_999.0)], -1.0, None) == (job.id, pairs(job), job.retry_count, job.error)
    assert ["b"] == list(desk.state()["waiting"])


def test_large_payloads_end_a_call_early(desk: Desk) -> None:
    """A call is bounded by bytes too: many ids, or many payloads of one, of half a megabyte each."""
    large = "x" * 500_000
    desk.push([{"id": n, "payload": large} for n in range(20)])
    desk.push([{"id": "many", "payload": large + str(n)} for n in range(20)])
    calls: list[int] = []
    for number in range(1, 10):
        desk.before("delete", lambda number=number: calls.append(number), calls=number)  # type: ignore[misc]  # mypy sees no type of the default

    assert 21 == desk.queue.waiting.delete([*range(20), "many"])
    assert 4 <= len(calls) <= 7
    assert desk.is_empty()


def test_run_now_keeps_the_order(desk: Desk) -> None:
    """LB-16, E-82: behind what was due already, in the order of their times; nothing waits since 1970."""
    desk.fail([{"id": "retry"}])
    desk.push([{"id": f"later {n}", "delay": 1000 - n} for n in range(3)])
    desk.clock.advance(3)
    desk.push([{"id": "due"}])

    assert 4 == desk.queue.waiting.run_now(everything=True)
    assert 0 == desk.queue.waiting.run_now(everything=True)
    assert desk.app.operate.stats()["total"]["lag"] < 0.001
    jobs = desk.queue.waiting.list()
    assert all(desk.clock.time() - 0.001 < job.due_at <= desk.clock.time() for job in jobs)
    assert ["due", "retry", "later 2", "later 1", "later 0"] == ids_of(jobs)
    assert [0.0] == [job.retry_count for job in jobs if job.id == "retry"]
    desk.drain()
    assert [["due", "later 2", "later 1", "later 0"], ["retry"]] == [list(batch) for batch in desk.handler.batches[1:]]


def test_run_now_keeps_the_order_of_very_many(desk: Desk) -> None:
    """Over many calls, with a clock that stands still as with one that goes on, and with equal times too."""
    desk.push([{"id": f"{n:05}", "delay": 5000 - n // 2} for n in range(5_000)])
    desk.push([{"id": f"due {n:03}"} for n in range(300)])
    expected = ids_of(desk.queue.waiting.list(limit=10_000))
    desk.before("run_now", lambda: desk.clock.advance(0.5), calls=4)

    assert 5_000 == desk.queue.waiting.run_now(everything=True)
    assert expected == ids_of(desk.queue.waiting.list(max=desk.clock.time(), limit=10_000))
    assert 0.5 <= desk.app.operate.stats()["total"]["lag"] < 0.51


def test_run_now_leaves_what_was_pushed_after_the_look(desk: Desk) -> None:
    """A delay that somebody asked for while the operator clicked holds."""
    desk.push([{"id": "old", "delay": 10}, {"id": "old too", "payload": 1, "delay": 30}])
    desk.before(
        "run_now",
        lambda: desk.push(
            [
                {"id": "new", "delay": 20},
                {"id": "new too", "payload": 1, "delay": 40},
                {"id": "new too", "payload": 2},
                {"id": "old too", "payload": 2},
            ]
        ),
    )

    assert 2 == desk.queue.waiting.run_now(everything=True)
    waiting = desk.queue.waiting.list("due_at", "-inf", desk.clock.time())
    assert ["old", "old too"] == ids_of(waiting)
    assert ["new", "new too"] == ids_of(desk.queue.waiting.list("due_at", desk.clock.time() + 1))


def test_run_now_takes_an_id_of_which_one_payload_came_once_more(desk: Desk) -> None:
    """Of two, in the record of the id, one was there when the operator looked, and has not changed."""
    desk.push([{"id": "two", "payload": number, "delay": 10} for number in (1, 2)])
    desk.push([{"id": "one", "payload": 1, "delay": 20}])
    desk.before("run_now", lambda: desk.push([{"id": job_id, "payload": 1} for job_id in ("two", "one")]))

    assert 1 == desk.queue.waiting.run_now(everything=True)
    assert ["two"] == ids_of(desk.queue.waiting.list("due_at", "-inf", desk.clock.time()))


@pytest.mark.parametrize("name", ["delete", "kill", "run now"])
def test_who_is_due_sooner_is_heard_of(make_desk: MakeDesk, name: str) -> None:
    """A daemon that waits for a later time is told, as by a push."""
    desk = make_desk({"shards_count": 3})
    desk.fail([{"id": "a", "payload": "old"}])
    push: Callable[[], object] = lambda: desk.push([{"id": "a", "payload": "new"}])  # noqa: E731 - a short one
    with desk.admin.pubsub(ignore_subscribe_messages=True) as subscription:
        subscription.subscribe(f"lowkiq:{desk.worker.queue_name}:notify")
        subscription.get_message(timeout=5)
        match name:
            case "run now":
                desk.queue.waiting.run_now(everything=True)
            case "delete":
                desk.before("delete", push)
                desk.queue.waiting.delete(["a"])
            case _:
                desk.before("kill", push)
                desk.queue.waiting.kill(everything=True)
        heard = subscription.get_message(timeout=5)

    (shard,) = {one.shard for one in desk.push([{"id": "a"}])}
    assert heard is not None
    assert str(shard).encode() == heard["data"]


def test_nothing_is_rung_for_what_became_due_no_sooner(desk: Desk) -> None:
    """Deleting wakes nobody."""
    desk.push([{"id": "a", "delay": 5}, {"id": "b", "delay": 6}])
    with desk.admin.pubsub(ignore_subscribe_messages=True) as subscription:
        subscription.subscribe(f"lowkiq:{desk.worker.queue_name}:notify")
        subscription.get_message(timeout=5)
        desk.queue.waiting.delete(["a"])
        desk.admin.publish(f"lowkiq:{desk.worker.queue_name}:notify", "the end")
        heard = subscription.get_message(timeout=5)

    assert heard is not None
    assert b"the end" == heard["data"]


def test_an_action_that_broke_off_says_how_far_it_came(desk: Desk) -> None:
    """E-83: the error has a note, and calling again goes on from there."""

    def fail_once() -> None:
        raise BackendError("the network is down")

    desk.push([{"id": n, "delay": 9} for n in range(1_700)])
    desk.before("delete", fail_once, calls=3)
    with pytest.raises(BackendError, match="the network is down") as caught:
        desk.queue.waiting.delete(range(1_700))

    assert ["1,000 ids were changed before; call the action again to go on."] == caught.value.__notes__
    assert 700 == desk.queue.waiting.delete(range(1_700))
