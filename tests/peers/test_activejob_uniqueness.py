"""activejob-uniqueness 0.4.0: its own cases, in terms of `unless`, `on_conflict` and `key`."""

import threading
from collections.abc import Callable
from typing import Any

import pytest

from lowkiq_lambda import Conflict, DeclarationError, Lowkiq, Unique, Worker
from lowkiq_lambda.base.errors import BackendError
from lowkiq_lambda.testing import ManualClock, fake_app, forget_keys
from tests.kit.apps import MakeApp
from tests.kit.handlers import Notes, failing, raising
from tests.kit.servers import FaultProxy
from tests.kit.unique import Case, WatchingPushes
from tests.kit.waiting import eventually
from tests.kit.workers import declare

DAY = 86_400


@pytest.fixture
def case(app: Lowkiq, clock: ManualClock, queue_name: str) -> Case:
    """An id of its own queue."""
    return Case(app, clock, queue_name)


@pytest.fixture
def keyed(app: Lowkiq, queue_name: str) -> tuple[type[Worker], type[Worker]]:
    """Two workers, each with a job of two ids that was pushed with a key."""
    first, second = (declare(app, f"{queue_name}-{n}", Notes()) for n in range(2))
    for worker in (first, second):
        worker.push_many([{"id": id_, "key": "k"} for id_ in (1, 2)])
    return first, second


def known(worker: type[Worker]) -> list[bool]:
    """Of both ids, whether the key is remembered."""
    return [worker.push(id_, key="k").repeated for id_ in (1, 2)]


def test_a_strategy_that_is_not_known_is_refused() -> None:
    """At declaration. Peer: active_job_patch/unique_spec.rb, "raises error ActiveJob::Uniqueness::StrategyNotFound"."""
    with pytest.raises(DeclarationError, match='must be "waiting" or "busy"'):
        Unique("until_paid")  # type: ignore[arg-type]  # that is the mistake


def test_the_defaults_of_a_declaration() -> None:
    """Ours drops where theirs raises. Peer: active_job_patch/unique_spec.rb, "when no options given"."""
    assert ("waiting", "drop") == (Unique().unless, Unique().on_conflict)


@pytest.mark.parametrize("on_conflict", ["raise", print])
def test_an_action_of_a_conflict_is_declared(app: Lowkiq, queue_name: str, on_conflict: Any) -> None:
    """A word, or a function. Peer: active_job_patch/unique_spec.rb, "when on_conflict: Proc action is given"."""
    worker = declare(app, queue_name, Notes(), unique=Unique("busy", on_conflict=on_conflict))

    assert worker.unique == Unique("busy", on_conflict)


def test_an_action_that_is_not_known_is_refused() -> None:
    """At declaration. Peer: active_job_patch/unique_spec.rb, "when invalid on_conflict is given"."""
    with pytest.raises(DeclarationError, match="on_conflict of a Unique must be"):
        Unique(on_conflict="reschedule")  # type: ignore[arg-type]  # that is the mistake


def test_a_subclass_inherits_what_its_parent_says(app: Lowkiq, queue_name: str) -> None:
    """Peer: active_job_patch/unique_spec.rb, "preserves lock_options for inherited classes"."""
    parent = declare(app, f"{queue_name}-1", Notes(), unique=Unique("busy"))
    child: type[Worker] = app.worker(type("Child", (parent,), {"queue_name": f"{queue_name}-2"}))
    child.push(7, "a")

    assert ("waiting", None) == (child.push(7, "b").dropped, Worker.unique)


def test_a_class_beside_it_is_left_alone(app: Lowkiq, queue_name: str) -> None:
    """Peer: active_job_patch/unique_spec.rb, "does not impact lock_options of not inherited classes"."""
    declare(app, f"{queue_name}-1", Notes(), unique=Unique("busy"))
    other = declare(app, f"{queue_name}-2", Notes())

    assert ["", ""] == [other.push(7, payload).dropped for payload in "ab"]


def test_all_keys_of_a_worker_are_forgotten(keyed: tuple[type[Worker], type[Worker]], app: Lowkiq) -> None:
    """Those of another stay. Peer: active_job_patch/unlock_spec.rb, "unlocks all jobs of the job class"."""
    assert 2 == app.operate(keyed[0]).forget_all_keys()

    assert [[False, False], [True, True]] == [known(worker) for worker in keyed]


def test_the_keys_of_one_job_are_forgotten(keyed: tuple[type[Worker], type[Worker]], app: Lowkiq) -> None:
    """Peer: active_job_patch/unlock_spec.rb, "unlocks matching jobs"."""
    assert 1 == app.operate(keyed[0]).forget_keys(ids=[1])

    assert [[False, True], [True, True]] == [known(worker) for worker in keyed]


