"""Deploys, clocks and faults: a planned time is never fired twice, and never for the past."""

import pytest

from lowkiq_lambda import Config, Lowkiq, Worker
from lowkiq_lambda.schedules.tick import FireDuty
from lowkiq_lambda.schedules.waves import Waves
from lowkiq_lambda.testing import ManualClock
from tests.kit.apps import MakeApp, close_app
from tests.kit.deaths import Mortal
from tests.kit.firing import MINUTE, at_noon, fired, outcomes, records
from tests.kit.handlers import Notes, failing
from tests.kit.servers import MakeServer, Server
from tests.kit.workers import declare

DAY = 86_400.0


def version(make_app: MakeApp, queue_name: str, expression: str) -> tuple[Lowkiq, type[Worker]]:
    """A process of a deploy whose entry has these times."""
    app = make_app()
    worker = declare(app, queue_name, Notes())
    app.cron(expression, worker, id="nightly")
    return app, worker


def test_two_versions_side_by_side_fire_their_own_times(make_app: MakeApp, clock: ManualClock, queue_name: str) -> None:
    """Neither resets the other, around a planned time of either: the flip-flop of two loaders."""
    at_noon(clock, -30.0)
    old, new = (version(make_app, queue_name, text)[0] for text in ("0 12 * * *", "1 12 * * *"))
    seen = []
    for _ in range(100):
        for app in (old, new):
            seen += fired(app.schedules.tick())
        clock.advance(1.0)
    assert [("nightly", 0.0, "pushed"), ("nightly", 60.0, "merged")] == seen


def test_a_deploy_while_nobody_runs_loses_no_time(make_app: MakeApp, clock: ManualClock, queue_name: str) -> None:
    """The new version of an unchanged entry, with another payload, fires what came while no process ran."""
    at_noon(clock, -30.0)
    version(make_app, queue_name, "0 12 * * *")[0].schedules.tick()
    clock.advance(600.0)
    assert [("nightly", 0.0, "pushed")] == fired(version(make_app, queue_name, "00 12 * * *")[0].schedules.tick())


def test_other_times_count_from_the_deploy_on(make_app: MakeApp, clock: ManualClock, queue_name: str) -> None:
    """A changed entry fires for no time before it was first seen."""
    at_noon(clock, -30.0)
    version(make_app, queue_name, "0 11 * * *")[0].schedules.tick()
    clock.advance(600.0)
    assert [] == fired(version(make_app, queue_name, "0 12 * * *")[0].schedules.tick())


def test_a_rollback_after_a_day_fires_nothing_of_that_day(
    make_app: MakeApp, clock: ManualClock, queue_name: str
) -> None:
    """The times that come back were replaced meanwhile, so they count anew."""
    at_noon(clock, -30.0)
    old, new = version(make_app, queue_name, "0 * * * *")[0], version(make_app, queue_name, "30 3 * * *")[0]
    old.schedules.tick()
    for _ in range(24):
        clock.advance(3_600.0)
        new.schedules.tick()
    clock.advance(60.0)
    assert [] == fired(old.schedules.tick())
    clock.advance(3_600.0)
    assert [DAY + 3_600.0] == [planned for _, planned, _ in fired(old.schedules.tick())]


def test_x7_an_entry_that_code_no_longer_has_is_forgotten_after_a_month(
    make_app: MakeApp, clock: ManualClock, queue_name: str
) -> None:
    """X-7: till then its switch is remembered; nothing else is stored, so nothing stale can fire."""
    at_noon(clock)
    old, worker = version(make_app, queue_name, "0 12 * * *")
    old.schedules.tick()
    old.schedules.disable(worker, "nightly")
    without = make_app()
    same = declare(without, queue_name, Notes())
    clock.advance(29 * DAY)
    without.schedules.tick()
    assert ["other code"] == [view.source for view in without.schedules.all()]
    assert records(without, same)["nightly"].off is not None
    clock.advance(2 * DAY)
    without.schedules.tick()
    assert {} == records(without, same)


