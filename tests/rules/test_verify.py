"""The verification by journals: a sound queue has no violation, and each seeded fault has one (P1, P2, P3, P4)."""

import math
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from hashlib import sha1
from random import Random
from typing import Any

import msgspec
import pytest

from lowkiq_lambda import Batch, BatchJob, Later, Lowkiq, LowkiqError, Rejected, Worker, discard_on, kill_on
from lowkiq_lambda.operate.inspect import journal
from lowkiq_lambda.operate.verify import verifier
from lowkiq_lambda.operate.verify.duty import VerifyDuty
from lowkiq_lambda.operate.verify.rules import violations
from lowkiq_lambda.store.shard import backend
from lowkiq_lambda.store.shard.scripts import Script, script
from lowkiq_lambda.testing import ManualClock
from lowkiq_lambda.views.journal import JournalEntry
from tests.kit.apps import MakeApp
from tests.kit.beside import TIMEOUT, move_until, wait_for
from tests.kit.deaths import Mortal, outlive
from tests.kit.handlers import Notes
from tests.kit.iterating import Items, declare_items
from tests.kit.workers import declare

IDS = ["a", "b", "c"]
MUTANTS: dict[str, tuple[str, str, str]] = {
    "put: of two equal payloads the wrong one stays": (
        "account",
        "local entry, at = kept .. payload, #entries",
        "local entry, at = (gone or kept) .. payload, #entries",
    ),
    "put: a third payload is not stored": (
        "account",
        "  table.insert(entries, at + 1, entry)\n",
        "  if at < 2 then table.insert(entries, at + 1, entry) end\n",
    ),
    "put: a second payload replaces the first": (
        "account",
        "  table.insert(entries, at + 1, entry)\n",
        "  entries[1] = entry\n",
    ),
    "claim: what is claimed waits on": (
        "delivery",
        "if all then call('DEL', jobs) else call('HDEL', jobs, unpack(ids)) end",
        "",
    ),
    "claim: the second payload comes first": (
        "order",
        "chunk[#chunk + 1], size = entry, size + #entry",
        "table.insert(chunk, 1, entry)",
    ),
    "outcomes: what was delivered loses its newer payloads": (
        "account",
        "record_of(entries, UNTOUCHED)\n  if waits_alone",
        "record_of({entries[1]}, UNTOUCHED)\n  if waits_alone",
    ),
    "outcomes: the newest payload dies first": (
        "order",
        "oldest = table.remove(entries, 1)",
        "oldest = table.remove(entries)",
    ),
    "outcomes: what is done stays in flight": (
        "account",
        "    call('DEL', flight)\n    call('HINCRBY', meta, 'done', left)",
        "    call('HINCRBY', meta, 'done', left)",
    ),
    "outcomes: of what is not marked one payload stays": (
        "account",
        "flight_record(due_at, retry_count, left))\n",
        "flight_record(due_at, retry_count, {left[1]}))\n",
    ),
    "outcomes: what is marked stays": (
        "delivery",
        "flight_record(due_at, retry_count, left))\n",
        "flight_record(due_at, retry_count, entries))\n",
    ),
    "recovery: every other id is lost": (
        "account",
        "for i = 1, #left, 2 do ids[#ids + 1] = left[i] end",
        "for i = 1, #left, 4 do ids[#ids + 1] = left[i] end",
    ),
    "acquire: tokens go back": (
        "tokens",
        "math.max(tonumber(last_token or 0) + 1, math.floor(now * 1000000))",
        "2 ^ 52 - math.floor(now * 1000)",
    ),
    "requeue: it stays in the morgue as well": (
        "account",
        "  forget(id, members_of(id, old))\n  if not progress",
        "  if not progress",
    ),
    "delete: nothing is deleted of several": (
        "account",
        "    forget_waiting(id)\n  else\n    call('HSET', jobs, id, left)\n",
        "  else\n    call('HSET', jobs, id, left)\n",
    ),
}
"""By what is wrong: the rule that does not hold any more, and a text of the scripts with what it is replaced by."""


def scripts_with(old: str, new: str) -> Callable[..., Script]:
    """The scripts of the engine that is broken so."""

    @cache
    def change(name: str, groups: tuple[str, ...] = ()) -> Script:
        source = script(name, groups).source.replace(old, new)
        sha = sha1(source.encode(), usedforsecurity=False).hexdigest()
        return msgspec.structs.replace(script(name, groups), source=source, sha=sha)

    return change


