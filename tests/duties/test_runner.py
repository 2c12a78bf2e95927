"""How duties are run: one after the other, each in its time, and what goes wrong with one keeps no other back."""

import logging
from functools import partial
from itertools import pairwise

import pytest

from lowkiq_lambda import Config, Lowkiq
from lowkiq_lambda.base.errors import BackendError, DeclarationError
from lowkiq_lambda.testing import ManualClock
from tests.kit.apps import close_app
from tests.kit.duties import ENOUGH, Noted, record_of, run_due, runs_of, with_queue
from tests.kit.servers import MakeServer


def fail() -> None:
    """As a duty may."""
    raise ValueError("is broken")


def test_a_duty_that_fails_keeps_no_other_back(app: Lowkiq, caplog: pytest.LogCaptureFixture) -> None:
    """It is logged with its name, and what it raised is told."""
    broken, sound = Noted("broken", act=fail), Noted("sound")
    for duty in (broken, sound):
        app.add_duty(duty)
    with caplog.at_level(logging.ERROR):
        ran = run_due(app)

    assert ({"sound": 1}, ["broken"], ["is broken"]) == (ran.results, [*ran.errors], [*map(str, ran.errors.values())])
    assert [("a duty failed", "broken")] == [(record.message, record.__dict__["duty"]) for record in caplog.records]


@pytest.mark.parametrize("error", [SystemExit(3), GeneratorExit()])
def test_a_duty_that_exits_has_failed(app: Lowkiq, error: BaseException) -> None:
    """It ends no thread, and no tick."""

    def leave() -> None:
        raise error

    app.add_duty(Noted(act=leave))
    assert [error] == [*run_due(app).errors.values()]


def test_a_duty_that_fails_rests_longer_each_time(app: Lowkiq, clock: ManualClock) -> None:
    """One period, two, four, up to a quarter of an hour; from the first success on its period again."""
    duty = Noted(act=fail)
    app.add_duty(duty)
    failing = runs_of(app, duty, clock, 4_000)
    gaps = [later - earlier for earlier, later in pairwise(failing)]
    assert [54.0, 114.0, 234.0, 474.0, 894.0, 894.0, 894.0] == gaps[:7]

    duty.act = None
    clock.advance(900.0)
    assert [0.0, 54.0] == runs_of(app, duty, clock, 60)
    assert b"sweep:error" not in record_of(app)


def test_what_has_been_due_for_longest_comes_first(app: Lowkiq, clock: ManualClock) -> None:
    """So that none is left out where there is no time for all."""
    order: list[str] = []
    for name, every in (("often", 5.0), ("seldom", 60.0)):
        app.add_duty(Noted(name, every, partial(order.append, name)))
    run_due(app)
    clock.advance(61.0)
    order.clear()
    run_due(app)
    assert ["often", "seldom"] == order


def test_a_run_sees_how_much_time_it_has(app: Lowkiq, clock: ManualClock) -> None:
    """Its period, but at least five seconds and at most a minute, and no more than its driver has."""
    duties = [Noted("often", 1.0), Noted("every-twenty", 20.0), Noted("seldom", 3_600.0)]
    for duty in duties:
        app.add_duty(duty)
    run_due(app)
    clock.advance(3_600.0)
    ends_at = clock.monotonic() + 12.0
    run_due(app, lambda: ends_at - clock.monotonic())
    assert [[5.0, 5.0], [20.0, 12.0], [60.0, 12.0]] == [duty.runs for duty in duties]


def test_a_run_past_its_time_sees_it(app: Lowkiq, clock: ManualClock) -> None:
    """And nothing further begins where its driver has no time left."""
    seen: list[float] = []

    def overrun() -> None:
        clock.advance(61.0)
        seen.append(slow.remaining())

    slow = Noted("slow", act=overrun)
    app.add_duty(slow)
    app.add_duty(Noted("later"))
    ends_at = clock.monotonic() + 61.0
    ran = run_due(app, lambda: ends_at - clock.monotonic())
    assert ([0.0], ["slow"]) == (seen, [*ran.results])


def test_without_time_nothing_is_asked(app: Lowkiq) -> None:
    """No claim is made that nobody could keep."""
    app.add_duty(Noted())
    assert {} == run_due(app, lambda: 0.0).results
    assert {} == record_of(app)


def test_an_outage_before_a_run(make_server: MakeServer, queue_name: str) -> None:
    """Nothing is run that was not claimed; afterwards it goes on."""
    server = make_server()
    app = with_queue(Lowkiq(Config(redis_url=server.url)), queue_name)
    duty = Noted()
    app.add_duty(duty)
    server.kill()
    with pytest.raises(BackendError):
        run_due(app)
    assert [] == duty.runs
    server.restart()
    assert {"sweep": 1} == run_due(app).results
    close_app(app)


