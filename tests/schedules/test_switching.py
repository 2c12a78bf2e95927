"""Entries at run time: made, switched, removed and run by people, while code declares others."""

from typing import TYPE_CHECKING, Any

import pytest

from lowkiq_lambda import Config, Lowkiq
from lowkiq_lambda.base.errors import BackendUnavailable, DeclarationError, NoSuchEntry
from lowkiq_lambda.store.shard.entries import EntryStore
from lowkiq_lambda.testing import ManualClock
from tests.kit.apps import MakeApp, close_app
from tests.kit.firing import MINUTE, NOON, at_noon, fired, outcomes, records
from tests.kit.handlers import Notes
from tests.kit.servers import Server
from tests.kit.workers import declare

if TYPE_CHECKING:
    from collections.abc import Callable


def test_x24_an_entry_made_at_run_time_fires_in_every_process(
    make_app: MakeApp, clock: ManualClock, queue_name: str
) -> None:
    """X-24, X-8: the next look of any process finds it, and finds it gone when it is removed."""
    one, other = make_app(), make_app()
    workers = [declare(app, queue_name, Notes()) for app in (one, other)]
    at_noon(clock)
    one.schedules.put("poll", workers[0], every=MINUTE, id="7", payload=[1])
    clock.advance(60.0)
    assert [("poll", 60.0, "pushed")] == fired(other.schedules.tick())
    (job,) = other.operate(workers[1]).waiting.fetch(["7"])
    assert [1] == job.payloads[0].payload

    other.schedules.remove(workers[1], "poll")
    clock.advance(60.0)
    assert [] == fired(one.schedules.tick())
    with pytest.raises(NoSuchEntry):
        one.schedules.remove(workers[0], "poll")


