"""Dead heads: what becomes of an id whose oldest payload has failed for the last time (E-79, L-23, L-27, P2, P3)."""

from collections.abc import Callable
from typing import Any

import pytest

from lowkiq_lambda import Batch, DeclarationError, Lowkiq, Worker
from lowkiq_lambda.store.shard.nodes import FAR
from lowkiq_lambda.testing import ManualClock
from tests.kit.apps import MakeApp
from tests.kit.deaths import Mortal, outlive
from tests.kit.handlers import Notes
from tests.kit.looks import counters, ids_of, left_behind, look, pairs
from tests.kit.workers import declare, jobs_of, shard_of


def breaking(*payloads: object) -> Callable[[Batch], None]:
    """Fails an id, by name, while the first of its payloads is one of these."""

    def then(batch: Batch) -> None:
        for job_id, given in batch.items():
            if given[0] in payloads:
                batch.fail(job_id, f"{given[0]} is broken")

    return then


def second_settlement() -> Callable[[str], bool]:
    """Whether a call is the second settlement of a process, which is the first chunk behind a dead head."""
    settlements: list[bool] = []

    def is_second(call: str) -> bool:
        settlements.append(call == "settle")
        return sum(settlements) == 2

    return is_second


def with_dead_head(
    app: Lowkiq, queue_name: str, dead_head: str, *, payloads: int = 3, **fields: Any
) -> tuple[type[Worker], Notes]:
    """A worker whose id "a" has payloads 0, 1, 2 ..., of which the first has just failed for the last time."""
    notes = Notes(breaking(0))
    worker = declare(app, queue_name, notes, **{"max_retry_count": 0, "dead_head": dead_head, **fields})
    worker.push_many([{"id": "a", "payload": n, "score": n} for n in range(payloads)])
    app.drain()
    return worker, notes


def dead(app: Lowkiq, worker: type[Worker]) -> dict[str, list[object]]:
    """The payloads in the morgue, by id."""
    return {job.id: [payload for payload, _ in job.payloads] for job in app.operate(worker).morgue.list("id")}


def test_l23_skip_lets_the_others_go_on(app: Lowkiq, queue_name: str) -> None:
    """L-23: by default the oldest goes to the morgue, and the others start anew."""
    worker, notes = with_dead_head(app, queue_name, "skip")

    assert ({"a": [0]}, [[0, 1, 2], [1, 2]]) == (dead(app, worker), [batch["a"] for batch in notes.batches])


