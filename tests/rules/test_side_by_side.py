"""Batches side by side under one lease: who runs beside whom, and what becomes of the others when one ends badly."""

import threading
from contextvars import ContextVar

import pytest

from lowkiq_lambda import Batch, BatchJob, Lowkiq, Worker
from lowkiq_lambda.engine.budget import Budget
from lowkiq_lambda.testing import ManualClock
from tests.kit.apps import MakeApp
from tests.kit.beside import (
    TIMEOUT,
    Crowd,
    Declare,
    Gathering,
    declare_coroutines,
    declare_threads,
    move_until,
    wait_for,
)
from tests.kit.deaths import Mortal, outlive, stop_renewing
from tests.kit.handlers import Broken, Notes
from tests.kit.iterating import Items, declare_items
from tests.kit.looks import look
from tests.kit.recording import EventRecorder
from tests.kit.waiting import eventually
from tests.kit.workers import jobs_of


@pytest.fixture(params=[declare_threads, declare_coroutines])
def declare(request: pytest.FixtureRequest) -> Declare:
    """Declares a worker whose calls run side by side."""
    declare_kind: Declare = request.param
    return declare_kind


def test_as_many_run_as_the_worker_says(app: Lowkiq, queue_name: str, declare: Declare) -> None:
    """`concurrency` calls run at once, and never one more."""
    crowd = Crowd(Gathering(4))
    declare(app, queue_name, crowd).push_many(jobs_of("abcdefgh"))

    assert {"done": 8} == app.drain()
    assert 4 == crowd.most
    assert sorted("abcdefgh") == sorted(crowd.ended)


def test_a_batch_is_one_call(app: Lowkiq, queue_name: str, declare: Declare) -> None:
    """Concurrency counts calls: each has up to `batch_size` ids."""
    crowd = Crowd(Gathering(2))
    declare(app, queue_name, crowd, concurrency=2, batch_size=3).push_many(jobs_of("abcdef"))

    assert {"done": 6} == app.drain()
    assert 6 == crowd.most


def test_p1_an_id_never_runs_beside_itself(app: Lowkiq, clock: ManualClock, queue_name: str, declare: Declare) -> None:
    """P1, P3: what is pushed to an id that runs waits for its end, though other slots are free; its order holds."""
    payloads: dict[str, list[int]] = {job_id: [] for job_id in "abc"}

    def push_again(batch: Batch) -> None:
        for job_id, given in batch.items():
            payloads[job_id] += given
            if given[-1] < 20:
                worker.push_many([{"id": job_id, "payload": given[-1] + 1, "score": given[-1] + 1}])
        # So that there is time to look for more.
        clock.advance(0.2)

    crowd = Crowd(push_again)
    worker = declare(app, queue_name, crowd)
    worker.push_many(jobs_of("abc", payload=1, score=1))

    assert {"done": 60} == app.drain()
    assert [] == crowd.overlaps
    assert {job_id: list(range(1, 21)) for job_id in "abc"} == payloads


def test_a_straggler_does_not_close_its_shard(
    app: Lowkiq, clock: ManualClock, queue_name: str, declare: Declare
) -> None:
    """What is pushed while a long job runs is performed beside it."""

    def straggle(batch: Batch) -> None:
        if "slow" in batch:
            worker.push_many(jobs_of("x"))
            move_until(clock, lambda: "x" in crowd.ended)

    crowd = Crowd(straggle)
    worker = declare(app, queue_name, crowd)
    worker.push_many([{"id": "slow"}])

    assert {"done": 2} == app.drain()
    assert ["x", "slow"] == crowd.ended


def test_each_failure_is_its_own(app: Lowkiq, queue_name: str, declare: Declare) -> None:
    """Of several side by side one raises, one fails by name, and the others are done."""

    def fail(batch: Batch) -> None:
        debounce(batch)
        if "a" in batch:
            raise Broken("a is broken")
        if "b" in batch:
            batch.fail("b", "b is bad")

    debounce = Gathering(4)
    worker = declare(app, queue_name, fail)
    worker.push_many(jobs_of("abcd"))

    assert {"done": 2, "retried": 2, "failed": 2} == app.drain()
    failed = {job_id: look(app, worker, job_id) for job_id in "abcd"}
    assert [(0.0, "a is broken"), (0.0, "b is bad"), None, None] == [
        found and (found[2], found[3]) for found in failed.values()
    ]


