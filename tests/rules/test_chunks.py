"""An id with very many payloads (E-69): cheap to push to, handed over in chunks, in order, others between."""

import pytest

from lowkiq_lambda import Batch, Config, Lowkiq
from lowkiq_lambda.testing import ManualClock
from tests.kit.apps import MakeApp
from tests.kit.handlers import Broken, Notes, failing
from tests.kit.looks import left_behind, look
from tests.kit.servers import MakeServer, Server
from tests.kit.workers import declare, jobs_of


def commands_of(server: Server) -> int:
    """How many commands the server has run, those inside scripts too."""
    return sum(stats["calls"] for stats in server.admin.info("commandstats").values())


def test_pushing_to_an_id_with_100_000_payloads_stays_cheap(
    make_server: MakeServer, clock: ManualClock, queue_name: str
) -> None:
    """The hundredth thousand of payloads costs as many commands as the second, and all come in chunks, in order."""
    server = make_server()
    app, notes = Lowkiq(Config(redis_url=server.url), clock=clock), Notes()
    worker = declare(app, queue_name, notes)
    costs = []
    for thousand in range(100):
        before = commands_of(server)
        worker.push_many({"id": "a", "payload": thousand * 1_000 + n} for n in range(1_000))
        costs.append(commands_of(server) - before)

    assert {"done": 100} == app.drain()

    assert costs[-1] <= costs[1] + 5
    assert costs[1] < 10 * 1_000
    assert [1_000] * 100 == [len(batch["a"]) for batch in notes.batches]
    assert list(range(100_000)) == [payload for batch in notes.batches for payload in batch["a"]]
    assert {} == left_behind(app, worker)


def test_chunks_come_in_order_and_others_pass_between(make_app: MakeApp, clock: ManualClock, queue_name: str) -> None:
    """Between its chunks an id queues behind what is due at that moment."""
    app = make_app(claim_payloads=10)
    notes = Notes(lambda _batch: clock.advance(1))
    worker = declare(app, queue_name, notes)
    worker.push_many({"id": "big", "payload": n} for n in range(25))
    clock.advance(1)
    worker.push_many(jobs_of(["x", "y"]))
    clock.advance(1)

    app.drain()

    assert [["big"], ["x"], ["y"], ["big"], ["big"]] == notes.ids
    assert [list(range(10)), list(range(10, 20)), list(range(20, 25))] == [
        batch["big"] for batch in notes.batches if "big" in batch
    ]


def test_a_worker_may_take_fewer_payloads_at_once(make_app: MakeApp, clock: ManualClock, queue_name: str) -> None:
    """At most `payloads_at_once` of an id are handed over, the oldest first; others pass between."""
    app = make_app()
    notes = Notes(lambda _batch: clock.advance(1))
    worker = declare(app, queue_name, notes, payloads_at_once=2)
    worker.push_many({"id": "a", "payload": n, "score": -n} for n in range(5))
    clock.advance(1)
    worker.push_many(jobs_of(["x"]))
    clock.advance(1)

    app.drain()

    assert [[4, 3], [2, 1], [0]] == [batch["a"] for batch in notes.batches if "a" in batch]
    assert [["a"], ["x"], ["a"], ["a"]] == notes.ids
    assert {} == left_behind(app, worker)


def test_one_payload_at_once_has_retries_of_its_own(make_app: MakeApp, clock: ManualClock, queue_name: str) -> None:
    """P7: with `payloads_at_once=1` each payload is retried and dies by itself, in order."""
    app = make_app()
    notes = Notes(failing("a"))
    worker = declare(app, queue_name, notes, payloads_at_once=1, max_retry_count=1)
    worker.push_many({"id": "a", "payload": n, "score": n} for n in range(3))

    for _ in range(8):
        app.drain()
        clock.advance(10)

    assert [[0], [0], [1], [1], [2], [2]] == [batch["a"] for batch in notes.batches]
    assert [0, 1, 2] == [payload for job in notes.dead for payload, _ in job.payloads]


def test_what_comes_due_between_chunks_has_its_turn(make_app: MakeApp, clock: ManualClock, queue_name: str) -> None:
    """A job that is pushed while a chunk runs waits for one more chunk at most."""
    app, notes = make_app(claim_payloads=5), Notes()

    def push_another(batch: Batch) -> None:
        clock.advance(1)
        if "big" in batch:
            worker.push_many(jobs_of([f"after {batch['big'][0]}"]))
        clock.advance(1)

    notes.then = push_another
    worker = declare(app, queue_name, notes)
    worker.push_many({"id": "big", "payload": n} for n in range(15))

    app.drain()

    assert [["big"], ["big"], ["after 0"], ["big"], ["after 5"], ["after 10"]] == notes.ids