def live(app: Lowkiq, clock: ManualClock, worker: type[Worker], mortal: Mortal, rng: Random) -> None:
    """Some days in the life of a queue: pushes, drains that die or not, and what operators do."""
    queue = app.operate(worker)
    for _ in range(40):
        worker.push_many(
            [
                {"id": rng.choice(IDS), "payload": rng.randrange(6), "score": rng.randrange(4)}
                for _ in range(rng.randrange(5))
            ]
        )
        step = rng.randrange(12)
        if step < 5:
            app.drain()
        elif step < 8:
            mortal.die_before(rng.choice(["settle", "start", "acquire"]))
            mortal.drain()
            outlive(app, clock, worker)
        elif step == 8:
            queue.waiting.kill(IDS)
        elif step == 9:
            queue.morgue.requeue(IDS)
        elif step == 10:
            queue.waiting.delete([rng.choice(IDS)])
        else:
            queue.morgue.delete([rng.choice(IDS)])
        clock.advance(rng.choice([0.5, 20.0]))


def disturbed(rng: Random) -> Notes:
    """A handler that fails at random, in each of the ways that there are."""

    def handle(batch: Batch) -> None:
        fate = rng.randrange(5)
        for job_id, payloads in batch.items():
            for position in range(rng.randrange(len(payloads) + 1)):
                batch.done(job_id, payload=position)
            if fate == 1:
                batch.fail(job_id, Rejected("not qualified"), payload=rng.randrange(len(payloads)))
                batch.fail(job_id, "failed")
            elif fate == 2 and rng.randrange(2):
                batch.fail(job_id, Rejected("not qualified"))
        if fate == 0:
            raise ValueError("broken")

    return Notes(handle)


@pytest.mark.parametrize("merge", ["min", "max", "never"])
@pytest.mark.parametrize("seed", range(3))
def test_a_sound_queue_has_no_violation(
    app: Lowkiq, clock: ManualClock, queue_name: str, merge: str, seed: int
) -> None:
    """P1, P2, P3, P4: whatever happens to it, all is told and nothing contradicts itself."""
    rng, mortal = Random(seed), Mortal(app)
    worker = declare(app, queue_name, disturbed(rng), merge=merge, batch_size=2, max_retry_count=1)
    app.operate(worker).journal("all", seconds=86_400)
    live(app, clock, worker, mortal, rng)

    report = app.operate(worker).verify()
    assert [] == [*map(str, report.violations)]
    assert report.events > 30
    assert report.since is not None


@pytest.mark.parametrize("merge", ["min", "latest", "never"])
@pytest.mark.parametrize("seed", range(2))
def test_housekeeping_finds_nothing_in_a_sound_queue(  # noqa: PLR0913, PLR0917 - fixtures and cases
    make_app: MakeApp, clock: ManualClock, queue_name: str, monkeypatch: pytest.MonkeyPatch, merge: str, seed: int
) -> None:
    """P1, P2, P3, P4: its recordings begin and end amid visits and deaths, and are judged wherever they stand."""
    app, verdicts, advance = make_app(verify=1.0), list[dict[str, int]](), clock.advance
    rng, mortal = Random(seed), Mortal(app)
    worker = declare(app, queue_name, disturbed(rng), merge=merge, batch_size=2, max_retry_count=1)
    duty = VerifyDuty(app.core, Random(seed))

    def advance_and_verify(seconds: float) -> None:
        minute = clock.time() // 60
        advance(seconds)
        if clock.time() // 60 > minute:
            verdicts.append(duty.run(lambda: math.inf))

    monkeypatch.setattr(clock, "advance", advance_and_verify)
    for _ in range(2):
        live(app, clock, worker, mortal, rng)

    seen = app.operate(worker).verified()
    assert seen is not None
    assert (0, (), ()) == (seen.found, seen.violations, seen.deleted)
    assert 30 < sum(verdict["payloads"] for verdict in verdicts)
    assert 2 < sum(verdict["judged"] for verdict in verdicts)


@pytest.mark.parametrize("mutant", MUTANTS)
def test_each_seeded_fault_is_found(
    app: Lowkiq, clock: ManualClock, queue_name: str, monkeypatch: pytest.MonkeyPatch, mutant: str
) -> None:
    """P1, P2, P3, P4: an engine that is broken in one line shows a violation of the rule that the line serves."""
    rule, old, new = MUTANTS[mutant]
    monkeypatch.setitem(vars(backend), "script", scripts_with(old, new))
    found = set[str]()
    for seed in range(8):
        rng, mortal = Random(seed), Mortal(app)
        worker = declare(app, f"{queue_name}{seed}", disturbed(rng), batch_size=2, max_retry_count=1)
        app.operate(worker).journal("all", seconds=86_400)
        with suppress(LowkiqError):
            live(app, clock, worker, mortal, rng)
        found |= {violation.rule for violation in app.operate(worker).verify().violations}
        if rule in found:
            break

    assert rule in found


