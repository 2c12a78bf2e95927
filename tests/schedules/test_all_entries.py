"""Entries that are off at first, and acts on all entries of a worker."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from lowkiq_lambda import Config, Lowkiq, Unique
from lowkiq_lambda.base.errors import DeclarationError, NoSuchEntry
from lowkiq_lambda.testing import ManualClock
from tests.kit.apps import MakeApp, close_app
from tests.kit.firing import MINUTE, NOON, at_noon, fired, outcomes
from tests.kit.handlers import Notes
from tests.kit.servers import Server
from tests.kit.workers import declare


def on(app: Lowkiq) -> dict[str, tuple[bool, bool]]:
    """By entry: whether it is on, and whether somebody switched it."""
    return {view.name: (view.is_on, view.is_switched) for view in app.schedules.all()}


def test_an_entry_that_is_declared_off_fires_once_somebody_switches_it_on(
    app: Lowkiq, clock: ManualClock, queue_name: str, tmp_path: Path
) -> None:
    """In code, in a file and at run time; and for no time before the switch."""
    worker = declare(app, queue_name, Notes())
    at_noon(clock)
    app.every(MINUTE, worker, id="code", enabled=False)
    file = tmp_path / "schedules.toml"
    file.write_text(f'[file]\nworker = "{queue_name}"\nid = "file"\nevery = 60\nenabled = false\n')
    app.entries_from(file)
    app.schedules.put("made", worker, every=MINUTE, id="made", enabled=False)
    app.schedules.tick()
    clock.advance(90.0)
    assert [] == fired(app.schedules.tick())
    assert dict.fromkeys(("code", "file", "made"), (False, False)) == on(app)

    for name in ("code", "made"):
        app.schedules.enable(worker, name)
    assert [] == fired(app.schedules.tick())
    clock.advance(30.0)
    assert [("code", 120.0, "pushed"), ("made", 120.0, "pushed")] == sorted(fired(app.schedules.tick()))
    assert {"code": (True, True), "file": (False, False), "made": (True, True)} == on(app)


def test_a_switch_counts_more_than_code_from_then_on(make_app: MakeApp, clock: ManualClock, queue_name: str) -> None:
    """Whatever the next deploy or the next put declares; and a switch to what it was by declaration is one, too."""
    at_noon(clock)
    starts_off, starts_on = make_app(), make_app()
    workers = [declare(app, queue_name, Notes()) for app in (starts_off, starts_on)]
    starts_off.every(MINUTE, workers[0], id="poll", enabled=False)
    starts_on.every(MINUTE, workers[1], id="poll")
    assert {"poll": (False, False)} == on(starts_off)
    assert {"poll": (True, False)} == on(starts_on)
    starts_off.schedules.disable(workers[0], "poll")
    assert {"poll": (False, True)} == on(starts_on)
    starts_on.schedules.enable_all(workers[1])
    assert {"poll": (True, True)} == on(starts_off)
    for enabled in (False, True, False):
        starts_on.schedules.put("made", workers[1], every=MINUTE, id="7", enabled=enabled)
        assert enabled is on(starts_on)["made"][0]
    starts_on.schedules.enable(workers[1], "made")
    # Another id may lie in another shard.
    for number in range(8):
        starts_on.schedules.put("made", workers[1], every=MINUTE, id=number, enabled=False)
        assert (True, True) == on(starts_on)["made"]


def test_times_while_code_had_an_entry_off_never_fire(make_app: MakeApp, clock: ManualClock, queue_name: str) -> None:
    """A deploy that has it on again is no reason to make up for them."""
    at_noon(clock)
    fires = []
    for number, enabled in enumerate((True, False, True)):
        app = make_app()
        worker = declare(app, queue_name, Notes())
        app.every(MINUTE, worker, id="poll", enabled=enabled)
        at_noon(clock, number * 30 * MINUTE + 30.0)
        app.schedules.tick()
        clock.advance(60.0)
        fires.append([(planned / MINUTE, outcome) for _, planned, outcome in fired(app.schedules.tick())])
        close_app(app)

    assert [[(1.0, "pushed")], [], [(61.0, "merged")]] == fires


def test_all_entries_run_now_but_those_that_are_off(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """Each within its jitter, and noted in its history; one alone runs although it is off, and without a delay."""
    first, second = (declare(app, f"{queue_name}-{number}", Notes()) for number in range(2))
    at_noon(clock)
    app.every(MINUTE, first, id="code", expires_in=90.0)
    app.every(MINUTE, second, id="other")
    app.every(MINUTE, first, id="off", enabled=False)
    app.schedules.put("late", first, every=timedelta(days=1), id="late", jitter=100.0)
    app.schedules.tick()
    pushed = app.schedules.run(all=True)

    assert {"code", "other", "late"} == {one.id for one in pushed}
    due = {one.id: one.due_at - NOON for one in pushed}
    assert (0.0, 0.0) == (due["code"], due["other"])
    assert 0.0 < due["late"] < 100.0
    assert [[(0.0, "run now")]] * 2 == [outcomes(app, first, name) for name in ("code", "late")]
    assert ["code", "late"] == sorted(one.id for one in app.schedules.run(all=True, worker=first))
    assert ("off", 0.0) == ((alone := app.schedules.run("off")).id, alone.due_at - NOON)


def test_an_entry_whose_id_has_work_keeps_no_other_from_running(
    app: Lowkiq, clock: ManualClock, queue_name: str
) -> None:
    """Its worker raises for each conflict: those of other steps and workers run all the same, and are noted."""
    picky = declare(app, queue_name, Notes(), unique=Unique(on_conflict="raise"))
    other = declare(app, f"{queue_name}-other", Notes())
    at_noon(clock)
    for number in range(101):
        app.every(MINUTE, picky, id=f"{number:03}")
    app.every(MINUTE, other, id="other")
    app.schedules.tick()
    picky.push("000")
    pushed = app.schedules.run(all=True)

    assert (102, ["000"]) == (len(pushed), [one.id for one in pushed if one.dropped])
    assert 101 == app.operate(picky).waiting.count()
    assert [(0.0, "run now")] == outcomes(app, picky, "001") == outcomes(app, other, "other")


def test_a_name_alone_must_be_of_one_worker(app: Lowkiq, queue_name: str) -> None:
    """Else the error says which queues have it; a name and all at a time are refused."""
    workers = [declare(app, f"{queue_name}-{number}", Notes()) for number in range(2)]
    for worker in workers:
        app.every(MINUTE, worker, id="poll")

    with pytest.raises(NoSuchEntry, match="have a schedule entry 'poll': give its worker"):
        app.schedules.run("poll")
    with pytest.raises(NoSuchEntry, match="No queue has a schedule entry 'none'"):
        app.schedules.run("none")
    for arguments in ((), ("poll",)):
        with pytest.raises(DeclarationError, match="Give the name of an entry, or all=True"):
            app.schedules.run(*arguments, all=bool(arguments))  # type: ignore[call-overload]  # what is refused
    assert "poll" == app.schedules.run("poll", worker=workers[1]).id


def test_a_worker_may_stand_before_the_name(app: Lowkiq, queue_name: str) -> None:
    """As in the calls that switch an entry; two workers, two names or none are refused."""
    first, second = (declare(app, f"{queue_name}-{number}", Notes()) for number in range(2))
    for worker in (first, second):
        app.every(MINUTE, worker, id="poll")

    assert "poll" == app.schedules.run(second, "poll").id
    assert ["poll"] == [one.id for one in app.schedules.run(second, all=True)]
    assert (0, 1) == tuple(app.operate.metrics()[worker.queue_name].length for worker in (first, second))
    refused: list[tuple[Any, ...]] = [(first,), (first, "poll", "poll"), (first, second, "poll")]
    for arguments in refused:
        with pytest.raises(DeclarationError, match=r"Give the name of an entry, .* and at most one worker"):
            app.schedules.run(*arguments)


def test_all_entries_of_a_worker_are_removed_but_those_of_code(
    app: Lowkiq, clock: ManualClock, queue_name: str
) -> None:
    """These are named; other workers keep theirs, and a repeat removes nothing more."""
    worker, other = (declare(app, f"{queue_name}-{number}", Notes(), shards_count=3) for number in range(2))
    at_noon(clock)
    app.every(MINUTE, worker, id="code")
    for number in range(5):
        app.schedules.put(f"made-{number}", worker, every=MINUTE, id=number)
    app.schedules.put("stays", other, every=MINUTE, id="1")
    cleared = app.schedules.remove_all(worker)

    assert ([f"made-{number}" for number in range(5)], ["code"]) == cleared
    assert ["code", "stays"] == [view.name for view in app.schedules.all()]
    assert ([], ["code"]) == app.schedules.remove_all(worker)


def test_five_hundred_entries_run_at_once_in_few_round_trips(
    own_server: Server, clock: ManualClock, queue_name: str
) -> None:
    """In steps of a hundred: no script and no answer grows with the number of entries, and each has its note."""
    app = Lowkiq(Config(redis_url=own_server.url), clock=clock)
    worker = declare(app, queue_name, Notes(), shards_count=2)
    at_noon(clock)
    for number in range(500):
        app.schedules.put(f"shop-{number}", worker, cron="0 4 * * *", id=number, jitter=timedelta(minutes=10))
    own_server.admin.config_resetstat()
    pushed = app.schedules.run(all=True)
    stats = own_server.admin.info("commandstats")
    views = app.schedules.all()

    assert {str(number) for number in range(500)} == {one.id for one in pushed}
    assert 300 < len({one.due_at for one in pushed})
    assert all(0.0 <= one.due_at - NOON < 600.0 for one in pushed)
    # A look at each shard; five steps of a push in two shards, of a look at two shards, and of a hundred notes.
    assert 2 + 5 * (2 + 2) + 500 == stats["cmdstat_evalsha"]["calls"]
    assert ["run now"] * 500 == [one.history[0].outcome for one in views]
    assert 500 == len(app.schedules.remove_all(worker).removed)
    close_app(app)
