"""Gathering: a new id waits for more pushes, for a while (B-7)."""

import struct
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
import redis

from lowkiq_lambda import Batch, Debounce, DeclarationError, Later, Lowkiq, Worker
from lowkiq_lambda.store.shard.chunks import EnqueueReply, packed
from lowkiq_lambda.store.shard.keys import declaration_key
from lowkiq_lambda.store.shard.scripts import script
from lowkiq_lambda.testing import ManualClock
from tests.kit.apps import MakeApp
from tests.kit.deaths import Mortal, outlive
from tests.kit.firing import at_noon, fired
from tests.kit.handlers import Notes, raising
from tests.kit.looks import left_behind, look
from tests.kit.servers import MakeServer, Server
from tests.kit.workers import declare, jobs_of, shard_of

QUIET = Debounce(2.0, at_most=10.0)


@pytest.fixture
def notes() -> Notes:
    """What the handler got."""
    return Notes()


@pytest.fixture
def worker(app: Lowkiq, queue_name: str, notes: Notes) -> type[Worker]:
    """A worker that debounces for two seconds, and for ten at most."""
    return declare(app, queue_name, notes, debounce=QUIET)


@pytest.fixture
def admin(server: Server) -> Iterator[redis.Redis]:
    """Looks at keys."""
    with redis.Redis.from_url(server.url) as client:
        yield client


def push(worker: type[Worker], *payloads: object, job_id: str = "a", **fields: Any) -> float:
    """Push them under one id, and tell when it is due."""
    return worker.push_many([{"id": job_id, "payload": payload, **fields} for payload in payloads])[-1].due_at


def enqueue(app: Lowkiq, worker: type[Worker], token: str) -> EnqueueReply:
    """Push one job under a token, as a client does."""
    debounce = struct.pack(">dd", QUIET.quiet, QUIET.at_most)
    (reply,) = app.core.backend.run_each(
        [("enqueue", shard_of(app, worker, "a"), [token, "min", "", "", "a", packed(None, None, b"1"), debounce])]
    )
    return EnqueueReply.of(reply)


def due_at(app: Lowkiq, worker: type[Worker], job_id: str = "a") -> float:
    """When the id is due, as the server has it."""
    waiting = look(app, worker, job_id)
    assert waiting is not None
    return waiting.due_at


def test_b7_a_new_id_is_due_when_it_was_quiet(
    app: Lowkiq, clock: ManualClock, worker: type[Worker], notes: Notes
) -> None:
    """B-7: each push puts the id off, and all that has gathered is handed over at once."""
    began = clock.time()
    times = []
    for payload in range(3):
        times.append(push(worker, payload) - began)
        clock.advance(1.5)

    assert {} == app.drain()
    clock.advance(0.5)
    app.drain()

    assert ([2.0, 3.5, 5.0], [{"a": [0, 1, 2]}]) == (times, notes.batches)
    assert {} == left_behind(app, worker)


def test_b7_an_id_that_is_never_quiet_is_due_at_most_so_long_after_its_first_push(
    app: Lowkiq, clock: ManualClock, worker: type[Worker], notes: Notes
) -> None:
    """B-7: a stream of pushes delays nothing for ever, and the next gathering counts from its own first push."""
    began = clock.time()
    for payload in range(24):
        push(worker, payload)
        clock.advance(1.0)
        app.drain()

    assert [[*range(10)], [*range(10, 20)]] == [batch["a"] for batch in notes.batches]
    assert began + 25.0 == due_at(app, worker)


def test_an_id_that_is_due_waits_for_no_other_push(
    app: Lowkiq, clock: ManualClock, worker: type[Worker], notes: Notes
) -> None:
    """It was quiet long enough: that nobody has drained yet changes nothing, and the lag is honest."""
    due = push(worker, 1)
    clock.advance(5.0)

    assert due == push(worker, 2)

    assert 3.0 == app.operate.stats()["total"]["lag"]
    app.drain()
    assert [{"a": [1, 2]}] == notes.batches