def test_a_failing_chunk_goes_back_before_the_rest(make_app: MakeApp, clock: ManualClock, queue_name: str) -> None:
    """A chunk that fails waits for its retry with all that is behind it; then the same chunk comes first."""
    app = make_app(claim_payloads=4)
    notes = Notes(failing("a"))
    worker = declare(app, queue_name, notes)
    worker.push_many({"id": "a", "payload": n, "score": n} for n in range(10))

    assert {"failed": 1, "retried": 1} == app.drain()
    waiting = look(app, worker, "a")
    assert ([(n, float(n)) for n in range(10)], clock.time() + 10, 0.0, "a is broken") == waiting
    clock.advance(5)
    assert 0 == app.operate.metrics()[queue_name].lag
    notes.then = None
    clock.advance(5)
    app.drain()

    assert [[0, 1, 2, 3], [0, 1, 2, 3], [4, 5, 6, 7], [8, 9]] == [batch["a"] for batch in notes.batches]
    assert [-1.0, 0.0, -1.0, -1.0] == [job.retry_count for (job,) in notes.jobs]
    assert {} == left_behind(app, worker)


def test_p7_in_chunks_too_each_payload_has_its_chances(make_app: MakeApp, clock: ManualClock, queue_name: str) -> None:
    """Of chunks that always fail one payload after another is dead, the oldest first, none without its tries."""
    app = make_app(claim_payloads=2)
    notes = Notes(failing("a"))
    worker = declare(app, queue_name, notes, max_retry_count=1)
    worker.push_many({"id": "a", "payload": n, "score": n} for n in range(4))

    for _ in range(12):
        app.drain()
        clock.advance(10)

    assert [0, 1, 2, 3] == [payload for job in notes.dead for payload, _ in job.payloads]
    assert [0, 0, 1, 1, 2, 2, 3, 3] == [batch["a"][0] for batch in notes.batches]


def test_a_claim_has_a_byte_limit(make_app: MakeApp, queue_name: str) -> None:
    """Chunks are cut by bytes too, over all ids of a claim."""
    app, notes = make_app(claim_bytes=10_000), Notes()
    worker = declare(app, queue_name, notes, batch_size=10)
    worker.push_many({"id": "a", "payload": f"{n}" + "x" * 3_000} for n in range(7))
    worker.push_many({"id": n, "payload": "x" * 4_000} for n in range(5))

    app.drain()

    sizes = [sum(len(payload) for payloads in batch.values() for payload in payloads) for batch in notes.batches]
    assert max(sizes) <= 10_000
    assert 7 * 3_001 + 5 * 4_000 == sum(sizes)
    assert [str(n) for n in range(7)] == [one[0] for batch in notes.batches for one in batch.get("a", [])]


def test_one_payload_above_the_limit_passes(make_app: MakeApp, queue_name: str) -> None:
    """A payload larger than a claim may carry is claimed alone, whether its id has others or not."""
    app, notes = make_app(claim_bytes=1_000), Notes()
    worker = declare(app, queue_name, notes, batch_size=10)
    worker.push_many({"id": "several", "payload": str(n) * 5_000} for n in range(3))
    worker.push_many(jobs_of(["single", "small"], payload="x" * 5_000))

    app.drain()

    assert 5 * [5_000] == [len(one) for batch in notes.batches for payloads in batch.values() for one in payloads]
    assert {} == left_behind(app, worker)


def test_lag_keeps_the_original_time(make_app: MakeApp, clock: ManualClock, queue_name: str) -> None:
    """P9: though the rest queues behind others, lag and due_at tell since when the id waits."""
    app = make_app(claim_payloads=1)
    lags: list[float] = []

    def probe(_batch: Batch) -> None:
        clock.advance(1)
        (state,) = app.core.drains.drainer.probe(app.core.queues.agreed(worker).shards)
        lags.append(state.lag)

    notes = Notes(probe)
    worker = declare(app, queue_name, notes)
    at = clock.time() - 100
    worker.push_many({"id": "a", "payload": n, "due_at": at} for n in range(3))

    app.drain()

    assert [101, 102, 103] == lags
    assert [at] * 3 == [job.due_at for (job,) in notes.jobs]


