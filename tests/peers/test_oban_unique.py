"""Oban 2.23.0: the cases of its unique jobs, in terms of `unless`, `on_conflict` and `key`."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from lowkiq_lambda import DeclarationError, Lowkiq, Unique
from lowkiq_lambda.testing import ManualClock
from tests.kit.apps import MakeApp
from tests.kit.handlers import Notes
from tests.kit.unique import Case
from tests.kit.workers import declare


@pytest.fixture
def case(app: Lowkiq, clock: ManualClock, queue_name: str) -> Case:
    """An id of its own queue."""
    return Case(app, clock, queue_name)


def test_a_second_insert_is_a_conflict(case: Case) -> None:
    """Peer: test/oban/engine_test.exs, "inserting a job with uniqueness applied"."""
    assert ["", "waiting"] == [case.push(payload, unless="busy").dropped for payload in "ab"]


def test_one_of_many_processes_inserts_the_job(make_app: MakeApp, queue_name: str) -> None:
    """Peer: test/oban/engine_test.exs, "preventing duplicate jobs between processes"."""
    workers = [declare(make_app(), queue_name, Notes()) for _ in range(4)]
    with ThreadPoolExecutor(4) as pool:
        pushed = [*pool.map(lambda number: workers[number % 4].push(1, number, unless="busy"), range(40))]

    assert 39 == sum(one.dropped == "waiting" for one in pushed)


def test_a_queue_is_a_scope(app: Lowkiq, queue_name: str) -> None:
    """Peer: test/oban/engine_test.exs, "scoping uniqueness to specific fields"."""
    first, second = (declare(app, f"{queue_name}-{n}", Notes()) for n in range(2))

    assert ["", "", "waiting"] == [worker.push(1, unless="busy").dropped for worker in (first, second, first)]


def test_the_id_is_the_scope_and_not_the_payload(case: Case) -> None:
    """Peer: test/oban/engine_test.exs, "scoping uniqueness to specific argument keys"."""
    jobs = [{"id": id_, "payload": {"id": id_, "xd": xd}, "unless": "busy"} for id_, xd in ((1, 1), (2, 2), (1, 3))]

    assert ["", "", "waiting"] == [one.dropped for one in case.worker.push_many(jobs)]


def test_all_arguments_are_the_scope_of_a_merge(case: Case) -> None:
    """Equal payloads merge. Peer: test/oban/engine_test.exs, "considering all args to establish uniqueness"."""
    for payload in ({"a": 1, "b": 2}, {"b": 2, "a": 1}, {"a": 1}):
        case.push(payload)

    assert [{"a": 1, "b": 2}, {"a": 1}] == case.waiting


@pytest.mark.parametrize(("unless", "reason"), [("waiting", ""), ("busy", "running")])
def test_states_are_a_scope(case: Case, unless: str, reason: str) -> None:
    """Peer: test/oban/engine_test.exs, "scoping uniqueness by state"."""
    assert reason == case.while_running(lambda: case.push(unless=unless)).dropped


def test_a_period_is_the_time_of_a_key(case: Case) -> None:
    """Peer: test/oban/engine_test.exs, "scoping uniqueness by period"."""
    case.push("old", key="k", key_ttl=300)
    case.app.drain()
    case.clock.advance(200)
    within = case.push("new", key="k").repeated
    case.clock.advance(101)

    assert [True, False] == [within, case.push("new", key="k").repeated]


def test_a_conflict_replaces_what_is_inserted(case: Case) -> None:
    """Ours replaces the payload, and never the time. Peer: test/oban/engine_test.exs, "replacing fields on unique…"."""
    first = case.push("old", delay=60)
    pushed = case.push("new", on_conflict="replace", delay=5)

    assert (["new"], first.due_at) == (case.waiting, pushed.due_at)


def test_a_conflict_replaces_nothing_that_runs(case: Case) -> None:
    """Peer: test/oban/engine_test.exs, "replacing fields based on job state"."""
    pushed = case.while_running(lambda: case.push("new", unless="busy", on_conflict="replace"))
    case.app.drain()

    assert (False, ["old", "new"]) == (pushed.merged, case.ran)


def test_jobs_of_one_call_meet_each_other(case: Case) -> None:
    """Peer: test/oban/engine_test.exs, "inserting unique jobs within a multi transaction"."""
    pushed = case.worker.push_many([{"id": id_, "payload": n, "unless": "busy"} for n, id_ in enumerate((1, 2, 1))])

    assert ["", "", "waiting"] == [one.dropped for one in pushed]


def test_a_push_adds_to_what_its_worker_says(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """Peer: test/oban/job_test.exs, "merging custom options with the unique defaults"."""
    case = Case(app, clock, queue_name, unique=Unique("busy"))
    during = case.while_running(lambda: case.push(unless="waiting"))

    assert ["", "", "waiting"] == [one.dropped for one in (during, case.push(), case.push())]


def test_options_are_validated(app: Lowkiq, queue_name: str) -> None:
    """Peer: test/oban/worker_test.exs, "validating the unique options provided to __using__"."""
    with pytest.raises(DeclarationError, match="must be a Unique"):
        declare(app, queue_name, Notes(), unique={"unless": "busy"})


def test_a_worker_may_say_nothing(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """Peer: test/oban/job_test.exs, "allowing unique with nil or false"."""
    case = Case(app, clock, queue_name, unique=None)

    assert ["", ""] == [case.push(payload).dropped for payload in "ab"]