def test_ids_debounce_apart_and_so_do_jobs_of_one_call(clock: ManualClock, worker: type[Worker]) -> None:
    """Each id has its own times; several jobs of one call are one moment."""
    began = clock.time()
    push(worker, 1, job_id="a")
    clock.advance(1.0)

    pushed = worker.push_many(
        [{"id": "b"}, {"id": "a", "payload": 2}, {"id": "b", "payload": 2}, {"id": "c", "delay": 0.5}, {"id": "c"}]
    )

    assert [3.0, 3.0, 3.0, 1.5, 1.5] == [one.due_at - began for one in pushed]
    assert [False, True, True, False, True] == [one.merged for one in pushed]


def test_an_equal_payload_counts_as_a_push(clock: ManualClock, worker: type[Worker]) -> None:
    """It merges, and the client was active all the same."""
    push(worker, "same")
    clock.advance(1.0)

    assert clock.time() + 2.0 == push(worker, "same")


def test_l27_a_time_of_its_own_is_not_gathered(
    app: Lowkiq, clock: ManualClock, worker: type[Worker], notes: Notes
) -> None:
    """L-27: an id that was given a time keeps it; a job that names one puts off no id that debounces."""
    planned = clock.time() + 1.0
    assert planned == push(worker, "planned", job_id="b", due_at=planned)
    assert planned == push(worker, "more", job_id="b")
    gathering = push(worker, 1)
    clock.advance(1.0)
    assert gathering == push(worker, 2, delay=60)

    assert {"done": 1} == app.drain()
    assert clock.time() == push(worker, "at once", job_id="c", delay=0)
    assert {"done": 1} == app.drain()

    assert [["b"], ["c"]] == notes.ids


def test_a_time_of_its_own_holds_also_where_it_is_that_of_an_earlier_gathering(
    app: Lowkiq, clock: ManualClock, worker: type[Worker]
) -> None:
    """What was gathered and deleted leaves nothing to the id's next job."""
    due = push(worker, 1)
    app.operate(worker).waiting.delete(["a"])
    push(worker, 2, due_at=due)
    clock.advance(1.0)

    assert due == push(worker, 3)


def test_l20_a_retry_is_not_gathered(app: Lowkiq, clock: ManualClock, worker: type[Worker], notes: Notes) -> None:
    """L-20, L-27: an id that failed is due when retry_in says, whatever is pushed meanwhile."""
    push(worker, 1, delay=0)
    notes.then = raising()
    app.drain()
    notes.then = None
    retry_at = clock.time() + 10.0

    assert retry_at == push(worker, 2)
    clock.advance(9.0)
    assert retry_at == push(worker, 3)
    clock.advance(1.0)
    app.drain()

    assert {"a": [1, 2, 3]} == notes.batches[-1]


def test_l20_a_retry_is_none_that_debounces_whatever_its_time_is(
    app: Lowkiq, clock: ManualClock, queue_name: str
) -> None:
    """L-20: also where it is due at the very moment at which its id would have been due."""
    worker = declare(app, queue_name, Notes(raising()), debounce=QUIET, retry_in=lambda _self, _count: QUIET.quiet)
    due = push(worker, 1)
    app.operate(worker).waiting.run_now(everything=True)
    app.drain()
    clock.advance(1.0)

    assert due == push(worker, 2)


def test_what_an_operator_makes_due_is_not_put_off_again(
    app: Lowkiq, clock: ManualClock, worker: type[Worker], notes: Notes
) -> None:
    """Run now is now."""
    push(worker, 1)
    clock.advance(0.5)
    app.operate(worker).waiting.run_now(everything=True)

    assert clock.time() >= push(worker, 2)
    app.drain()

    assert [{"a": [1, 2]}] == notes.batches


def test_l34_what_comes_from_the_morgue_is_not_gathered(
    app: Lowkiq, clock: ManualClock, worker: type[Worker], notes: Notes
) -> None:
    """L-34: requeued is due now, also where its id debounces, and a push puts it off no more."""
    app.operate(worker)
    worker.max_retry_count = 0
    notes.then = raising()
    for payload in range(2):
        push(worker, payload, job_id=f"id-{payload}", delay=0)
    app.drain()
    notes.then = None
    push(worker, "newer", job_id="id-1")

    app.operate(worker).morgue.requeue(["id-0", "id-1"])

    assert [clock.time()] * 2 == [push(worker, "last", job_id=job_id) for job_id in ("id-0", "id-1")]
    app.drain()
    assert [{"id-0": [0, "last"]}, {"id-1": [1, "newer", "last"]}] == sorted(notes.batches[-2:], key=str)