def test_lag_is_told_between_chunks_too(make_app: MakeApp, clock: ManualClock, queue_name: str) -> None:
    """P9: also while nothing of it is in flight the rest of an id counts from its own time."""
    app = make_app(claim_payloads=1)
    worker = declare(app, queue_name, lambda _batch: clock.advance(10))
    worker.push_many({"id": "a", "payload": n} for n in range(3))
    app.drain(seconds=5)

    (state,) = app.core.drains.drainer.probe(app.core.queues.agreed(worker).shards)

    assert (True, 10) == (state.has_work, state.lag)


def test_an_equal_payload_after_its_chunk_is_a_new_one(make_app: MakeApp, queue_name: str) -> None:
    """E-66: what was pushed again while its chunk ran, which then succeeded, is performed once more."""
    app, notes = make_app(claim_payloads=2), Notes()

    def push_again(_batch: Batch) -> None:
        notes.then = None
        worker.push_many([{"id": "a", "payload": 0, "score": 9}, {"id": "a", "payload": 2, "score": 8}])

    notes.then = push_again
    worker = declare(app, queue_name, notes)
    worker.push_many({"id": "a", "payload": n, "score": n} for n in range(4))

    app.drain()

    assert [[0, 1], [2, 3], [0]] == [batch["a"] for batch in notes.batches]


def test_an_interrupted_chunk_goes_back_in_place(make_app: MakeApp, clock: ManualClock, queue_name: str) -> None:
    """A chunk that was interrupted is before the rest again, at its own time."""
    app = make_app(claim_payloads=2)
    notes = Notes()
    worker = declare(app, queue_name, notes)
    worker.push_many({"id": "a", "payload": n, "score": n} for n in range(5))
    at = clock.time()
    clock.advance(5)

    def interrupt(_batch: Batch) -> None:
        raise SystemExit

    notes.then = interrupt
    try:
        app.drain()
    except SystemExit:
        notes.then = None

    assert ([(n, float(n)) for n in range(5)], at, -1.0, None) == look(app, worker, "a")
    app.drain()
    assert [[0, 1], [0, 1], [2, 3], [4]] == [batch["a"] for batch in notes.batches]


def test_a_chunk_that_fails_in_company_runs_alone_next(make_app: MakeApp, queue_name: str) -> None:
    """Suspects of which one has more payloads than a claim carries: its first chunk runs alone, then the rest."""
    app = make_app(claim_payloads=3)

    def fail_in_company(batch: Batch) -> None:
        if len(batch) > 1:
            raise Broken

    notes = Notes(fail_in_company)
    worker = declare(app, queue_name, notes, batch_size=2)
    worker.push_many([{"id": "a", "payload": 0}, *({"id": "b", "payload": n, "score": n} for n in range(9))])

    app.drain()

    chunks = [{"b": [0, 1, 2]}, {"b": [3, 4, 5]}, {"b": [6, 7, 8]}]
    assert [{"a": [0], "b": [0, 1]}, {"a": [0]}, *chunks] == notes.batches


@pytest.mark.parametrize("length", [1, 600], ids=["in its record", "in the box"])
@pytest.mark.parametrize("chunk", [0, 2, 3])
def test_a_few_payloads_are_not_cut_by_the_room_of_a_claim(
    make_app: MakeApp, queue_name: str, length: int, chunk: int
) -> None:
    """What does not fit behind others comes with the next claim, as a whole or as a chunk of its own size."""
    app, notes = make_app(claim_payloads=3), Notes()
    worker = declare(app, queue_name, notes, batch_size=10, payloads_at_once=chunk)
    payloads = [f"{n}" * length for n in range(6)]
    first = [{"id": "b", "payload": payload, "score": n} for n, payload in enumerate(payloads[:2])]
    worker.push_many([{"id": "a"}, *first])
    worker.push_many([{"id": "c", "payload": payload, "score": n} for n, payload in enumerate(payloads[2:5])])

    app.drain()

    of_c = [{"c": payloads[2:5]}] if chunk != 2 else [{"c": payloads[2:4]}, {"c": payloads[4:5]}]
    assert [{"a": [""], "b": payloads[:2]}, *of_c] == notes.batches
    assert {} == left_behind(app, worker)