def test_e79_block_keeps_the_head_and_all_behind_it(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """E-79: the id waits at the end of time with all of its payloads, is counted and listed, and other ids run."""
    worker, notes = with_dead_head(app, queue_name, "block", batch_size=2)
    worker.push_many(jobs_of("b", payload="fine"))
    clock.advance(10 * 365 * 86_400)
    app.drain()

    assert ([(n, float(n)) for n in range(3)], FAR, 0.0, "0 is broken") == look(app, worker, "a")
    assert [{"a": [0, 1, 2]}, {"b": ["fine"]}] == notes.batches
    assert (["a"], {}) == (ids_of(app.operate(worker).waiting.blocked()), dead(app, worker))
    assert [("a", [(0, 0.0)])] == [(job.id, pairs(job)) for job in notes.dead]
    metrics = app.operate.metrics()[queue_name]
    assert (1, 1, 0, 0.0) == (metrics.blocked, metrics.failed, metrics.dead, metrics.lag)


def test_l27_later_pushes_wait_with_a_blocked_head(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """L-27: the time of the id stands, also for payloads that come before the head, and for equal ones."""
    worker, notes = with_dead_head(app, queue_name, "block", payloads=1)

    pushed = worker.push_many([{"id": "a", "payload": n, "score": n, "due_at": clock.time()} for n in (-1, 0, 5)])
    app.drain()

    assert [(True, FAR)] * 3 == [(one.merged, one.due_at) for one in pushed]
    assert ([(-1, -1.0), (0, 0.0), (5, 5.0)], FAR, 0.0, "0 is broken") == look(app, worker, "a")
    assert 1 == len(notes.batches)


@pytest.mark.parametrize("behind", [0, 2])
def test_an_unblocked_head_is_tried_again_with_all_its_retries(app: Lowkiq, queue_name: str, behind: int) -> None:
    """P7: "retry" makes the id due now, in its order, with retry_count -1; nothing is left of the hold."""
    worker, notes = with_dead_head(app, queue_name, "block", payloads=1 + behind)
    notes.then = None

    unblocked = app.operate(worker).unblock(["a", "other"], "retry")
    waiting = look(app, worker, "a")
    app.drain()

    assert (1, -1.0) == (unblocked, waiting and waiting.retry_count)
    assert [[*range(1 + behind)]] * 2 == [batch["a"] for batch in notes.batches]
    assert ({}, {}) == (left_behind(app, worker), dead(app, worker))


@pytest.mark.parametrize("before", [[], [-2, -1]])
@pytest.mark.parametrize("behind", [[], [1]])
def test_a_skipped_head_goes_to_the_morgue_alone(
    app: Lowkiq, queue_name: str, before: list[int], behind: list[int]
) -> None:
    """The payload that died is found among those that came since, and dead with its error; the others run."""
    worker, notes = with_dead_head(app, queue_name, "block", payloads=1)
    worker.push_many([{"id": "a", "payload": n, "score": n} for n in before + behind])

    unblocked = app.operate(worker).unblock(["a"], "skip")
    (in_morgue,) = app.operate(worker).morgue.fetch(["a"])
    app.drain()

    assert (1, [(0, 0.0)], "0 is broken") == (unblocked, pairs(in_morgue), in_morgue.error)
    assert [[0], *([before + behind] if before + behind else [])] == [batch["a"] for batch in notes.batches]
    assert {} == left_behind(app, worker)


def test_an_unblocked_head_that_fails_again_is_blocked_again(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """P7: the head has n + 1 executions each time, and those behind it have lost none of theirs."""
    worker, notes = with_dead_head(app, queue_name, "block", payloads=2, max_retry_count=1)
    clock.advance(10)
    app.drain()
    app.operate(worker).unblock(["a"], "retry")
    app.drain()
    clock.advance(10)
    app.drain()

    assert ([[0, 1]] * 4, ["a"]) == (
        [batch["a"] for batch in notes.batches],
        ids_of(app.operate(worker).waiting.blocked()),
    )
    assert 2 == counters(app, worker)["blocked"]


def test_only_delete_and_kill_free_a_blocked_id(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """Run now and requeue leave it where it is; a delete, or a kill, takes the head, so that later pushes run."""
    worker, notes = with_dead_head(app, queue_name, "block", payloads=1)
    queue = app.operate(worker)
    queue.waiting.kill(["a"])
    worker.push_many([{"id": "a", "payload": 0, "score": 0}])
    app.drain()

    assert (0, 0, 1) == (
        queue.waiting.run_now(["a"]),
        queue.waiting.run_now(everything=True),
        queue.morgue.requeue(["a"]),
    )
    clock.advance(1)
    assert "failed" not in app.drain()
    assert ["a"] == ids_of(app.operate(worker).waiting.blocked())

    queue.waiting.delete(["a"])
    worker.push_many([{"id": "a", "payload": 7}])
    app.drain()

    assert [[0], [0], [7]] == [batch["a"] for batch in notes.batches]
    assert {} == left_behind(app, worker)


def test_a_requeue_beside_a_blocked_head_keeps_the_order(app: Lowkiq, queue_name: str) -> None:
    """P3: what comes back from the morgue waits with the head, and runs where its score belongs."""
    worker, notes = with_dead_head(app, queue_name, "block", payloads=1)
    app.operate(worker).unblock(["a"], "skip")
    notes.then = lambda batch: batch.fail("a", "broken")
    worker.push_many([{"id": "a", "payload": n, "score": n} for n in (1, 2)])
    app.drain()

    app.operate(worker).morgue.requeue(["a"])
    blocked = look(app, worker, "a")
    notes.clear()
    notes.then = None
    app.operate(worker).unblock(["a"], "retry")
    app.drain()

    assert ([(n, float(n)) for n in range(3)], FAR) == (blocked and blocked.payloads, blocked and blocked.due_at)
    assert [{"a": [0, 1, 2]}] == notes.batches
    assert ({}, {}) == (left_behind(app, worker), dead(app, worker))


def test_drop_kills_all_that_waits(app: Lowkiq, queue_name: str) -> None:
    """All payloads of then go to the morgue with the error of the oldest; later pushes start fresh."""
    notes = Notes(breaking(0))

    def meanwhile(batch: Batch) -> None:
        if len(notes.batches) == 1:
            worker.push_many([{"id": "a", "payload": n, "score": n} for n in (-1, 9)])
        breaking(0)(batch)

    notes.then = meanwhile
    worker = declare(app, queue_name, notes, max_retry_count=0, dead_head="drop", payloads_at_once=2)
    worker.push_many([{"id": "a", "payload": n, "score": n} for n in range(4)])
    app.drain()
    in_morgue, left = dead(app, worker), left_behind(app, worker)
    worker.push_many([{"id": "a", "payload": "new"}])
    app.drain()

    assert ({"a": [-1, 0, 1, 2, 3, 9]}, {}) == (in_morgue, left)
    assert [[0, 1], ["new"]] == [batch["a"] for batch in notes.batches]
    assert ["0 is broken"] == [job.error for job in app.operate(worker).morgue.fetch(["a"])]
    assert [[(0, 0.0)]] == [pairs(job) for job in notes.dead]


@pytest.mark.parametrize("at_once", [0, 2])
def test_latest_goes_on_with_the_newest_alone(app: Lowkiq, queue_name: str, at_once: int) -> None:
    """The oldest goes to the morgue, all between it and the newest is superseded, whether it was delivered or waits."""
    worker, notes = with_dead_head(app, queue_name, "latest", payloads=5, payloads_at_once=at_once)

    assert ({"a": [0]}, [[*range(at_once or 5)], [4]]) == (dead(app, worker), [batch["a"] for batch in notes.batches])
    assert (3, {}) == (counters(app, worker)["superseded"], left_behind(app, worker))


@pytest.mark.parametrize("concurrency", [1, 3])
@pytest.mark.parametrize(("dead_head", "runs"), [("drop", []), ("latest", [[2_499]])])
def test_thousands_of_payloads_follow_their_head_in_chunks(
    app: Lowkiq, queue_name: str, dead_head: str, runs: list[list[int]], concurrency: int
) -> None:
    """No call touches more than a thousand payloads; the handler sees none of them, and one failure is counted."""
    worker, notes = with_dead_head(app, queue_name, dead_head, payloads=2_500, concurrency=concurrency)

    assert [[*range(1_000)], *runs] == [batch["a"] for batch in notes.batches]
    key = shard_of(app, worker, "a").key("morgue_payloads")
    assert (2_500 if dead_head == "drop" else 1) == app.core.backend.client.zlexcount(key, "-", b"(\xff")
    assert ({}, (1, 1)) == (left_behind(app, worker), (counters(app, worker)["dead"], len(notes.dead)))


@pytest.mark.parametrize("dead_head", ["drop", "latest"])
def test_what_is_pushed_between_chunks_runs(app: Lowkiq, clock: ManualClock, queue_name: str, dead_head: str) -> None:
    """Later pushes start fresh, though others of their id still follow a dead head; so it is after a death, too."""
    notes, mortal = Notes(breaking(0)), Mortal(app)
    worker = declare(app, queue_name, notes, max_retry_count=0, dead_head=dead_head)
    worker.push_many([{"id": "a", "payload": n, "score": n} for n in range(3_500)])
    mortal.dies_before = second_settlement()
    died = mortal.drain()
    worker.push_many([{"id": "a", "payload": "early", "score": -5}, {"id": "a", "payload": "late", "score": 9_999}])
    outlive(app, clock, worker)
    app.drain()

    kept = [3_499] if dead_head == "latest" else []
    assert (None, ["early", *kept, "late"]) == (died, notes.batches[-1]["a"])
    assert {} == left_behind(app, worker)


@pytest.mark.parametrize("dead_head", ["drop", "latest"])
def test_an_equal_payload_that_is_pushed_between_chunks_frees_all_that_is_left(
    app: Lowkiq, clock: ManualClock, queue_name: str, dead_head: str
) -> None:
    """It joins one of those that follow the dead head, nobody knows which: so what is left runs, and it with them."""
    notes, mortal = Notes(breaking(0)), Mortal(app)
    worker = declare(app, queue_name, notes, max_retry_count=0, dead_head=dead_head)
    worker.push_many([{"id": "a", "payload": n, "score": n} for n in range(3_500)])
    mortal.dies_before = second_settlement()
    mortal.drain()
    worker.push_many([{"id": "a", "payload": 3_000, "score": 3_000}])
    outlive(app, clock, worker)
    app.drain()

    assert 3_000 in [payload for batch in notes.batches[1:] for payload in batch["a"]]
    assert {} == left_behind(app, worker)


@pytest.mark.parametrize(("left", "dies"), [(1, False), (1, True), (3, False)])
def test_an_equal_payload_frees_the_last_that_are_left_to_follow(
    app: Lowkiq, clock: ManualClock, queue_name: str, left: int, *, dies: bool
) -> None:
    """It joins one of them while the next chunk begins, whose process may have died: they run."""
    count = 1_001 + left
    notes, mortal, last = Notes(breaking(0)), Mortal(app), {"id": "a", "payload": count - 1, "score": count - 1}
    worker = declare(app, queue_name, notes, max_retry_count=0, dead_head="drop")
    worker.push_many([{"id": "a", "payload": n, "score": n} for n in range(count)])
    settlings = []

    def push(call: str) -> bool:
        settlings.append(call == "settle")
        if call != "settle" or sum(settlings) != 2:
            return False
        worker.push_many([last])
        return dies

    mortal.dies_before = push
    mortal.drain()
    outlive(app, clock, worker)
    app.drain()

    assert [[*range(1_000)], [*range(1_001, count)]] == [batch["a"] for batch in notes.batches]
    assert {} == left_behind(app, worker)


def test_an_equal_payload_behind_a_move_frees_the_last_that_is_left_to_follow(
    make_app: MakeApp, clock: ManualClock, queue_name: str
) -> None:
    """So it does where the shard has moved since the last chunk, and so before that one is handed out."""
    old, new, last = make_app(), make_app(), {"id": "a", "payload": 1_001, "score": 1_001}
    notes, mortal = Notes(breaking(0)), Mortal(old)
    fields: dict[str, Any] = {"max_retry_count": 0, "dead_head": "drop"}
    worker = declare(old, queue_name, notes, **fields)
    worker.push_many([{"id": "a", "payload": n, "score": n} for n in range(1_002)])
    mortal.dies_before = second_settlement()
    mortal.drain()
    outlive(old, clock, worker)
    old.operate(worker).reshard(to=2)
    after = declare(new, queue_name, notes, shards_count=2, **fields)
    after.push_many([last])
    new.drain()

    assert [[*range(1_000)], [1_001]] == [batch["a"] for batch in notes.batches]
    assert {} == left_behind(new, after)


@pytest.mark.parametrize(
    ("dead_head", "left"),
    [
        ("block", (["poison", 1, 2], [], [])),
        ("drop", ([], [], ["poison", 1, 2])),
        ("latest", ([], [2], ["poison"])),
    ],
)
def test_the_third_counted_crash_kills_a_head_too(
    app: Lowkiq, clock: ManualClock, queue_name: str, dead_head: str, left: tuple[list[object], ...]
) -> None:
    """P6: a payload that has taken its process with it three times is dead as one whose retries are used up."""
    mortal = Mortal(app)
    notes = Notes(lambda batch: mortal.die() if "poison" in batch.get("a", []) else None)
    worker = declare(app, queue_name, notes, dead_head=dead_head, payloads_at_once=1)
    worker.push_many([{"id": "a", "payload": payload, "score": n} for n, payload in enumerate(["poison", 1, 2])])
    for _ in range(4):
        mortal.drain()
        outlive(app, clock, worker)
    notes.clear()
    counts = app.drain()

    blocked = [payload for job in app.operate(worker).waiting.blocked() for payload, _ in job.payloads]
    ran = [payload for batch in notes.batches for payload in batch["a"]]
    assert left == (blocked, ran, dead(app, worker).get("a", []))
    assert ("block" == dead_head, 1) == (bool(counters(app, worker).get("blocked")), counts["failed"])
    assert ["poison"] == [payload for job in notes.dead for payload, _ in job.payloads]


@pytest.mark.parametrize("merge", ["min", "max", "never"])
def test_a_head_is_found_whatever_it_merged_with(app: Lowkiq, queue_name: str, merge: str) -> None:
    """An equal payload may have taken the place of the head: "skip" kills one of that text, and leaves the others."""
    worker, notes = with_dead_head(app, queue_name, "block", payloads=2, merge=merge)
    worker.push_many([{"id": "a", "payload": 0, "score": score} for score in (-1, 8)])

    app.operate(worker).unblock(["a"], "skip")
    left = look(app, worker, "a")

    assert [1, *([0, 0] if merge == "never" else [])] == sorted(
        (payload for payload, _ in left.payloads) if left else [], key=lambda payload: payload != 1
    )
    assert {"a": [0]} == dead(app, worker)
    assert 1 == len(notes.batches)


@pytest.mark.parametrize("given", ["keep", None, 1])
def test_a_dead_head_is_one_of_four_words(app: Lowkiq, queue_name: str, given: object) -> None:
    """Anything else is refused at the declaration."""
    with pytest.raises(DeclarationError, match="dead_head must be one of skip, block, drop, latest"):
        declare(app, queue_name, Notes(), dead_head=given)


def test_an_unblock_is_one_of_two_words(app: Lowkiq, queue_name: str) -> None:
    """Anything else is a ValueError."""
    worker = declare(app, queue_name, Notes())

    with pytest.raises(ValueError, match='"retry" or "skip", not \'later\''):
        app.operate(worker).unblock(["a"], "later")  # type: ignore[arg-type]  # that is the point