def test_ln10_a_push_while_the_id_runs_begins_to_debounce(
    app: Lowkiq, clock: ManualClock, worker: type[Worker], notes: Notes
) -> None:
    """LN-10: it counts from its own first push, is due when it was quiet, and never runs beside the first."""

    def pushing(_batch: Batch) -> None:
        notes.then = None
        push(worker, 2)
        clock.advance(1.0)
        push(worker, 3)

    push(worker, 1, delay=0)
    notes.then = pushing

    assert {"done": 1} == app.drain()

    assert clock.time() + 2.0 == due_at(app, worker)
    for payload in range(4, 10):
        clock.advance(1.5)
        push(worker, payload)
    assert clock.time() == due_at(app, worker)
    app.drain()
    assert [{"a": [1]}, {"a": [*range(2, 10)]}] == notes.batches


def test_l28_what_gathered_while_its_id_failed_waits_for_the_retry(
    app: Lowkiq, clock: ManualClock, worker: type[Worker], notes: Notes
) -> None:
    """L-28: the time is that of the failed one, and pushes do not change it."""

    def failing(_batch: Batch) -> None:
        notes.then = None
        push(worker, 2)
        raise ValueError("again")

    push(worker, 1, delay=0)
    notes.then = failing
    app.drain()
    clock.advance(1.0)

    assert clock.time() + 9.0 == push(worker, 3)


def test_p2_what_a_dead_process_left_is_not_gathered(
    app: Lowkiq, clock: ManualClock, worker: type[Worker], notes: Notes
) -> None:
    """P2: it is recovered, with what gathered meanwhile, as the suspect that it is."""
    mortal = Mortal(app)
    push(worker, 1, delay=0)
    notes.then = mortal.die
    mortal.drain()
    notes.then = None
    push(worker, 2)
    outlive(app, clock, worker)

    app.drain()

    assert [{"a": [1]}, {"a": [1, 2]}] == notes.batches


def test_what_is_given_back_is_as_it_was(app: Lowkiq, clock: ManualClock, worker: type[Worker], notes: Notes) -> None:
    """A stop is no push: the id is due at once, and a push meanwhile goes with it."""

    def stopped(_batch: Batch) -> None:
        notes.then = None
        push(worker, 2)
        raise KeyboardInterrupt

    due = push(worker, 1)
    clock.advance(2.0)
    notes.then = stopped
    with pytest.raises(KeyboardInterrupt):
        app.drain()

    assert due == push(worker, 3)
    app.drain()
    assert {"a": [1, 2, 3]} == notes.batches[-1]


def test_what_goes_on_later_is_not_gathered(
    app: Lowkiq, clock: ManualClock, worker: type[Worker], notes: Notes
) -> None:
    """The handler has asked for a time, and no push changes it."""

    def later(_batch: Batch) -> None:
        raise Later(30.0)

    push(worker, 1)
    clock.advance(2.0)
    notes.then = later
    app.drain()
    asked = clock.time() + 30.0
    clock.advance(1.0)

    assert asked == push(worker, 2)


def test_the_rest_of_a_large_id_waits_for_no_push(
    app: Lowkiq, clock: ManualClock, queue_name: str, notes: Notes
) -> None:
    """Between its chunks an id is due, and what is pushed then goes with the last one."""
    worker = declare(app, queue_name, notes, debounce=QUIET, payloads_at_once=2)
    push(worker, *range(4))
    clock.advance(2.0)

    def pushing(_batch: Batch) -> None:
        notes.then = None
        push(worker, 4)

    notes.then = pushing
    app.drain()

    assert [[0, 1], [2, 3], [4]] == [batch["a"] for batch in notes.batches]


def test_a_deleted_id_begins_anew(app: Lowkiq, clock: ManualClock, worker: type[Worker]) -> None:
    """Its limit counts from the first push behind that."""
    push(worker, 1)
    clock.advance(1.0)
    app.operate(worker).waiting.delete(["a"])
    due = [push(worker, 2)]
    for _ in range(6):
        clock.advance(1.5)
        due.append(push(worker, 3))

    assert clock.time() + 1.0 == due[-1]