def test_a_clock_that_was_a_day_ahead(make_app: MakeApp, clock: ManualClock, queue_name: str) -> None:
    """What fired under the wrong clock fires again at the right time; what had fired before it does not."""
    at_noon(clock, -30.0)
    app, worker = version(make_app, queue_name, "0 * * * *")
    app.schedules.tick()
    clock.advance(60.0)
    assert [("nightly", 0.0, "pushed")] == fired(app.schedules.tick())
    clock.advance(DAY)
    assert [("nightly", DAY, "merged")] == fired(app.schedules.tick())
    clock.advance(60.0 - DAY)
    seen = []
    for _ in range(120):
        seen += fired(app.schedules.tick())
        clock.advance(60.0)
    assert [("nightly", 3_600.0, "merged"), ("nightly", 7_200.0, "merged")] == seen
    assert worker.queue_name == queue_name


def test_a_clock_that_was_a_day_behind(make_app: MakeApp, clock: ManualClock, queue_name: str) -> None:
    """It looks as if the right one had been ahead: times fire by the clock there is, and go on when it is right."""
    at_noon(clock, -30.0)
    app, _ = version(make_app, queue_name, "0 * * * *")
    app.schedules.tick()
    clock.advance(60.0)
    assert [("nightly", 0.0, "pushed")] == fired(app.schedules.tick())
    clock.advance(-DAY)
    assert [] == fired(app.schedules.tick())
    clock.advance(3_600.0)
    assert [("nightly", 3_600.0 - DAY, "merged")] == fired(app.schedules.tick())
    clock.advance(DAY)
    assert [("nightly", 3_600.0, "merged")] == fired(app.schedules.tick())
    assert [] == fired(app.schedules.tick())


def test_a_version_deployed_after_the_wrong_clock_fires(make_app: MakeApp, clock: ManualClock, queue_name: str) -> None:
    """What the clock that was ahead has written of the old version replaces the new one at no time."""
    at_noon(clock, DAY)
    version(make_app, queue_name, "0 * * * *")[0].schedules.tick()
    clock.advance(-DAY)
    new = version(make_app, queue_name, "5 * * * *")[0]
    seen = []
    for _ in range(30):
        seen += fired(new.schedules.tick())
        clock.advance(60.0)
    assert [("nightly", 300.0, "pushed")] == seen


def test_one_more_version_after_a_clock_that_was_a_little_ahead(
    make_app: MakeApp, clock: ManualClock, queue_name: str
) -> None:
    """Four versions are remembered, all seen later than now: one of them is forgotten, and not the new one."""
    at_noon(clock)
    for minute in range(4):
        version(make_app, queue_name, f"{minute} * * * *")[0].schedules.tick()
    clock.advance(-100.0)
    new = version(make_app, queue_name, "30 * * * *")[0]
    assert [] == fired(new.schedules.tick())
    clock.advance(1_900.0)
    assert [("nightly", 1_800.0, "pushed")] == fired(new.schedules.tick())


def test_a_flushed_server_fires_the_next_planned_time(own_server: Server, clock: ManualClock, queue_name: str) -> None:
    """FLUSHDB: since now, and the queue is opened again."""
    app = Lowkiq(Config(redis_url=own_server.url), clock=clock)
    worker = declare(app, queue_name, Notes())
    at_noon(clock)
    app.every(MINUTE, worker, id="poll")
    app.schedules.tick()
    clock.advance(60.0)
    own_server.admin.flushdb()
    assert [] == fired(app.schedules.tick())
    clock.advance(60.0)
    assert [("poll", 120.0, "pushed")] == fired(app.schedules.tick())
    close_app(app)


