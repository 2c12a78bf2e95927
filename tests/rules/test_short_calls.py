"""No script keeps the server long: what a call may carry goes by what it costs, shown by the worst cases.

Times differ between machines, so the bound is of commands: one inside a script, with the Lua around it, takes some 2 µs
on the machine of docs/benchmarks.md, and so 3,500 of them less than 10 ms.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from itertools import count
from typing import Any, Final

import pytest

from lowkiq_lambda import Batch, Config, Lowkiq, Rate
from lowkiq_lambda.base.errors import BackendUnavailable
from lowkiq_lambda.engine.outcomes import MOST_NAMED
from lowkiq_lambda.testing import ManualClock
from tests.kit.deaths import Mortal, outlive
from tests.kit.examples import mostly_nightly
from tests.kit.handlers import Broken, Notes
from tests.kit.servers import Server
from tests.kit.servers.monitor import Monitor
from tests.kit.workers import declare

MANY: Final = 1_000
MOST_COMMANDS: Final = 3_500
MOST_DEAR: Final = 150
"""Jobs of a call that move payloads to the box."""


def most_commands(monitor: Monitor) -> int:
    """The most commands of one script."""
    most = commands = 0
    for asked in monitor.heard():
        commands = commands + 1 if asked.by_script else 0
        most = max(most, commands)
    return most


def fail_all(batch: Batch) -> None:
    """Each by its own fault."""
    for job_id in list(batch):
        batch.fail(job_id, "broken")


def break_off(_batch: Batch) -> None:
    """All at once, and no id is named."""
    raise Broken("all of them")


WORST: Final[dict[str, tuple[dict[str, Any], Callable[[Batch], object] | None, Callable[[int], dict[str, Any]]]]] = {
    "ids that fail for good": ({"max_retry_count": 0}, fail_all, lambda n: {"id": n}),
    "ids that fail": ({"max_retry_count": 9}, fail_all, lambda n: {"id": n}),
    "ids that fail in company": ({}, break_off, lambda n: {"id": n}),
    "payloads of a hot id": ({}, None, lambda n: {"id": "hot", "payload": n}),
    "payloads of a hot id that are kept": ({"merge": "never"}, None, lambda n: {"id": "hot", "payload": n}),
    "tenants": ({"tenants": "spread"}, None, lambda n: {"id": f"tenant {n}:order"}),
    "tenants with a rate": (
        {"tenants": "home", "tenant_rate": Rate(9, per=60)},
        None,
        lambda n: {"id": f"tenant {n}:order"},
    ),
}


@pytest.mark.parametrize("worst", WORST)
def test_no_script_runs_thousands_of_commands(
    own_server: Server, clock: ManualClock, queue_name: str, worst: str
) -> None:
    """A thousand of each are pushed in one call, drained, and tried again."""
    fields, handler, job = WORST[worst]
    app = Lowkiq(Config(redis_url=own_server.url), clock=clock)
    worker = declare(app, queue_name, handler or Notes(), shards_count=1, batch_size=MANY, **fields)

    with Monitor(own_server) as monitor:
        worker.push_many([job(number) for number in range(MANY)])
        app.drain()
        clock.advance(3_600.0)
        app.drain()
        commands = most_commands(monitor)

    assert commands <= MOST_COMMANDS


@pytest.mark.parametrize("waiting", [1, 2, 10])
@pytest.mark.parametrize("fields", [{"on_conflict": "replace"}, {"unless": "busy"}])
def test_ids_with_work_keep_no_server_long(
    own_server: Server, clock: ManualClock, queue_name: str, fields: dict[str, Any], waiting: int
) -> None:
    """A thousand jobs of a call that replace what waits, or are dropped, with payloads that expire."""
    app = Lowkiq(Config(redis_url=own_server.url), clock=clock)
    worker = declare(app, queue_name, Notes(), shards_count=1, merge="never")
    for payload in range(waiting):
        worker.push_many([{"id": number, "payload": payload, "expires_in": 60.0} for number in range(MANY)])

    with Monitor(own_server) as monitor:
        pushed = worker.push_many([{"id": number, "payload": "new", **fields} for number in range(MANY)])
        commands = most_commands(monitor)

    assert commands <= MOST_COMMANDS
    dropped = "waiting" if "unless" in fields else ""
    assert {dropped} == {one.dropped for one in pushed}
    jobs = app.operate(worker).waiting.list(limit=10)
    assert {1 if not dropped else waiting} == {len(job.payloads) for job in jobs}


def test_ids_whose_records_overflow_at_once_keep_no_server_long(
    own_server: Server, clock: ManualClock, queue_name: str
) -> None:
    """The ninth payload of an id takes all of them to the box; that of a thousand ids at once goes in several calls."""
    app, notes = Lowkiq(Config(redis_url=own_server.url), clock=clock), Notes()
    worker = declare(app, queue_name, notes, shards_count=1)

    with Monitor(own_server) as monitor:
        for payload in range(9):
            worker.push_many([{"id": number, "payload": payload} for number in range(MANY)])
        app.drain()
        commands = most_commands(monitor)

    assert commands <= MOST_COMMANDS
    performed: dict[str, list[object]] = defaultdict(list)
    for batch in notes.batches:
        for job_id, payloads in batch.items():
            performed[job_id] += payloads
    assert {str(number): list(range(9)) for number in range(MANY)} == performed


@pytest.mark.parametrize(
    "fields", [{}, {"tenants": "spread"}, {"merge": "never"}], ids=["plain", "tenants", "merged never"]
)
@pytest.mark.parametrize("how", ["died", "evicted"])
def test_recovery_of_a_full_batch_keeps_no_server_long(
    own_server: Server, clock: ManualClock, queue_name: str, fields: dict[str, Any], how: str
) -> None:
    """The next holder takes back a thousand ids, of which all have got another payload since."""
    app, notes = Lowkiq(Config(redis_url=own_server.url), clock=clock), Notes()
    worker = declare(app, queue_name, notes, shards_count=1, batch_size=MANY, **fields)
    jobs = [{"id": f"tenant {number % 9}:{number}"} for number in range(MANY)]
    worker.push_many([job | {"payload": 1} for job in jobs])
    mortal = Mortal(app)
    mortal.die_before("settle")
    mortal.drain()
    notes.batches.clear()
    worker.push_many([job | {"payload": 2} for job in jobs[::2]])

    with Monitor(own_server) as monitor:
        if how == "evicted":
            app.operate(worker).in_flight.evict(everything=True)
        outlive(app, clock, worker)
        app.drain()
        commands = most_commands(monitor)

    assert commands <= MOST_COMMANDS
    performed = [(job_id, payloads) for batch in notes.batches for job_id, payloads in batch.items()]
    assert sorted((job["id"], [1] if index % 2 else [1, 2]) for index, job in enumerate(jobs)) == sorted(performed)


def test_a_push_goes_in_calls_by_what_joining_costs(app: Lowkiq, queue_name: str) -> None:
    """1,500 new jobs are one call; those that join them are refused, and go by 1,000; none is lost or out of order."""
    notes = Notes()
    worker = declare(app, queue_name, notes, shards_count=1)
    sizes: list[list[int]] = []
    run_each = app.core.backend.run_each

    def note_sizes(calls: Sequence[Any]) -> Any:
        sizes.append([len(args) // 2 for name, _, args in calls if name == "enqueue"])
        return run_each(calls)

    app.core.backend.run_each = note_sizes  # type: ignore[method-assign]  # it is watched
    for payload in (1, 2):
        worker.push_many([{"id": number, "payload": payload} for number in range(1_500)])
    app.drain()

    assert [[1_502], [1_502], [1_002], [502]] == [each for each in sizes if each]
    assert {str(number): [1, 2] for number in range(1_500)} == {k: v for each in notes.batches for k, v in each.items()}


@pytest.mark.parametrize("calls", mostly_nightly([1, 2, 5], 2))
def test_p2_outcomes_that_go_in_several_calls_are_written_or_recovered(
    own_server: Server, clock: ManualClock, queue_name: str, calls: int
) -> None:
    """P2: a holder that dies between two of the calls has written the first ones; the next holder has the others."""
    app = Lowkiq(Config(redis_url=own_server.url), clock=clock)
    worker = declare(app, queue_name, fail_all, shards_count=1, batch_size=MANY, max_retry_count=0)
    worker.push_many([{"id": number} for number in range(MANY)])
    mortal, left = Mortal(app), count(1)
    mortal.dies_before = lambda name: name == "settle" and next(left) == calls

    mortal.drain()
    written = app.operate.stats()["total"]["morgue_length"]
    for _ in range(3):
        outlive(app, clock, worker)
        app.drain()

    assert (calls - 1) * MOST_NAMED == written
    assert (MANY, 0) == (app.operate.stats()["total"]["morgue_length"], app.operate.stats()["total"]["length"])


@pytest.mark.parametrize("lost", [2, 3, 5])
@pytest.mark.parametrize("is_written", [True, False])
def test_p2_p3_parts_of_a_dear_push_are_written_once_and_in_order(
    own_server: Server, clock: ManualClock, queue_name: str, lost: int, *, is_written: bool
) -> None:
    """P2, P3: the call of a part gets no answer, written or not: no later part passes it, and none is applied twice."""
    app, notes, turns = Lowkiq(Config(redis_url=own_server.url), clock=clock), Notes(), count(1)
    worker = declare(app, queue_name, notes, shards_count=1, merge="never")
    app.core.queues.agreed(worker)
    backend = app.core.backend
    run_each = backend.run_each

    def run_or_lose(calls: Sequence[Any]) -> Any:
        if next(turns) != lost:
            return run_each(calls)
        if is_written:
            run_each(calls)
        return [BackendUnavailable("no answer") for _ in calls]

    backend.run_each = run_or_lose  # type: ignore[method-assign]  # that is the fault

    pushed = worker.push_many([{"id": "hot", "payload": number} for number in range(MANY)])
    app.drain()

    assert [False] + [True] * (MANY - 1) == [one.merged for one in pushed]
    assert list(range(MANY)) == [payload for batch in notes.batches for payload in batch["hot"]]
    assert next(turns) > MANY // MOST_DEAR