def test_an_outage_during_a_run(make_server: MakeServer, queue_name: str, caplog: pytest.LogCaptureFixture) -> None:
    """Redis cannot be told that it is over: it is told to the caller, and the duty will be run again."""
    server, clock = make_server(), ManualClock()
    app = with_queue(Lowkiq(Config(redis_url=server.url), clock=clock), queue_name)
    duty = Noted(act=server.kill)
    app.add_duty(duty)
    ran = run_due(app)
    assert [BackendError] == [kind for error in ran.errors.values() for kind in type(error).__mro__[1:2]]
    assert "it will be done again" in caplog.text
    server.restart()
    duty.act = None
    clock.advance(65.0)
    run_due(app)
    assert 2 == len(duty.runs)
    close_app(app)


def test_the_state_of_duties(app: Lowkiq, clock: ManualClock) -> None:
    """For people: what ran when, for how long, what came of it, and what is due when."""
    sound, broken = Noted("sound", act=lambda: clock.advance(2.0)), Noted("broken", 300.0, fail)
    for duty in (sound, broken, Noted("new", 600.0)):
        app.add_duty(duty)
    assert [None] * 3 == [state.last_run for state in app.operate.duties()]

    began_at = clock.time()
    running: list[bool] = []

    def look_and_fail() -> None:
        running.extend(state.is_running for state in app.operate.duties())
        fail()

    broken.act = look_and_fail
    run_due(app, lambda: ENOUGH if len(broken.runs) < 1 else 0.0)
    seen = {state.name: state for state in app.operate.duties()}

    assert [False, True, False] == running
    assert (began_at, 2.0, began_at + 60.0, 0, None) == (
        seen["sound"].last_run,
        seen["sound"].last_seconds,
        seen["sound"].next_run,
        seen["sound"].failures,
        seen["sound"].last_error,
    )
    assert (began_at + 302.0, 1, "ValueError: is broken") == (
        seen["broken"].next_run,
        seen["broken"].failures,
        seen["broken"].last_error,
    )
    assert (None, None, 0) == (seen["new"].last_run, seen["new"].last_seconds, seen["new"].failures)


def test_the_state_of_a_duty_whose_process_died(app: Lowkiq, clock: ManualClock) -> None:
    """It is due, and says why."""
    duty = Noted()
    app.add_duty(duty)

    def die() -> None:
        raise KeyboardInterrupt

    duty.act = die
    with pytest.raises(KeyboardInterrupt):
        run_due(app)
    clock.advance(65.0)
    (state,) = app.operate.duties()
    assert (False, 1, None) == (state.is_running, state.failures, state.last_seconds)
    assert "its process died" in str(state.last_error)
    assert clock.time() == state.next_run


@pytest.mark.parametrize(
    ("name", "every", "words"),
    [("A b", 60.0, "needs a name"), ("a", 0.5, "every 1 to"), ("a", float("nan"), "every 1 to"), ("", 1.0, "a name")],
)
def test_a_duty_that_cannot_work_is_refused(app: Lowkiq, name: str, every: float, words: str) -> None:
    """When it is declared, in a sentence that names it."""
    with pytest.raises(DeclarationError, match=words):
        app.add_duty(Noted(name, every))


def test_two_duties_of_one_name_are_refused(app: Lowkiq) -> None:
    """They would take each other's runs."""
    app.add_duty(Noted())
    with pytest.raises(DeclarationError, match="already"):
        app.add_duty(Noted())
    assert ["sweep"] == [*app.core.housekeeping.duties]


def test_without_duties_nothing_is_asked(app: Lowkiq) -> None:
    """The list is empty, and no connection was made for it."""
    assert [] == app.operate.duties()
    assert {} == app.core.housekeeping.duties


def test_a_short_period_is_kept_beside_a_long_one(app: Lowkiq, clock: ManualClock) -> None:
    """A round that ran a duty is followed by a look at once, which says when that duty is due again."""
    short, long = Noted("short", 10.0), Noted("long", 3_600.0)
    for duty in (short, long):
        app.add_duty(duty)
    run_due(app)
    clock.advance(10.0)
    ran = run_due(app)

    assert {"short": 2} == ran.results
    assert ran.next_in <= 10.0


def test_an_error_that_is_not_utf_8_fails_its_duty_alone(app: Lowkiq, caplog: pytest.LogCaptureFixture) -> None:
    """A file's name may be such a text: it is kept in a readable form."""

    def broken() -> None:
        raise ValueError("no file \udcff")

    app.add_duty(Noted("broken", act=broken))
    app.add_duty(Noted("sound"))

    # Not captured: a test process that others start tells them its log in UTF-8.
    with caplog.at_level(logging.CRITICAL, "lowkiq_lambda.duties.runner"):
        assert {"sound": 1} == run_due(app).results
    assert rb"ValueError: no file \udcff" == record_of(app)[b"broken:error"]