def test_put_again_keeps_the_times_that_it_has(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """Another payload changes no time; other times count from now on."""
    worker = declare(app, queue_name, Notes())
    at_noon(clock)
    app.schedules.put("poll", worker, every=MINUTE, id="7")
    clock.advance(90.0)
    app.schedules.put("poll", worker, every=MINUTE, id="7", payload="new")
    assert [("poll", 60.0, "pushed")] == fired(app.schedules.tick())
    clock.advance(60.0)
    app.schedules.put("poll", worker, every=30.0, id="7")
    assert [] == fired(app.schedules.tick())


def test_nothing_fires_while_an_entry_is_off(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """X-8, X-9: and switched on, it fires for no time in between."""
    worker = declare(app, queue_name, Notes())
    at_noon(clock)
    app.every(MINUTE, worker, id="poll")
    app.schedules.tick()
    app.schedules.disable(worker, "poll")
    clock.advance(90.0)
    ticked = app.schedules.tick()
    assert ([], None) == (fired(ticked), ticked.next_in)
    app.schedules.enable(worker, "poll")
    assert [] == fired(app.schedules.tick())
    clock.advance(30.0)
    assert [("poll", 120.0, "pushed")] == fired(app.schedules.tick())


def test_enabling_what_is_on_loses_no_time(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """A repeat of the call changes nothing."""
    worker = declare(app, queue_name, Notes())
    at_noon(clock)
    app.every(MINUTE, worker, id="poll")
    app.schedules.tick()
    clock.advance(60.0)
    app.schedules.enable(worker, "poll")
    assert [("poll", 60.0, "pushed")] == fired(app.schedules.tick())


def test_x9_all_entries_of_a_worker_are_switched_together(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """X-9: those of code, also where no shard knows them yet, and those made at run time."""
    worker = declare(app, queue_name, Notes(), shards_count=3)
    at_noon(clock)
    app.every(MINUTE, worker, id="code")
    app.schedules.put("made", worker, every=MINUTE, id="7")
    app.schedules.disable_all(worker)
    app.schedules.tick()
    clock.advance(60.0)
    assert [] == fired(app.schedules.tick())
    assert {"code": False, "made": False} == {view.name: view.is_on for view in app.schedules.all()}
    app.schedules.enable_all(worker)
    app.schedules.tick()
    clock.advance(60.0)
    assert [("code", 120.0, "pushed"), ("made", 120.0, "pushed")] == sorted(fired(app.schedules.tick()))


def test_x9_several_entries_are_switched_together(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """X-9: those that are named, of code and made at run time; where one of them is unknown, none."""
    worker = declare(app, queue_name, Notes(), shards_count=3)
    at_noon(clock)
    app.every(MINUTE, worker, id="code")
    app.every(MINUTE, worker, id="other")
    app.schedules.put("made", worker, every=MINUTE, id="7")

    def on() -> set[str]:
        return {view.name for view in app.schedules.all() if view.is_on}

    with pytest.raises(NoSuchEntry, match="has no schedule entry 'missing'"):
        app.schedules.disable_all(worker, ["code", "missing"])
    assert {"code", "other", "made"} == on()
    app.schedules.disable_all(worker, names=["code", "made"])
    assert {"other"} == on()
    app.schedules.disable_all(worker, names=[])
    assert {"other"} == on()
    app.schedules.enable_all(worker, names=["made"])
    assert {"other", "made"} == on()


def test_x9_a_switch_of_all_reads_each_shard_once(own_server: Server, clock: ManualClock, queue_name: str) -> None:
    """X-9: a thousand entries would be read a thousand times else."""
    app = Lowkiq(Config(redis_url=own_server.url), clock=clock)
    worker = declare(app, queue_name, Notes(), shards_count=3)
    at_noon(clock)
    for number in range(20):
        app.schedules.put(str(number), worker, every=MINUTE, id=number)
    app.schedules.disable_all(worker)
    own_server.admin.config_resetstat()
    app.schedules.enable_all(worker)
    calls = own_server.admin.info("commandstats")["cmdstat_evalsha"]["calls"]
    assert 3 + 20 == calls
    assert {True} == {view.is_on for view in app.schedules.all()}
    close_app(app)


def test_x8_run_now_is_a_push_that_moves_no_planned_time(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """X-8: through the client middlewares; the history tells of it."""
    seen: list[str] = []

    def note(worker: object, jobs: Any, call_next: Any) -> Any:
        seen.append("pushed")
        return call_next(worker, jobs)

    app.client_middlewares.append(note)
    worker = declare(app, queue_name, Notes())
    at_noon(clock)
    app.every(MINUTE, worker, id="poll")
    app.schedules.tick()
    assert ("poll", False) == ((pushed := app.schedules.run("poll", worker=worker)).id, pushed.merged)
    clock.advance(60.0)
    assert [("poll", 60.0, "merged")] == fired(app.schedules.tick())
    assert ["pushed"] == seen
    assert [(0.0, "run now"), (60.0, "merged")] == outcomes(app, worker, "poll")


def test_a_note_that_fails_undoes_no_run(
    app: Lowkiq, clock: ManualClock, queue_name: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """X-8: the job has been pushed, so the caller, and the activity log, are told so; the history lacks it."""
    worker = declare(app, queue_name, Notes())
    at_noon(clock)
    app.every(MINUTE, worker, id="poll")
    app.schedules.tick()

    def fail(*_arguments: object) -> None:
        raise BackendUnavailable("is away")

    monkeypatch.setattr(EntryStore, "note_runs", fail)
    assert "poll" == app.schedules.run("poll", worker=worker).id
    assert [] == outcomes(app, worker, "poll")
    assert ["poll"] == [job.id for job in app.operate(worker).waiting.fetch(["poll"])]
    assert f"the history of Entry 'poll' of {queue_name!r} lacks that it was run now: is away" in caplog.messages


def test_a_switch_leaves_nothing_of_an_entry_that_is_being_removed(
    make_app: MakeApp, clock: ManualClock, queue_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """X-24: between the look and the switch; a new entry of the name would be off, and nobody would know why."""
    app, other = make_app(), make_app()
    worker, same = (declare(one, queue_name, Notes()) for one in (app, other))
    at_noon(clock)
    app.schedules.put("poll", worker, every=MINUTE, id="7")
    read = EntryStore.rows

    def removed_after(store: EntryStore, *arguments: Any) -> Any:
        rows = read(store, *arguments)
        monkeypatch.setattr(EntryStore, "rows", read)
        other.schedules.remove(same, "poll")
        return rows

    monkeypatch.setattr(EntryStore, "rows", removed_after)
    with pytest.raises(NoSuchEntry, match="has no schedule entry 'poll'"):
        app.schedules.disable(worker, "poll")
    assert {} == records(app, worker)


def test_an_entry_that_nobody_knows(app: Lowkiq, queue_name: str) -> None:
    """It is an error, and no record is made of it."""
    worker = declare(app, queue_name, Notes())

    def run(worker: Any, name: str) -> object:
        return app.schedules.run(name, worker=worker)

    for act in (app.schedules.enable, app.schedules.disable, app.schedules.history, run):
        with pytest.raises(NoSuchEntry, match="has no schedule entry 'none'"):
            act(worker, "none")
    assert {} == records(app, worker)


def test_code_and_run_time_share_no_name(make_app: MakeApp, clock: ManualClock, queue_name: str) -> None:
    """X-7: what code declares is not made at run time; where it was made before, that counts, and each tick says so."""
    with_entry, without = make_app(), make_app()
    workers = [declare(app, queue_name, Notes()) for app in (with_entry, without)]
    at_noon(clock)
    without.schedules.put("poll", workers[1], every=MINUTE, id="7", payload="run time")
    with_entry.every(MINUTE, workers[0], id="7", name="poll", payload="code")
    clock.advance(60.0)
    ticked = with_entry.schedules.tick()
    assert [(NOON + 60.0, "pushed")] == [(one.planned, one.outcome) for one in ticked.fired]
    assert [
        f"entry 'poll' of {queue_name!r}: it was made at run time, which counts, and code declares it too: remove one"
    ] == ticked.problems
    (job,) = without.operate(workers[1]).waiting.fetch(["7"])
    assert "run time" == job.payloads[0].payload

    without.schedules.remove(workers[1], "poll")
    assert [] == fired(with_entry.schedules.tick())
    clock.advance(60.0)
    assert [("poll", 120.0, "merged")] == fired(with_entry.schedules.tick())
    for app, worker in zip((with_entry, without), workers, strict=True):
        with pytest.raises(DeclarationError, match="Code declares the schedule entry 'poll'"):
            app.schedules.put("poll", worker, every=MINUTE, id="7")


def test_what_cannot_work_is_refused_where_it_is_made(app: Lowkiq, queue_name: str) -> None:
    """X-8: a worker of another app, a payload that is no JSON, times that no calendar has, two kinds of times."""
    worker = declare(app, queue_name, Notes())
    refused = [
        {"cron": "0 0 30 2 *"},
        {"every": MINUTE, "payload": {1, 2}},
        {"every": MINUTE, "cron": "* * * * *"},
        {},
    ]
    for options in refused:
        with pytest.raises(DeclarationError):
            app.schedules.put("poll", worker, id="7", **options)  # type: ignore[arg-type]  # what is refused
    with pytest.raises(DeclarationError, match="is not a worker of this app"):
        app.schedules.put("poll", declare(Lowkiq(), queue_name, Notes()), every=MINUTE, id="7")
    with pytest.raises(DeclarationError) as twice:
        app.schedules.put("poll", worker, every=MINUTE, id="7", name="other")  # type: ignore[call-arg]  # what is refused
    assert "The name of an entry is the first argument of put: give it no second one." == str(twice.value)
    with pytest.raises(DeclarationError) as never:
        app.schedules.put("poll", worker, cron="0 0 30 2 *", id="7")
    assert 1 == str(never.value).count("'poll'")
    assert {} == records(app, worker)


def test_what_is_no_worker_is_refused_in_a_sentence(app: Lowkiq, queue_name: str) -> None:
    """X-8: the name of a queue, a function that nobody has decorated, two arguments that changed places."""
    declare(app, queue_name, Notes())

    def perform() -> None:
        """Nobody decorated it."""

    for given, sentence in (
        (queue_name, f"{queue_name!r} is a text, not a worker: give the class or the function that @app.worker"),
        (perform, "perform is not a worker: decorate it with @app.worker."),
        (5, "5 is not a worker: give the class"),
    ):
        takers: tuple[Callable[[Any], object], ...] = (
            lambda worker: app.every(60, worker, id="poll"),
            lambda worker: app.schedules.put("poll", worker, every=60, id="poll"),
            lambda worker: app.schedules.enable(worker, "poll"),
            app.schedules.all,
            app.operate,
            app.operate.actions,
            app.operate.queries,
            lambda worker: app.push_many(worker, [{"id": 1}]),
        )
        for declaring in takers:
            with pytest.raises(DeclarationError) as refused:
                declaring(given)
            assert sentence in str(refused.value)


def test_only_code_removes_what_it_declares(app: Lowkiq, queue_name: str) -> None:
    """The error says so; it does not say that there is none."""
    worker = declare(app, queue_name, Notes())
    app.every(MINUTE, worker, id="poll")
    with pytest.raises(NoSuchEntry, match="and only code removes it; disable switches it off"):
        app.schedules.remove(worker, "poll")


def test_x25_apps_with_queues_of_their_own_share_no_entries(
    make_app: MakeApp, clock: ManualClock, queue_name: str
) -> None:
    """X-25, X-1: an entry is of a queue, so no prefix or namespace is needed."""
    apps = [make_app(), make_app()]
    at_noon(clock)
    for number, app in enumerate(apps):
        app.every(MINUTE, declare(app, f"{queue_name}-{number}", Notes()), id="poll")
        app.schedules.tick()
    clock.advance(60.0)
    assert [[("poll", 60.0, "pushed")]] * 2 == [fired(app.schedules.tick()) for app in apps]
    with pytest.raises(DeclarationError, match="has a schedule entry 'poll' already"):
        apps[0].every(MINUTE, apps[0].workers[0], id="poll")


def test_settings_say_whether_a_process_fires(make_app: MakeApp, clock: ManualClock, queue_name: str) -> None:
    """C-9: false fires nothing, whatever is declared; true also looks where no code declares anything."""
    at_noon(clock)
    fires = {}
    for schedules in (None, False, True):
        for entries in (0, 1):
            app = make_app(schedules=schedules)
            worker = declare(app, f"{queue_name}-{schedules}-{entries}", Notes())
            if entries:
                app.every(MINUTE, worker, id="poll")
            app.schedules.tick()
            fires[schedules, entries] = app.core.housekeeping.fires_schedules
    assert {(None, 1), (True, 0), (True, 1)} == {asked for asked, answer in fires.items() if answer}
    off = make_app(schedules=False)
    worker = declare(off, f"{queue_name}-None-1", Notes())
    off.every(MINUTE, worker, id="poll")
    clock.advance(60.0)
    assert [] == fired(off.schedules.tick())
    assert [] == off.operate.duties()