def test_a_push_that_is_sent_twice_is_gathered_once(app: Lowkiq, clock: ManualClock, worker: type[Worker]) -> None:
    """A repeat under the same token is answered as the first time, and puts nothing off."""
    first = enqueue(app, worker, "token")
    clock.advance(1.0)

    again = enqueue(app, worker, "token")

    assert first == again
    assert clock.time() + 1.0 == due_at(app, worker)


def test_c11_a_planned_time_is_not_gathered(
    app: Lowkiq, clock: ManualClock, worker: type[Worker], notes: Notes
) -> None:
    """C-11: an entry fires at its time, and into an id that debounces it merges and changes no time."""
    at_noon(clock, -60.0)
    app.every(60, worker, id="new", payload="planned", name="new")
    app.every(60, worker, id="a", payload="planned", name="debouncing")
    app.schedules.tick()
    clock.advance(59.0)
    due = push(worker, 1)
    clock.advance(1.0)

    assert [("debouncing", 0.0, "merged"), ("new", 0.0, "pushed")] == sorted(fired(app.schedules.tick()))

    assert due == due_at(app, worker)
    assert clock.time() == push(worker, "more", job_id="new")
    app.drain()
    assert [{"new": ["planned", "more"]}] == notes.batches


def test_e48_a_clock_that_is_set_back_delays_no_id_that_is_pushed_to(
    app: Lowkiq, clock: ManualClock, worker: type[Worker]
) -> None:
    """E-48: the next push counts from the time that it is now, and the limit does, too."""
    push(worker, 1)
    clock.set_wall(clock.time() - 3_600.0)
    pushed_at = clock.time()

    # Whoever waits for the time before that is told.
    assert [1, 0] == [enqueue(app, worker, token).sooner for token in ("first", "second")]

    assert pushed_at + 2.0 == due_at(app, worker)
    due = []
    for _ in range(6):
        clock.advance(1.5)
        due.append(push(worker, 3))
    assert pushed_at + 10.0 == due[-1]


def test_lag_and_the_reason_tell_that_an_id_debounces(app: Lowkiq, clock: ManualClock, worker: type[Worker]) -> None:
    """P9: nothing is overdue, and people see until when it waits."""
    push(worker, 1)
    clock.advance(1.0)
    due = push(worker, 2)

    assert 0.0 == app.operate.stats()["total"]["lag"]
    explained = app.operate(worker).explain("a")
    assert (due, clock.time() + 9.0) == (explained.due_at, explained.debounced_until)

    clock.advance(2.0)
    assert app.operate(worker).explain("a").debounced_until is None


def test_what_is_kept_of_gathering_goes_by_itself(
    app: Lowkiq, clock: ManualClock, worker: type[Worker], admin: redis.Redis
) -> None:
    """The next push removes what is over, and where none comes the key expires; it holds no job."""
    key = shard_of(app, worker, "a").key("debouncing")
    worker.push_many(jobs_of(["b", "c", "d"]))
    first = admin.zcard(key)
    clock.advance(10.0)
    push(worker, 1)

    assert (6, 2) == (first, admin.zcard(key))
    assert 60_000 < admin.pttl(key) <= 70_000


def test_a_queue_that_does_not_debounce_has_no_key_for_it(
    app: Lowkiq, queue_name: str, worker: type[Worker], admin: redis.Redis
) -> None:
    """Neither the script nor the shard of another queue knows of gathering."""
    other = declare(app, f"{queue_name}-other", Notes())
    push(other, 1)
    push(other, 2)
    shard = shard_of(app, other, "a")

    assert () == shard.features
    assert "debouncing" not in script("enqueue").keys
    assert "debouncing" in script("enqueue", shard_of(app, worker, "a").features).keys
    assert [] == [key for key in admin.scan_iter(f"*{queue_name}-other*", count=10_000) if b"debouncing" in key]