def test_a_job_that_was_never_pushed_has_no_keys(keyed: tuple[type[Worker], type[Worker]], app: Lowkiq) -> None:
    """Peer: active_job_patch/unlock_spec.rb, "does not unlock jobs of the job class"."""
    assert 0 == app.operate(keyed[0]).forget_keys([(3, "k")], ids=[4])

    assert [True, True] == known(keyed[0])


def test_the_keys_of_all_workers_are_forgotten(keyed: tuple[type[Worker], type[Worker]], app: Lowkiq) -> None:
    """Peer: unlock_spec.rb, "unlocks all jobs of all job classes"."""
    assert 4 == forget_keys(app)

    assert [[False, False], [False, False]] == [known(worker) for worker in keyed]


def test_many_keys_are_forgotten_at_once(app: Lowkiq, queue_name: str) -> None:
    """In one call of a shard. Peer: unlock_spec.rb, "removes locks efficiently"."""
    worker = declare(app, queue_name, Notes())
    worker.push_many([{"id": id_, "key": "k"} for id_ in range(1_100)])

    assert 1_100 == app.operate(worker).forget_all_keys()


def test_two_workers_have_ids_of_their_own(app: Lowkiq, queue_name: str) -> None:
    """Peer: lock_key/lock_key_spec.rb, "when job class has namespace"."""
    first, second = (declare(app, f"{queue_name}-{n}", Notes()) for n in range(2))

    assert ["", ""] == [worker.push(7, unless="busy").dropped for worker in (first, second)]


def test_until_executing_ends_when_the_job_begins(case: Case) -> None:
    """Peer: strategies/until_executing_spec.rb, "when performing has succeed, releases the lock"."""
    pushed = case.while_running(lambda: case.push(unless="waiting"))
    case.app.drain()

    assert ("", ["old", "new"]) == (pushed.dropped, case.ran)


def test_until_executing_a_job_that_failed_waits_again(case: Case) -> None:
    """Ours is retried, so its id waits. Peer: strategies/until_executing_spec.rb, "when performing has failed"."""
    case.notes.then = failing("7")
    case.push("old")
    case.app.drain()

    assert "waiting" == case.push(unless="waiting").dropped


def test_until_executed_lasts_through_a_failure(case: Case) -> None:
    """Peer: strategies/until_executed_spec.rb, "when performing has failed, does not release the lock"."""
    case.notes.then = failing("7")
    case.push("old", unless="busy")
    case.app.drain()

    assert "waiting" == case.push(unless="busy").dropped


def test_until_executed_ends_with_success(case: Case) -> None:
    """Peer: strategies/until_executed_spec.rb, "when performing has succeed, releases the lock"."""
    during = case.while_running(lambda: case.push(unless="busy"))

    assert ["running", ""] == [during.dropped, case.push(unless="busy").dropped]


@pytest.mark.parametrize("then", [None, failing("7")])
def test_until_expired_is_a_key(case: Case, then: Callable[..., object] | None) -> None:
    """It outlives its job. Peer: strategies/until_expired_spec.rb, "when performing has succeed/failed"."""
    case.notes.then = then
    case.push("old", key="k")
    case.app.drain()

    assert case.push("new", key="k").repeated


@pytest.mark.parametrize(("options", "seconds"), [({}, DAY), ({"key_ttl": 300}, 300)])
def test_a_key_ends_after_its_time(case: Case, options: dict[str, float], seconds: float) -> None:
    """Peer: support/shared_examples/enqueuing.rb, "when (no) custom lock_ttl is set, expires the lock properly"."""
    case.push("old", key="k", **options)
    case.clock.advance(seconds - 1)
    before = case.push("new", key="k").repeated
    case.clock.advance(2)

    assert [True, False] == [before, case.push("new", key="k").repeated]


def test_a_push_that_fails_leaves_nothing(make_app: MakeApp, fault_proxy: FaultProxy, queue_name: str) -> None:
    """The next one is stored. Peer: support/shared_examples/enqueuing.rb, "when enqueuing has failed"."""
    worker = declare(make_app(redis_url=fault_proxy.url), queue_name, Notes())
    worker.push(6)
    fault_proxy.refuse()
    fault_proxy.cut()
    with pytest.raises(BackendError):
        worker.push(7, "a", unless="busy")
    fault_proxy.heal()

    assert "" == worker.push(7, "b", unless="busy").dropped


def test_an_error_of_redis_is_raised(make_app: MakeApp, fault_proxy: FaultProxy, queue_name: str) -> None:
    """Not taken for a conflict. Peer: support/shared_examples/enqueuing.rb, "raises a RedisClient::ConnectionError"."""
    worker = declare(make_app(redis_url=fault_proxy.url), queue_name, Notes())
    worker.push(7)
    fault_proxy.refuse()
    fault_proxy.cut()

    with pytest.raises(BackendError):
        worker.push(7, unless="waiting", on_conflict="raise")