def before_the_places(monkeypatch: pytest.MonkeyPatch, happens: Callable[[], object]) -> None:
    """When a verification has read the journals, and not yet what the shards have, this happens."""

    def read_places(*arguments: Any) -> Any:
        happens()
        return journal.read_places(*arguments)

    monkeypatch.setattr(verifier, "read_places", read_places)


def test_what_is_pushed_while_a_verification_reads_is_no_violation(
    app: Lowkiq, queue_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The shard has a payload then of which the journal that was read says nothing: a newer one does."""
    worker = declare(app, queue_name, Notes())
    app.operate(worker).journal("all")
    worker.push("a", 1)
    before_the_places(monkeypatch, lambda: worker.push("a", 2))

    assert [] == [*map(str, app.operate(worker).verify().violations)]


def test_what_ends_while_a_verification_reads_is_no_violation(
    app: Lowkiq, queue_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The journal that was read has it in flight, and what tells of its success names nobody."""
    runs, may_end = threading.Event(), threading.Event()

    def handle(_batch: Batch) -> None:
        runs.set()
        wait_for(may_end)

    worker = declare(app, queue_name, Notes(handle))
    app.operate(worker).journal("all")
    worker.push("a")
    drain = threading.Thread(target=app.drain, daemon=True)
    drain.start()
    wait_for(runs)

    def end() -> None:
        may_end.set()
        drain.join(TIMEOUT)

    before_the_places(monkeypatch, end)

    assert [] == [*map(str, app.operate(worker).verify().violations)]
    assert not drain.is_alive()


@pytest.mark.parametrize("is_exit", [False, True])
def test_what_was_replaced_in_flight_has_an_outcome(app: Lowkiq, queue_name: str, *, is_exit: bool) -> None:
    """merge="latest": a newer payload comes while its id runs, which fails or is given back: that is sound."""

    def handle(batch: Batch) -> None:
        if batch["a"] == [1]:
            worker.push_many([{"id": "a", "payload": 2, "score": 2}])
            raise SystemExit if is_exit else ValueError("broken")

    worker = declare(app, queue_name, Notes(handle), merge="latest")
    app.operate(worker).journal("all", seconds=86_400)
    worker.push_many([{"id": "a", "payload": 1, "score": 1}])
    with suppress(SystemExit, LowkiqError):
        app.drain()

    kinds = {event.kind for event in app.operate(worker).biography("a").events}
    assert {"superseded", "returned" if is_exit else "retried"} <= kinds
    assert [] == [*map(str, app.operate(worker).verify().violations)]


def test_a_recording_may_begin_amid_a_visit(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """What was in flight before has an outcome under a token of which later claims are known, and that is sound."""
    ended = threading.Event()

    def handle(batch: Batch) -> None:
        if "slow" not in batch:
            ended.set()
            return
        app.operate(worker).journal("all", seconds=86_400)
        worker.push_many([{"id": "fast"}])
        move_until(clock, ended.is_set)

    worker = declare(app, queue_name, Notes(handle), concurrency=2)
    worker.push_many([{"id": "slow"}])
    assert {"done": 2} == app.drain()

    assert [] == [*map(str, app.operate(worker).verify().violations)]


def test_what_is_pushed_to_a_started_job_is_no_part_of_it(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """It goes on with what it was handed, though what came since has its place between that."""

    def break_once(_job: BatchJob, item: int) -> None:
        if item == 1 and len(items.runs) == 1:
            worker.push_many([{"id": "a", "payload": "between", "score": 2}])
            raise ValueError("broken")

    items = Items(2, break_once)
    worker = declare_items(app, queue_name, items)
    app.operate(worker).journal("all", seconds=86_400)
    worker.push_many([{"id": "a", "payload": score, "score": score} for score in (1, 3)])
    app.drain()
    clock.advance(60.0)
    app.drain()

    assert [(None, [1, 3]), (1, [1, 3]), (None, ["between"])] == [(run.cursor, run.payloads) for run in items.runs]
    assert [] == [*map(str, app.operate(worker).verify().violations)]


def test_only_what_was_there_before_a_recording_may_come_from_nowhere() -> None:
    """What is claimed without a push may have been pushed before; by its arrival it was not where it came since."""

    def claimed(arrival: int) -> JournalEntry:
        items: list[list[object]] = [["a", 0.0, arrival, 0.0, arrival, 1, 0]]
        return JournalEntry(
            number=1, kind="claimed", at=0.0, token=b"7", call="1", items=items, shard=0, shards_count=1
        )

    assert [] == violations([claimed(10)], known_from=10.0)
    assert ["delivery"] == [one.rule for one in violations([claimed(11)], known_from=10.0)]


def test_an_outcome_too_many_is_found_in_a_recording_that_began_amid_a_visit() -> None:
    """Of what was in flight before, each id has one outcome; what was claimed since has one for each claim."""

    def entry(number: int, kind: str, items: list[list[object]]) -> JournalEntry:
        return JournalEntry(
            number=number, kind=kind, at=0.0, token=b"7", call=str(number), items=items, shard=0, shards_count=1
        )

    claim: list[list[object]] = [["new", 0.0, 11, 0.0, 11, 1, 0]]
    entries = [
        entry(1, "pushed", [["new", 0.0, 11]]),
        entry(2, "claimed", claim),
        entry(3, "done", [["old"]]),
        entry(4, "done", [["new"]]),
        entry(5, "done", [["old"]]),
        entry(6, "done", [["new"]]),
    ]

    found = [(one.id, one.number) for one in violations(entries, known_from=10.0)]
    assert [("old", 5), ("new", 6)] == found
    assert ("old", 3) in [(one.id, one.number) for one in violations(entries)]


def test_e93_the_verification_goes_on_over_a_move(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """E-93: journals of shards that are left are read with those of the new ones, and what was moved is there."""
    worker = declare(app, queue_name, Notes(), shards_count=2)
    app.operate(worker).journal("all")
    jobs = [{"id": number % 20, "payload": number} for number in range(60)]
    worker.push_many(jobs[:30])
    app.drain()
    worker.push_many([{**job, "due_at": clock.time() + 5} for job in jobs[30:45]])
    app.operate(worker).reshard(to=3)
    worker.push_many(jobs[45:])
    clock.advance(10)
    app.drain()

    report = app.operate(worker).verify()
    assert [] == [*map(str, report.violations)]
    assert 5 == report.shards
    life = app.operate(worker).biography(0)
    assert [2, 3] == [*dict.fromkeys(event.shards_count for event in life.events)]
    assert "gone" == life.now


@pytest.mark.parametrize("error", [ValueError("bug"), Later(1)], ids=["retried", "put off"])
def test_an_equal_payload_that_replaces_the_one_in_flight_is_sound(
    app: Lowkiq, queue_name: str, error: Exception
) -> None:
    """P4: it was pushed with a smaller score while the id ran, so it stands for the one that goes back."""

    def perform(_batch: Batch) -> None:
        worker.push_many([{"id": "a", "payload": "v", "score": 1}])
        raise error

    worker = declare(app, queue_name, perform)
    app.operate(worker).journal("all", seconds=600)
    worker.push_many([{"id": "a", "payload": "v", "score": 5}])
    app.drain()

    assert "joined" in [event.kind for event in app.operate(worker).biography("a").events]
    assert [] == app.operate(worker).verify().violations


def test_rules_and_kept_rejections_are_sound(app: Lowkiq, queue_name: str) -> None:
    """P4: of several payloads the oldest is killed or dropped, all are, or some are kept."""
    rules = (kill_on(KeyError), discard_on(IndexError), discard_on(TypeError, all=True))
    errors = {"a": KeyError(), "b": IndexError(), "c": TypeError(), "d": Rejected("no", keep=True)}

    def perform(batch: Batch) -> None:
        for job_id, payloads in batch.items():
            if job_id == "e":
                batch.fail(job_id, Rejected("no", keep=True), payload=1)
            elif payloads[0] == 0:
                batch.fail(job_id, errors[job_id])

    worker = declare(app, queue_name, perform, on_error=rules, batch_size=5)
    app.operate(worker).journal("all", seconds=600)
    worker.push_many([{"id": job_id, "payload": n, "score": n} for job_id in "abcde" for n in range(3)])
    app.drain()

    report = app.operate(worker).verify()
    assert ([], 5) == (report.violations, report.ids)