def test_scripts_that_are_forgotten_in_mid_wave_lose_no_time(
    own_server: Server, clock: ManualClock, queue_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SCRIPT FLUSH between two waves of `all`: the times fire in their order, each once."""
    app = Lowkiq(Config(redis_url=own_server.url), clock=clock)
    worker = declare(app, queue_name, Notes())
    at_noon(clock)
    for name in ("a", "b"):
        app.every(MINUTE, worker, id=name, missed="all")
    app.schedules.tick()
    clock.advance(600.0)
    fire = Waves.fire

    def forgetting(waves: Waves, plans: object) -> None:
        own_server.admin.script_flush()
        fire(waves, plans)  # type: ignore[arg-type]  # as it was given

    monkeypatch.setattr(Waves, "fire", forgetting)
    seen = fired(app.schedules.tick())
    expected = [(60.0 * number, "merged" if number > 1 else "pushed") for number in range(1, 11)]
    for name in ("a", "b"):
        assert expected == [(planned, outcome) for named, planned, outcome in seen if named == name]
        assert expected == outcomes(app, worker, name)
    close_app(app)


def test_a_full_server_decides_nothing(own_server: Server, clock: ManualClock, queue_name: str) -> None:
    """Neither the time is written nor the job; within its grace it fires when there is memory again."""
    app = Lowkiq(Config(redis_url=own_server.url), clock=clock)
    worker = declare(app, queue_name, Notes())
    at_noon(clock)
    app.every(MINUTE, worker, id="poll")
    app.schedules.tick()
    before = records(app, worker)
    clock.advance(60.0)
    own_server.admin.config_set("maxmemory", 1)
    ticked = app.schedules.tick()
    assert ([], 1) == (ticked.fired, len(ticked.problems))
    assert "memory" in ticked.problems[0]
    assert before == records(app, worker)
    assert [] == app.operate(worker).waiting.fetch(["poll"])
    own_server.admin.config_set("maxmemory", 0)
    assert [("poll", 60.0, "pushed")] == fired(app.schedules.tick())
    close_app(app)


def test_what_redis_does_not_take_is_no_busy_loop(
    own_server: Server, clock: ManualClock, queue_name: str, caplog: pytest.LogCaptureFixture
) -> None:
    """More planned times than fit in a tick, and none of them is taken: the next look comes after a minute."""
    app = Lowkiq(Config(redis_url=own_server.url), clock=clock)
    worker = declare(app, queue_name, Notes())
    at_noon(clock)
    app.every(1.0, worker, id="poll", missed="all")
    app.schedules.tick()
    clock.advance(250.0)
    own_server.admin.config_set("maxmemory", 1)
    assert [None, None] == [app.schedules.tick().next_in for _ in range(2)]
    assert 1 == sum("does not fire" in record.message for record in caplog.records)
    own_server.admin.config_set("maxmemory", 0)
    assert [(100, 0.0), (100, 0.0), (50, 1.0)] == [
        (len(ticked.fired), ticked.next_in) for ticked in [app.schedules.tick() for _ in range(3)]
    ]
    close_app(app)


def test_a_server_that_is_away_makes_no_duty_fail(make_server: MakeServer, clock: ManualClock, queue_name: str) -> None:
    """Else the duty would rest longer and longer, and with it every entry."""
    server = make_server()
    app = Lowkiq(Config(redis_url=server.url, redis_timeout=0.2), clock=clock)
    app.every(MINUTE, declare(app, queue_name, Notes()), id="poll")
    app.schedules.tick()
    server.kill()
    again = FireDuty(app.schedules.tick).run(lambda: 60.0)
    assert "problems" in str(again.result)
    assert again.seconds is None
    close_app(app)


def test_an_entry_that_cannot_work_keeps_no_other_back(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """C-4: it is told at each tick; `check` told it before."""
    worker = declare(app, queue_name, Notes())
    at_noon(clock)
    app.every(MINUTE, worker, id="sound")
    app.every(MINUTE, worker, id="large", payload="x" * (app.config.max_payload_bytes + 1))
    app.every(MINUTE, worker, id="odd", payload={1, 2})
    app.schedules.tick()
    clock.advance(60.0)
    ticked = app.schedules.tick()
    assert ["sound"] == [one.name for one in ticked.fired]
    assert ["large", "odd"] == sorted(name for name in ("large", "odd", "sound") if name in " ".join(ticked.problems))
    assert 2 == len(app.schedules.check())


def test_overlap_skip_waits_for_the_job_before(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """While the id waits, is in flight, waits for a retry or lies with a dead holder, a firing pushes nothing."""
    at_noon(clock)
    notes = Notes()
    worker = declare(app, queue_name, notes)
    app.every(MINUTE, worker, id="poll", overlap="skip")
    app.schedules.tick()

    def tick_later() -> list[str]:
        clock.advance(60.0)
        return [outcome for _, _, outcome in fired(app.schedules.tick())]

    assert (["pushed"], ["busy"]) == (tick_later(), tick_later())
    during: list[list[str]] = []
    notes.then = lambda _batch: during.append(tick_later())
    app.drain()
    assert [["busy"]] == during
    assert ["pushed"] == tick_later()
    notes.then = failing("poll")
    app.drain()
    assert ["busy"] == tick_later()
    notes.then = None
    app.drain()
    mortal = Mortal(app)
    notes.then = mortal.die
    assert ["pushed"] == tick_later()
    assert None is mortal.drain()
    assert ["busy"] == tick_later()
