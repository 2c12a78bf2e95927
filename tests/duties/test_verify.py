"""The duty that verifies a share of the queues' time: what it records, finds and costs (P1, P2, P3)."""

import logging
import math
from contextlib import suppress
from typing import Any

import msgspec
import pytest

from lowkiq_lambda import Batch, Lowkiq, LowkiqError, Worker
from lowkiq_lambda.aws.ticking import tasks_of
from lowkiq_lambda.declare.duty import VERIFY
from lowkiq_lambda.operate.verify.duty import LENGTH, VerifyDuty, verify_runner
from lowkiq_lambda.operate.verify.record import record_key
from lowkiq_lambda.operate.verify.verifier import FEWEST_LEFT
from lowkiq_lambda.settings.aws import Settings
from lowkiq_lambda.store.shard.keys import ShardRef
from lowkiq_lambda.testing import ManualClock
from lowkiq_lambda.views.verification import Verified
from tests.kit.apps import MakeApp
from tests.kit.handlers import Notes
from tests.kit.servers import Server
from tests.kit.workers import declare, jobs_of

CYCLE = 4
"""Minutes until a queue of one shard that is verified all the time has been recorded, and judged."""


@pytest.fixture
def app(make_app: MakeApp) -> Lowkiq:
    """Its queues are recorded for as much time as there is."""
    return make_app(verify=1.0)


def run(app: Lowkiq) -> dict[str, int]:
    """One run of the duty; what it did."""
    return VerifyDuty(app.core).run(lambda: math.inf)


def run_until_drawn(app: Lowkiq, clock: ManualClock) -> None:
    """Minute by minute, until a shard is recorded."""
    for _ in range(CYCLE):
        if run(app)["drawn"]:
            return
        clock.advance(60.0)
    pytest.fail("no shard was drawn")


def shard_of(app: Lowkiq, worker: type[Worker[Any]]) -> ShardRef:
    """The one that the queue has."""
    return app.operate(worker).reader.shards[0]


def verified(app: Lowkiq, worker: type[Worker[Any]]) -> Verified:
    """What people see."""
    seen = app.operate(worker).verified()
    assert seen is not None
    return seen


def level_of(app: Lowkiq, worker: type[Worker[Any]]) -> float:
    """For how many seconds the shard is recorded still."""
    shard = shard_of(app, worker)
    backend = app.core.backend
    return float(backend.client.hget(shard.key("meta"), "journal_until") or 0) - backend.now(shard)