def test_a_user_of_the_declared_keys_alone_may_debounce(
    make_app: MakeApp, make_server: MakeServer, clock: ManualClock, queue_name: str, notes: Notes
) -> None:
    """All that a queue which debounces does touches keys that its scripts were given."""
    server = make_server()
    app = make_app(redis_url=server.url)
    worker = declare(app, queue_name, notes, debounce=QUIET)
    keys = [*shard_of(app, worker, "a").keys, declaration_key(queue_name)]
    guarded = make_app(redis_url=server.add_user("guarded", "+@all", "&*", *(f"~{key}" for key in keys)))
    worker = declare(guarded, queue_name, notes, debounce=QUIET)
    push(worker, 1)
    clock.advance(1.0)

    assert clock.time() + 2.0 == push(worker, 2)
    assert clock.time() + 9.0 == guarded.operate(worker).explain("a").debounced_until
    assert 0 == guarded.operate(worker).repair()


def test_damage_to_what_is_kept_of_gathering_stops_no_push(
    app: Lowkiq, worker: type[Worker], admin: redis.Redis, notes: Notes, clock: ManualClock
) -> None:
    """A key of another type is set aside, and the push is applied once."""
    push(worker, 1)
    key = shard_of(app, worker, "a").key("debouncing")
    admin.delete(key)
    admin.hset(key, "a", "b")

    push(worker, 2)

    clock.advance(2.0)
    app.drain()
    assert ([{"a": [1, 2]}], 1) == (notes.batches, len(app.operate(worker).damaged()))


@pytest.mark.parametrize(
    ("given", "means"),
    [
        ((2,), (2.0, 20.0)),
        ((timedelta(minutes=5), timedelta(hours=1)), (300.0, 3_600.0)),
        ((2.0, 2.0), (2.0, 2.0)),
        ((300 * 86_400.0,), (300 * 86_400.0, 366 * 86_400.0)),
    ],
)
def test_a_debounce_is_of_seconds_or_timedeltas(given: tuple[Any, ...], means: tuple[float, float]) -> None:
    """Without at_most it is ten times quiet, so that no id starves."""
    debounce = Debounce(*given)

    assert means == (debounce.quiet, debounce.at_most)


@pytest.mark.parametrize("given", [(0,), (-1.0,), (True,), ("2",), (float("nan"),), (2.0, 1.0), (2.0, 0), (1e9,)])
def test_a_debounce_that_cannot_be_is_refused(given: tuple[Any, ...]) -> None:
    """When it is declared, with a sentence."""
    with pytest.raises(DeclarationError, match=r"of a Debounce (must|is)"):
        Debounce(*given)


def test_a_worker_debounces_by_a_debounce_alone(app: Lowkiq, queue_name: str) -> None:
    """A number is refused, and so is a name that is nearly the option's."""
    with pytest.raises(DeclarationError, match=r"must be a Debounce, as in Debounce\(2.0, at_most=10.0\), not 2.0"):
        declare(app, queue_name, Notes(), debounce=2.0)
    with pytest.raises(DeclarationError, match="did you mean debounce"):
        declare(app, queue_name, Notes(), debounces=QUIET)


@pytest.mark.parametrize("tenants", ["spread", "home"])
def test_ids_of_tenants_debounce_as_others_do(
    app: Lowkiq, clock: ManualClock, queue_name: str, notes: Notes, tenants: str
) -> None:
    """An id that is put off holds its tenant's other ids up no more than it would be held up itself."""
    worker = declare(app, queue_name, notes, debounce=QUIET, tenants=tenants)
    began = clock.time()
    push(worker, 1, job_id="acme:1")
    clock.advance(1.0)
    push(worker, 1, job_id="acme:2")
    due = push(worker, 2, job_id="acme:1")
    push(worker, 3, job_id="acme:3", delay=0)

    app.drain()
    clock.advance(1.0)
    app.drain()
    assert (began + 3.0, [{"acme:3": [3]}]) == (due, notes.batches)
    clock.advance(1.0)
    app.drain()

    assert [{"acme:1": [1, 2]}, {"acme:2": [1]}] == sorted(notes.batches[1:], key=str)


def test_a_function_debounces_as_a_class_does(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """`debounce` is an option of it."""

    @app.worker(queue_name=queue_name, debounce=QUIET)
    def nothing(_batch: object) -> None: ...

    assert clock.time() + 2.0 == nothing.push_many([{"id": 1}])[0].due_at