def test_suspects_run_alone(app: Lowkiq, queue_name: str, declare: Declare) -> None:
    """P6: of a batch that failed in company each id runs with nothing beside it, and only the bad one is blamed."""

    def fail(batch: Batch) -> None:
        if "bad" in batch:
            raise Broken("bad")

    crowd = Crowd(fail)
    worker = declare(app, queue_name, crowd, batch_size=3)
    worker.push_many(jobs_of(["bad", "b", "c", "d", "e", "f"]))

    counts = app.drain()
    assert {"done": 5, "retried": 1, "failed": 1, "suspected": 3} == counts
    assert [0, 0, 0] == [crowd.beside[job_id] for job_id in ("bad", "b", "c")]
    assert look(app, worker, "bad") is not None


def test_a_failure_that_hits_all_alike_is_charged_to_all(app: Lowkiq, queue_name: str, declare: Declare) -> None:
    """A group whose ids fail alike, one after the other, is not worked through to its end."""
    notes = Notes(raising_broken)
    declare(app, queue_name, notes, batch_size=10).push_many(jobs_of("abcdefghij"))

    counts = app.drain()
    assert 10 == counts["retried"]
    assert len(notes.ids) < 11


def shard_has_work(app: Lowkiq, worker: type[Worker]) -> bool:
    """Whether something waits in its only shard."""
    return bool(app.core.backend.client.exists(app.core.queues.agreed(worker).shards[0].key("due")))


def raising_broken(_batch: Batch) -> None:
    """A handler that fails, whatever it is given."""
    raise Broken("the database is away")


@pytest.mark.parametrize("kind", [SystemExit, GeneratorExit])
def test_e54_an_exit_ends_nothing_but_its_own_batch(
    app: Lowkiq, queue_name: str, declare: Declare, kind: type[BaseException]
) -> None:
    """E-54: the others that run end well, what waits is performed, and the exit is raised at the end."""

    def leave(batch: Batch) -> None:
        if "a" in batch:
            raise kind

    worker = declare(app, queue_name, leave)
    worker.push_many(jobs_of("abcdefgh"))
    with pytest.raises(kind):
        app.drain()

    assert [True, *[False] * 7] == [look(app, worker, job_id) is not None for job_id in "abcdefgh"]


def test_e54_an_interruption_from_the_keyboard_ends_the_visit(app: Lowkiq, queue_name: str) -> None:
    """E-54: threads beside it are told to stop and end well, what waits goes back, and nothing more begins."""
    told: list[bool] = []

    def interrupt(batch: Batch) -> None:
        debounce(batch)
        if "a" in batch:
            raise KeyboardInterrupt
        told.append(eventually(lambda: batch.stopping))

    debounce = Gathering(4)
    crowd = Crowd(interrupt)
    worker = declare_threads(app, queue_name, crowd)
    worker.push_many(jobs_of("abcdefgh"))
    with pytest.raises(KeyboardInterrupt):
        app.drain()

    assert [True] * 3 == told
    assert sorted("abcd") == sorted(crowd.begun)
    assert ["a", *"efgh"] == [job_id for job_id in "abcdefgh" if look(app, worker, job_id)]


