"""P7: a retry_count is that of the payload which was the oldest when it failed, whatever comes before it later."""

import threading
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from random import Random
from typing import Any

import pytest

from lowkiq_lambda import Batch, Lowkiq, Worker
from lowkiq_lambda.engine.budget import Budget
from lowkiq_lambda.testing import ManualClock
from tests.kit.apps import MakeApp
from tests.kit.deaths import Mortal, outlive
from tests.kit.examples import mostly_nightly
from tests.kit.handlers import Broken, Notes, raising
from tests.kit.looks import left_behind, look
from tests.kit.workers import declare, jobs_of


def test_p7_equal_chances(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """P7: each payload is the oldest of its id in exactly max_retry_count + 1 failures, alone or in an outage."""
    oldest: Counter[tuple[str, int]] = Counter()

    def note_and_raise(batch: Batch) -> None:
        if len(batch) == 1:
            oldest.update((job_id, payloads[0]) for job_id, payloads in batch.items())
        raise Broken

    worker = declare(app, queue_name, note_and_raise, batch_size=2, max_retry_count=2)
    worker.push_many({"id": job_id, "payload": n, "score": n} for job_id in "ab" for n in range(3))
    for _ in range(20):
        app.drain()
        clock.advance(100)

    assert dict.fromkeys([(job_id, n) for job_id in "ab" for n in range(3)], 3) == oldest
    assert 2 == app.operate.stats()["by_worker"][queue_name]["morgue_length"]


def test_p7_interruptions_and_deaths_take_no_chance(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """P7: only attributed failures count: neither a stop, nor a death, nor a failure in company does."""
    mortal, notes = Mortal(app), Notes()
    worker = declare(app, queue_name, notes, batch_size=2, max_retry_count=0)
    worker.push_many(jobs_of("ab"))
    stop = threading.Event()
    stop.set()
    app.core.drains.drainer.visit(app.core.queues.agreed(worker).shards[0], Budget(clock, stopping=stop.is_set))
    notes.then = mortal.die
    mortal.drain()
    outlive(app, clock, worker)
    notes.then = raising(SystemExit())
    with pytest.raises(SystemExit):
        app.drain()
    notes.then = None
    app.drain()

    assert ([], {}) == (notes.dead, left_behind(app, worker))
    assert {-1.0} == {job.retry_count for jobs in notes.jobs for job in jobs}


Push = Callable[..., None]


class Oldest:
    """A handler that raises, and counts for each payload how often it was the oldest of its id then."""

    def __init__(self) -> None:
        self.counts: Counter[Any] = Counter()
        self.first: Callable[[Batch], object] = lambda _batch: None

    def __call__(self, batch: Batch) -> None:
        """Do what the test says, then fail."""
        first, self.first = self.first, lambda _batch: None
        first(batch)
        self.counts.update(payloads[0] for payloads in batch.values())
        raise Broken


def fail_to_the_end(app: Lowkiq, clock: ManualClock, rounds: int = 30) -> None:
    """Drain until everything must have died."""
    for _ in range(rounds):
        app.drain()
        clock.advance(100)


def pushing(worker: type[Worker]) -> Push:
    """Pushes payloads, each with itself as its score unless another is given."""

    def push(*payloads: int, score: float | None = None) -> None:
        worker.push_many(
            {"id": "a", "payload": payload, "score": payload if score is None else score} for payload in payloads
        )

    return push


@pytest.mark.parametrize("failures", [1, 2])
def test_p7_a_late_payload_does_not_inherit_the_retry_count(
    app: Lowkiq, clock: ManualClock, queue_name: str, failures: int
) -> None:
    """P7: one of a lower score that comes while its id waits for a retry has all of its chances, the other its rest."""
    handler = Oldest()
    push = pushing(declare(app, queue_name, handler, max_retry_count=2))
    push(17)
    for _ in range(failures):
        app.drain()
        clock.advance(100)
    push(16)
    fail_to_the_end(app, clock)

    assert {16: 3, 17: 3} == handler.counts


def test_p7_a_payload_that_comes_while_an_older_one_runs_has_all_of_its_chances(
    app: Lowkiq, clock: ManualClock, queue_name: str
) -> None:
    """P7: pushed with a lower score while its id is in flight, it is the oldest from the retry on, its count anew."""
    handler = Oldest()
    push = pushing(declare(app, queue_name, handler, max_retry_count=2))
    push(17)
    handler.first = lambda _batch: push(16)
    fail_to_the_end(app, clock)

    assert {16: 3, 17: 3} == handler.counts


@pytest.mark.parametrize(("merge", "score"), [("min", 1), ("min", 30), ("max", 1), ("max", 30), ("never", 1)])
def test_p7_a_payload_that_is_moved_keeps_its_count(
    app: Lowkiq, clock: ManualClock, queue_name: str, merge: str, score: int
) -> None:
    """P7: an equal payload, pushed to another place, changes how old it is, and not how often it has failed."""
    handler = Oldest()
    push = pushing(declare(app, queue_name, handler, max_retry_count=3, merge=merge))
    push(10, 20)
    for _ in range(2):
        app.drain()
        clock.advance(100)
    push(10, score=score)
    app.drain()
    clock.advance(100)
    push(20, score=score - 0.5)
    fail_to_the_end(app, clock)

    copies = 2 if merge == "never" else 1
    assert {10: 4 * copies, 20: 4 * copies} == handler.counts


def test_l27_p7_the_id_shows_the_largest_retry_count_of_its_payloads(
    app: Lowkiq, clock: ManualClock, queue_name: str
) -> None:
    """L-27: a push changes neither time nor retry_count of the id; P7: its handler is told that of the oldest."""
    notes = Notes(raising())
    worker = declare(app, queue_name, notes)
    push = pushing(worker)
    push(17)
    app.drain()
    clock.advance(10)
    app.drain()
    at = clock.time() + 20
    push(16)
    waiting = look(app, worker, "a")
    assert waiting is not None
    assert (at, 1.0) == (waiting.due_at, waiting.retry_count)
    clock.advance(20)
    app.drain()
    assert -1.0 == notes.last.retry_count
    assert [(16, 16.0), (17, 17.0)] == [tuple(one) for one in notes.last.scored_payloads]
    waiting = look(app, worker, "a")
    assert waiting is not None
    assert (clock.time() + 10, 1.0) == (waiting.due_at, waiting.retry_count)


def test_p7_what_an_operator_requeues_has_all_of_its_chances_again(
    app: Lowkiq, clock: ManualClock, queue_name: str
) -> None:
    """D-3, P7: a payload that comes back from the morgue begins anew, and so does what it meets."""
    handler = Oldest()
    worker = declare(app, queue_name, handler, max_retry_count=2)
    push = pushing(worker)
    push(17)
    fail_to_the_end(app, clock)
    push(18)
    app.drain()
    clock.advance(100)
    push(16)
    handler.counts.clear()
    assert 1 == app.operate(worker).morgue.requeue(["a"])
    fail_to_the_end(app, clock)

    assert {16: 3, 17: 3, 18: 3} == handler.counts


@pytest.mark.parametrize("seed", mostly_nightly(range(4), 0, 1))
def test_p7_holds_whatever_comes_between(make_app: MakeApp, clock: ManualClock, queue_name: str, seed: int) -> None:
    """P7: late payloads, chunks, stops, deaths and what ends its thread change no payload's number of chances."""
    app, rng, handler = make_app(claim_payloads=2 if seed % 2 else 1_000), Random(seed), Oldest()
    mortal = Mortal(app)
    worker = declare(app, queue_name, handler, max_retry_count=2)
    push, scores, kinds = pushing(worker), list(range(24)), [""]
    rng.shuffle(scores)

    def disturb(_batch: Batch) -> None:
        if scores and rng.random() < 0.5:
            push(scores.pop())
        # Three deaths in a row would kill it.
        kinds.append("exit" if kinds[-1] == "die" else rng.choice(["die", "exit", "fail", "fail", "fail"]))
        if kinds[-1] == "die":
            mortal.die()
            raise Broken
        if kinds[-1] == "exit":
            # Ends that are the id's own doing would count, five in a row.
            raise KeyboardInterrupt

    push(scores.pop())
    for _ in range(200):
        handler.first = disturb
        with suppress(KeyboardInterrupt):
            if mortal.drain() is None:
                outlive(app, clock, worker)
        if scores and rng.random() < 0.3:
            push(scores.pop())
        clock.advance(7)
    fail_to_the_end(app, clock)

    assert dict.fromkeys(range(24), 3) == handler.counts
    assert {} == left_behind(app, worker)