def test_a_conflict_raises_if_it_is_to(case: Case) -> None:
    """Peer: support/shared_examples/enqueuing.rb, "when on_conflict: :raise given"."""
    case.push("old")

    with pytest.raises(Conflict, match="The job '7' was dropped"):
        case.push(unless="waiting", on_conflict="raise")
    assert ["old"] == case.waiting


def test_a_conflict_is_logged_by_an_observer(case: Case) -> None:
    """Peer: support/shared_examples/enqueuing.rb, "when on_conflict: :log given, logs the skipped job"."""
    watching = WatchingPushes()
    case.app.observers.append(watching)
    case.push("old")
    case.push(unless="waiting")

    assert [(case.worker.queue_name, 7, "waiting")] == watching.conflicts


def test_a_conflict_calls_a_function(case: Case) -> None:
    """Peer: support/shared_examples/enqueuing.rb, "when on_conflict: Proc given, calls the Proc"."""
    calls: list[object] = []
    case.push("old")
    case.push(unless="waiting", on_conflict=lambda job, _pushed: calls.append(job["payload"]))

    assert ["new"] == calls


def test_while_executing_every_push_is_stored(case: Case) -> None:
    """Peer: support/shared_examples/enqueuing.rb, "a strategy with non unique jobs in the queue, enqueues the job"."""
    pushed = case.while_running(case.push)
    case.app.drain()

    assert (False, ["old", "new"]) == (pushed.merged, case.ran)


def test_while_executing_nothing_stays_locked_after_a_failure(case: Case) -> None:
    """Peer: strategies/while_executing_spec.rb, "when processing has failed, does not persist the runtime lock"."""
    case.notes.then = failing("7")
    case.push("old")
    case.app.drain()
    case.notes.then = None
    case.clock.advance(60)
    case.app.drain()

    assert ["old", "old"] == case.ran


def test_while_executing_another_job_of_the_id_waits(make_app: MakeApp, queue_name: str) -> None:
    """Theirs raises in the job that comes second. Peer: strategies/while_executing_spec.rb, "when simultaneous…"."""
    apps, begun, may_end = (make_app(), make_app()), threading.Event(), threading.Event()
    runs: list[object] = []

    def handle(batch: Any) -> None:
        runs.append(batch["7"][0])
        begun.set()
        may_end.wait(20)

    workers = [declare(app, queue_name, handle) for app in apps]
    workers[0].push(7, "first")
    thread = threading.Thread(target=apps[0].drain)
    thread.start()
    eventually(begun.is_set)
    workers[1].push(7, "second")
    apps[1].drain()
    during = [*runs]
    may_end.set()
    thread.join()
    apps[1].drain()

    assert (["first"], ["first", "second"]) == (during, runs)


def test_tests_see_every_push(app: Lowkiq, queue_name: str) -> None:
    """Without a server nothing is dropped. Peer: test_mode_spec.rb, "doesn't lock in test mode"."""
    worker = declare(app, queue_name, Notes())
    with fake_app(app) as fake:
        pushed = [worker.push(7, payload, unless="busy").dropped for payload in "ab"]
        fake.assert_pushed(worker, count=2)

    assert ["", ""] == pushed


def test_pushes_are_dropped_after_the_test(app: Lowkiq, queue_name: str) -> None:
    """Peer: test_mode_spec.rb, "locks after reset from test mode"."""
    worker = declare(app, queue_name, Notes())
    with fake_app(app):
        worker.push(7, unless="busy")

    assert ["", "waiting"] == [worker.push(7, unless="busy").dropped for _ in range(2)]


ENDS: dict[str, Callable[[Case], object]] = {
    "scheduled set item delete": lambda case: case.app.operate(case.worker).waiting.delete([7]),
    "queue clear": lambda case: case.app.operate(case.worker).waiting.delete(everything=True),
    "job delete": lambda case: case.app.operate(case.worker).cancel([7]),
}


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)
def test_a_deleted_job_is_no_conflict(case: Case, end: Callable[[Case], object]) -> None:
    """Peer: sidekiq_patch_spec.rb, "scheduled set item delete", "queue clear", "job delete", releases the lock."""
    case.push("old", delay=60)
    end(case)

    assert "" == case.push(unless="busy").dropped


def test_a_dead_job_is_no_conflict(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """Peer: sidekiq_patch_spec.rb, "job death", releases the lock."""
    case = Case(app, clock, queue_name, max_retry_count=0)
    case.notes.then = raising()
    case.push("old")
    for _ in range(2):
        app.drain()

    assert ("", 1) == (case.push(unless="busy").dropped, app.operate(case.worker).morgue.count())