def test_p1_a_visit_that_lost_its_lease_waits_for_all_that_run(
    make_app: MakeApp, clock: ManualClock, queue_name: str, declare: Declare, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P1: they see that they should stop, what comes of them is dropped, and the next holder performs the ids."""
    late, other = make_app(), make_app()
    stop_renewing(late, monkeypatch)
    notes = Notes()

    def oversleep(batch: Batch) -> None:
        debounce(batch)
        if "a" in batch:
            outlive(late, clock, worker)
            other.drain()
            taken.set()
        wait_for(taken)
        told.append(eventually(lambda: batch.stopping))

    taken, debounce = threading.Event(), Gathering(4)
    told: list[bool] = []
    crowd = Crowd(oversleep)
    worker = declare(late, queue_name, crowd)
    declare(other, queue_name, notes)
    worker.push_many(jobs_of("abcd"))
    result = late.core.drains.drainer.visit(late.core.queues.agreed(worker).shards[0], Budget(clock))

    assert ("lease lost", {}, [True] * 4) == (result.reason, result.counts, told)
    assert sorted("abcd") == sorted(crowd.ended)
    assert sorted("abcd") == sorted(job_id for ids in notes.ids for job_id in ids)


@pytest.mark.parametrize("how", ["paused", "stopping"])
def test_a_stop_lets_what_runs_end_and_returns_what_waits(
    app: Lowkiq, clock: ManualClock, queue_name: str, declare: Declare, how: str
) -> None:
    """Neither a pause nor the stop signal cuts what runs, and what has not begun is as it was."""
    stop = threading.Event()
    heard: list[bool] = []

    def end(batch: Batch) -> None:
        debounce(batch)
        if how == "paused":
            app.operate(worker).pause()
            clock.advance(app.config.lease_ttl / 10)
            # The four have moved the clock beyond a third of the lease, when it hears of a pause as it is renewed.
            debounce(batch)
            app.core.drains.drainer._renewers.of(shard).renew_due()
        stop.set()
        heard.append(batch.stopping)

    debounce = Gathering(4)
    crowd = Crowd(end)
    worker = declare(app, queue_name, crowd)
    worker.push_many(jobs_of("abcdefgh"))
    stopping = stop.is_set if how == "stopping" else bool
    shard = app.core.queues.agreed(worker).shards[0]
    result = app.core.drains.drainer.visit(shard, Budget(clock, stopping=stopping))

    assert (how, 4) == (result.reason, result.counts["done"])
    assert [True] * 4 == heard
    assert 4 == len(crowd.begun)
    assert 4 == sum(look(app, worker, job_id) is not None for job_id in "abcdefgh")


def test_p5_nothing_begins_that_is_not_predicted_to_fit(
    app: Lowkiq, clock: ManualClock, queue_name: str, declare: Declare
) -> None:
    """P5: the budget is asked at each begin, and with many at once it ends as it does with one."""

    def take_long(batch: Batch) -> None:
        debounce(batch)
        if "a" in batch:
            clock.advance(6.0)
            passed.set()
        wait_for(passed)

    passed = threading.Event()
    debounce = Gathering(4)
    crowd = Crowd(take_long)
    worker = declare(app, queue_name, crowd)
    worker.push_many(jobs_of("abcdefgh"))
    result = app.core.drains.drainer.visit(app.core.queues.agreed(worker).shards[0], Budget(clock, 10.0))

    assert ("out of time", 4) == (result.reason, result.counts["done"])
    assert 4 == len(crowd.begun)


def test_p6_what_kills_its_process_is_found_and_dies_alone(
    make_app: MakeApp, clock: ManualClock, queue_name: str, declare: Declare
) -> None:
    """P6: after a second death each that ran beside others runs alone, and the killer is the one that is dead."""
    app = make_app()
    mortal = Mortal(app)

    def kill(batch: Batch) -> None:
        if "killer" in batch:
            mortal.die()

    notes, crowd = Notes(), Crowd(kill)
    worker = declare(app, queue_name, crowd, retries_exhausted=lambda _self, jobs: notes.exhausted.append(list(jobs)))
    worker.push_many(jobs_of(["killer", "b", "c", "d", "e"]))
    for _ in range(8):
        mortal.drain()
        outlive(app, clock, worker)
    app.drain()

    assert ["killer"] == [job.id for job in notes.dead]
    assert [None] * 4 == [look(app, worker, job_id) for job_id in "bcde"]


def test_context_variables_end_with_their_batch(app: Lowkiq, queue_name: str, declare: Declare) -> None:
    """A handler sees what was set around the drain, and nothing that another batch has set."""
    variable = ContextVar("variable", default="nothing")
    seen: list[str] = []

    def note(_batch: Batch) -> None:
        seen.append(variable.get())
        variable.set("of another")

    declare(app, queue_name, note).push_many(jobs_of("abcdefgh"))
    variable.set("of the drain")
    app.drain()

    assert ["of the drain"] * 8 == seen
    assert "of the drain" == variable.get()


def test_a_visit_that_breaks_off_waits_for_all_that_run(make_app: MakeApp, clock: ManualClock, queue_name: str) -> None:
    """P1: the process may take the shard again only then; handlers see that they should stop."""
    app = make_app(settle_interval=0.0)
    mortal = Mortal(app)
    told: list[bool] = []

    def straggle(batch: Batch) -> None:
        debounce(batch)
        if "a" not in batch:
            told.append(eventually(lambda: batch.stopping))

    debounce = Gathering(3)
    crowd = Crowd(straggle)
    worker = declare_threads(app, queue_name, crowd, concurrency=3)
    worker.push_many(jobs_of("abc"))
    mortal.die_before("settle")
    died = mortal.drain()

    assert (None, [True] * 2, ["a"]) == (died, told, crowd.ended[:1])
    assert sorted("abc") == sorted(crowd.ended)
    outlive(app, clock, worker)
    assert 3 == app.drain()["recovered"]


def test_p8_many_calls_at_once_are_settled_together(make_app: MakeApp, queue_name: str, declare: Declare) -> None:
    """P8: a settling writes what has ended, and claims for all slots; it is not one for each id."""
    app = make_app(settle_interval=10.0)
    backend, calls = app.core.drains.drainer._backend, list[str]()
    run = backend.run

    def count(name: str, *given: object, **options: object) -> object:
        calls.append(name)
        return run(name, *given, **options)  # type: ignore[arg-type]  # as it was given

    backend.run = count  # type: ignore[method-assign,assignment]  # that is the point
    crowd = Crowd()
    declare(app, queue_name, crowd).push_many([{"id": str(number)} for number in range(400)])

    assert {"done": 400} == app.drain()
    assert len(calls) <= 12


def test_jobs_with_a_cursor_run_side_by_side(make_app: MakeApp, clock: ManualClock, queue_name: str) -> None:
    """Each holds one slot; what they yield is saved under the one lease, and they go on from there after a stop."""
    app, stop = make_app(settle_interval=0.0), threading.Event()

    def before(_job: BatchJob, item: int) -> None:
        if not stop.is_set():
            debounce.wait(TIMEOUT)
            clock.advance(0.1)
            if item == 3:
                stop.set()

    debounce = threading.Barrier(3)
    items = Items(6, before)
    worker = declare_items(app, queue_name, items, concurrency=3)
    worker.push_many(jobs_of("abc"))
    result = app.core.drains.drainer.visit(
        app.core.queues.agreed(worker).shards[0], Budget(clock, stopping=stop.is_set)
    )
    assert ("stopping", 3) == (result.reason, result.counts["later"])
    assert {"done": 3} == app.drain()

    assert {job_id: list(range(6)) for job_id in "abc"} == {job_id: items.of(job_id) for job_id in "abc"}
    assert [None] * 3 == items.cursors[:3]
    assert [4] * 3 == items.cursors[3:]


def test_a_job_with_a_cursor_makes_no_way_while_a_slot_is_free(
    make_app: MakeApp, clock: ManualClock, queue_name: str
) -> None:
    """Its turn counts only where another job can begin in no other slot."""
    app = make_app(settle_interval=0.0)

    def before(job: BatchJob, item: int) -> None:
        clock.advance(1.0)
        if (job.id, item) == ("long", 2):
            worker.push_many(jobs_of("x"))
            move_until(clock, lambda: "x" in items.ended)

    items = Items(5, before)
    worker = declare_items(app, queue_name, items, concurrency=2, turn=0.0)
    worker.push_many([{"id": "long"}])

    assert {"done": 2} == app.drain()
    assert [("long", None), ("x", None)] == [(run.id, run.cursor) for run in items.runs]


def test_p9_a_straggler_counts_for_the_lag(
    make_app: MakeApp, clock: ManualClock, queue_name: str, declare: Declare
) -> None:
    """P9: the lag is that of the oldest job that has not ended, though newer ones were settled beside it."""
    # The clock jumps: a shorter lease would be over, and the straggler cancelled.
    app = make_app(settle_interval=0.0, lease_ttl=3_600.0)
    lags: list[float] = []

    def straggle(batch: Batch) -> None:
        if "slow" in batch:
            clock.advance(30)
            worker.push_many(jobs_of("x"))
            move_until(clock, lambda: "x" in crowd.ended)
            lags.append(app.operate.metrics()[queue_name].lag)

    crowd = Crowd(straggle)
    worker = declare(app, queue_name, crowd)
    worker.push_many([{"id": "slow"}])
    app.drain()

    assert lags[0] >= 30


def test_the_first_try_has_nothing_beside_it(
    app: Lowkiq, clock: ManualClock, queue_name: str, declare: Declare
) -> None:
    """P5: where nothing is predicted to fit one id is tried, whatever the concurrency; the others are returned."""
    crowd = Crowd()
    worker = declare(app, queue_name, crowd, batch_size=2)
    worker.push_many(jobs_of("abcdef"))
    shard = app.core.queues.agreed(worker).shards[0]
    app.core.backend.client.hset(shard.key("meta"), "pace", "60.0 60.0 60.0 0.0")
    result = app.core.drains.drainer.visit(shard, Budget(clock, 10.0))

    assert ("out of time", ["a"]) == (result.reason, crowd.begun)
    assert [None, *[-1.0] * 5] == [job and job.retry_count for job in (look(app, worker, one) for one in "abcdef")]


def test_p8_what_was_claimed_begins_though_the_turn_is_over(
    make_app: MakeApp, clock: ManualClock, queue_name: str, declare: Declare
) -> None:
    """The end of a turn ends claiming: spare ids are performed, and none is returned for it."""
    app = make_app(settle_interval=0.0)

    reasons = list[tuple[str, int]]()

    def push_more(batch: Batch) -> None:
        if not reasons:
            is_over.set()
        clock.advance(1.0)
        if "a" in batch:
            worker.push_many(jobs_of("xy"))

    crowd, is_over = Crowd(push_more), threading.Event()
    worker = declare(app, queue_name, crowd, concurrency=2)
    worker.push_many(jobs_of("abcdefgh"))
    shard = app.core.queues.agreed(worker).shards[0]
    app.core.backend.client.hset(shard.key("meta"), "pace", "0.000001 0.0 0.0 0.0")
    while shard_has_work(app, worker):
        result = app.core.drains.drainer.visit(shard, Budget(clock).for_turn(is_over.is_set))
        reasons.append((result.reason, result.counts["returned"]))
        is_over.clear()

    assert [("turn over", 0), ("empty", 0)] == [reasons[0], reasons[-1]]
    assert [*"abcdefgh", *"xy"] == sorted(crowd.begun)


def test_p1_what_is_abandoned_comes_back_begun_or_not(
    make_app: MakeApp, clock: ManualClock, queue_name: str, declare: Declare
) -> None:
    """A process that ends by force marks all that it has in flight: none of it is a suspect."""
    app = make_app()
    mortal = Mortal(app)

    def leave(batch: Batch) -> None:
        debounce(batch)
        if "a" in batch:
            app.core.drains.drainer.abandon_all(1.0)
            mortal.die()
            gone.set()
        wait_for(gone)

    gone, debounce = threading.Event(), Gathering(4)
    crowd = Crowd(leave)
    worker = declare(app, queue_name, crowd)
    worker.push_many(jobs_of("abcdef"))
    mortal.drain()
    outlive(app, clock, worker)
    crowd.then = None

    assert {"done": 6, "recovered": 4} == app.drain()
    assert 4 == crowd.most


def test_how_long_a_job_waited_ends_at_its_begin(
    app: Lowkiq, clock: ManualClock, queue_name: str, declare: Declare
) -> None:
    """What was claimed early waits on: observers are told of the time until its handler began."""
    recorder = EventRecorder()
    app.observers.append(recorder)
    worker = declare(app, queue_name, lambda _batch: clock.advance(5), concurrency=1)
    worker.push_many(jobs_of("ab", due_at=clock.time()))
    shard = app.core.queues.agreed(worker).shards[0]
    app.core.backend.client.hset(shard.key("meta"), "pace", "0.000001 0.0 0.0 0.0")
    app.drain()

    assert [0.0, 5.0] == [round(waited, 1) for event in recorder.events for waited in event.waited]