def test_what_went_well_is_said_positively(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """How much was judged, and when."""
    worker = declare(app, queue_name, Notes())
    run_until_drawn(app, clock)
    worker.push_many(jobs_of("abc"))
    app.drain()
    clock.advance(60.0)
    judged = run(app)
    clock.advance(40.0)

    seen = verified(app, worker)
    assert (1, 3, 0) == (judged["judged"], judged["payloads"], judged["violations"])
    assert (3, 0, ()) == (seen.payloads, seen.found, seen.deleted)
    assert seen.says.endswith("3 payloads, no violation; last look 40 s ago")


def lose(app: Lowkiq, clock: ManualClock, queue_name: str) -> type[Worker[Any]]:
    """A queue that loses the record of a job in flight while it is recorded; the duty has not looked since."""
    worker = declare(app, queue_name, Notes())
    run_until_drawn(app, clock)
    worker.push_many(jobs_of("ab"))
    shard = shard_of(app, worker)
    app.core.backend.client.hdel(shard.key("jobs"), "a")
    app.core.backend.client.zrem(shard.key("due"), "a")
    clock.advance(60.0)
    return worker


def test_p2_a_payload_that_is_lost_is_found_by_the_next_run(
    app: Lowkiq, clock: ManualClock, queue_name: str, caplog: pytest.LogCaptureFixture
) -> None:
    """P2: behind the engine's back. The log, the record and the evidence have rule, id and entries."""
    worker = lose(app, clock, queue_name)
    with caplog.at_level(logging.CRITICAL, "lowkiq_lambda"):
        judged = run(app)

    (violation,) = verified(app, worker).violations
    (line,) = caplog.records
    backend = app.core.backend
    entries = msgspec.json.decode(backend.client.get(violation.evidence) or b"[]")
    assert (1, "account", "a") == (judged["violations"], violation.rule, violation.id)
    assert (queue_name, "account", "a") == (vars(line)["queue"], vars(line)["rule"], vars(line)["id"])
    assert [["level"], ["a", "b"]] == [
        [entries[0]["kind"]],
        [item[0] for entry in entries if entry["kind"] == "pushed" for item in entry["items"]],
    ]
    assert 29 * 86_400 < backend.client.ttl(violation.evidence) <= 30 * 86_400


def test_p2_a_job_that_is_dropped_in_flight_is_found_by_the_next_run(
    app: Lowkiq, clock: ManualClock, queue_name: str
) -> None:
    """P2: its holder has died, and the next one finds nothing to put back."""
    dropped: list[int] = []

    def handle(_batch: Batch) -> None:
        dropped.append(app.core.backend.client.delete(shard_of(app, worker).key("flight")))
        raise ValueError("broken")

    worker = declare(app, queue_name, handle)
    run_until_drawn(app, clock)
    worker.push_many(jobs_of("a"))
    app.drain()
    clock.advance(60.0)

    assert (1, [1]) == (run(app)["violations"], dropped)
    assert ["a"] == [one.id for one in verified(app, worker).violations]


def test_a_server_without_room_for_the_evidence_keeps_no_violation_secret(
    make_app: MakeApp, own_server: Server, clock: ManualClock, queue_name: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The log has it, though the run fails then, as it cannot write its record."""
    app = make_app(redis_url=own_server.url, redis_timeout=0.2, verify=1.0)
    lose(app, clock, queue_name)
    own_server.admin.config_set("maxmemory", 1)
    with caplog.at_level(logging.CRITICAL, "lowkiq_lambda"), suppress(LowkiqError):
        run(app)

    assert [(logging.CRITICAL, "")] == [(record.levelno, vars(record)["evidence"]) for record in caplog.records]


def test_a_clock_that_was_set_back_lets_it_go_on(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """What was earned by the time that was wrong is spent, and no more than that."""
    worker = declare(app, queue_name, Notes())
    run(app)
    clock.advance(-86_400.0)
    run(app)
    run_until_drawn(app, clock)
    worker.push_many(jobs_of("a"))
    clock.advance(60.0)

    assert 1 == run(app)["judged"]


def test_a_violation_stays_until_somebody_acknowledges_it(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """Days later, too; the evidence outlives that."""
    worker = lose(app, clock, queue_name)
    run(app)
    (violation,) = verified(app, worker).violations
    clock.advance(3 * 86_400.0)
    run(app)
    still, count = verified(app, worker).found, app.operate(worker).acknowledge_violations()

    assert (1, 1) == (still, count)
    assert (0, ()) == (verified(app, worker).found, verified(app, worker).violations)
    assert app.core.backend.client.exists(violation.evidence)
    assert 0 == app.operate(worker).acknowledge_violations()


@pytest.mark.parametrize("goes_on", [False, True])
def test_a_deleted_journal_is_neither_a_violation_nor_a_proof(
    app: Lowkiq, clock: ManualClock, queue_name: str, caplog: pytest.LogCaptureFixture, *, goes_on: bool
) -> None:
    """It is said to be deleted, also if the shard has written a new one since."""
    worker = declare(app, queue_name, Notes())
    run_until_drawn(app, clock)
    worker.push_many(jobs_of("abc"))
    app.core.backend.client.delete(shard_of(app, worker).key("journal"))
    if goes_on:
        app.drain()
    clock.advance(60.0)
    judged = run(app)

    seen = verified(app, worker)
    assert (0, 0) == (judged["violations"], seen.found)
    assert 0.0 == seen.share
    assert [(0, 1)] == [(one.shard, one.shards_count) for one in seen.deleted]
    assert "1 journal deleted and not verified" in seen.says
    assert ["a journal was deleted while it was recorded: the time before that cannot be verified"] == [
        record.message for record in caplog.records if record.levelno == logging.WARNING
    ]


def test_a_deleted_journal_is_told_by_a_verification_of_an_operator(app: Lowkiq, queue_name: str) -> None:
    """What `lowkiq verify` asks; a shard that has never been recorded has nothing that could be deleted."""
    worker = declare(app, queue_name, Notes())
    queue = app.operate(worker)
    before = queue.verify()
    queue.journal("all", seconds=600)
    worker.push_many(jobs_of("a"))
    whole = queue.verify()
    app.core.backend.client.delete(shard_of(app, worker).key("journal"))
    after = queue.verify()
    worker.push_many(jobs_of("b"))
    anew = queue.verify()

    assert [[], [], [0], [0]] == [report.deleted for report in (before, whole, after, anew)]
    assert (None, []) == (after.since, anew.violations)


@pytest.mark.parametrize("share", [0.01, 0.25, 1.0])
def test_no_more_than_the_share_is_recorded(
    make_app: MakeApp, clock: ManualClock, queue_name: str, share: float
) -> None:
    """Of the time of all shards, from the first run on; and most of it is."""
    app, shards = make_app(verify=share), 20
    worker = declare(app, queue_name, Notes(), shards_count=shards)
    run(app)
    recorded, minutes = 0, 60
    for _ in range(minutes):
        clock.advance(60.0)
        run(app)
        levels = [
            app.core.backend.client.hget(shard.key("meta"), "journal_until")
            for shard in app.operate(worker).reader.shards
        ]
        recorded += sum(level is not None for level in levels)

    assert 0.5 * share < recorded / (minutes * shards) <= share


def test_a_recording_ends_by_itself_if_no_run_comes(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """Its level has an end. The next run judges what it has: not against the content, which has changed since."""
    worker = declare(app, queue_name, Notes())
    run_until_drawn(app, clock)
    assert 0 < level_of(app, worker) <= LENGTH
    worker.push_many(jobs_of("ab"))
    clock.advance(3_600.0)
    worker.push_many(jobs_of("c"))
    app.drain()

    judged = run(app)
    assert (1, 2, 0) == (judged["judged"], judged["payloads"], judged["violations"])


def test_a_recording_of_an_operator_goes_on(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """The duty neither ends it nor draws such a shard."""
    worker = declare(app, queue_name, Notes())
    run_until_drawn(app, clock)
    app.operate(worker).journal("all", seconds=3_600)
    clock.advance(60.0)
    verdicts = [run(app)["drawn"]]
    for _ in range(CYCLE):
        clock.advance(60.0)
        verdicts.append(run(app)["drawn"])

    assert [0] * (CYCLE + 1) == verdicts
    assert level_of(app, worker) > 3_000


def test_what_was_cut_off_is_not_judged(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """A shard with more events than a journal keeps: the verdict is about those that are left, and says how many."""
    worker, pushes = declare(app, queue_name, Notes()), 2_300
    run_until_drawn(app, clock)
    for number in range(pushes):
        worker.push(str(number % 7), number)
    clock.advance(60.0)

    judged, seen = run(app), verified(app, worker)
    assert (0, ()) == (judged["violations"], seen.deleted)
    assert FEWEST_LEFT <= seen.payloads == seen.events < pushes


def test_a_run_without_time_judges_nothing(make_app: MakeApp, clock: ManualClock, queue_name: str) -> None:
    """Its recordings end and count with nothing, so that no run lasts for longer than a duty may."""
    app = make_app(verify=1.0)
    worker = declare(app, queue_name, Notes(), shards_count=4)
    drawn = 0
    while not drawn:
        clock.advance(60.0)
        drawn = run(app)["drawn"]
    clock.advance(60.0)
    # The first is asked for before the queue, and the second before its first shard.
    times = iter([1.0, 1.0])
    judged = VerifyDuty(app.core).run(lambda: next(times, 0.0))

    assert drawn > 1 == judged["judged"]
    assert (0, 0) == (verified(app, worker).found, len(verified(app, worker).deleted))


def test_an_app_that_does_not_ask_for_it_has_no_duty(make_app: MakeApp, queue_name: str) -> None:
    """And no key: housekeeping is as it was."""
    off, on = make_app(), make_app(verify=0.01)
    worker = declare(off, queue_name, Notes())
    declare(on, queue_name, Notes())

    assert (False, True) == (off.core.housekeeping.verifies, on.core.housekeeping.verifies)
    assert {VERIFY} == tasks_of(on, Settings()).keys() - tasks_of(off, Settings()).keys()
    assert ([], [VERIFY]) == ([duty.name for duty in off.operate.duties()], [duty.name for duty in on.operate.duties()])
    assert off.operate(worker).verified() is None
    assert not off.core.backend.client.exists(record_key(queue_name, off.core.backend.prefix))


def test_the_runner_runs_it_once_a_minute(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """Whichever process comes."""
    declare(app, queue_name, Notes())
    first = verify_runner(app.core, clock).run_due(lambda: math.inf)
    again = verify_runner(app.core, clock).run_due(lambda: math.inf)
    clock.advance(60.0)
    later = verify_runner(app.core, clock).run_due(lambda: math.inf)

    assert [[VERIFY], [], [VERIFY]] == [[*ran.results] for ran in (first, again, later)]
    assert {} == first.errors | later.errors
