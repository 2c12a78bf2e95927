"""Whose turn it is to fire entries, and how soon another process has it."""

import logging
from contextlib import suppress
from itertools import pairwise

import pytest

from lowkiq_lambda import Lowkiq
from lowkiq_lambda.duties.runner import DutiesRun
from lowkiq_lambda.schedules.tick import CLAIM_TTL
from lowkiq_lambda.testing import ManualClock
from tests.kit.apps import MakeApp
from tests.kit.deaths import Died
from tests.kit.duties import ENOUGH
from tests.kit.firing import NOON, at_noon
from tests.kit.handlers import Notes
from tests.kit.workers import declare


@pytest.fixture
def apps(make_app: MakeApp, clock: ManualClock, queue_name: str) -> list[Lowkiq]:
    """Two processes with an entry that fires each second, which have looked once."""
    at_noon(clock)
    apps = [make_app() for _ in range(2)]
    for app in apps:
        app.every(1.0, declare(app, queue_name, Notes()), id="poll")
    looked(apps[0])
    return apps


def looked(app: Lowkiq) -> DutiesRun:
    """What a daemon's thread does."""
    return app.schedules.duty_runner(app.core.backend.clock).run_due(lambda: ENOUGH)


def firings(run: DutiesRun) -> int:
    """How many planned times it decided."""
    return int(run.results["schedules"]["fired"]) if run.results else 0


def test_the_others_know_when_a_process_that_stopped_would_have_looked(apps: list[Lowkiq], clock: ManualClock) -> None:
    """C-6: it leaves the next planned time behind, and whoever looks then has the turn."""
    assert 1.0 == looked(apps[1]).next_in
    clock.advance(1.0)
    assert 1 == firings(looked(apps[1]))


def test_a_look_of_another_process_keeps_nobody_waiting_for_long(apps: list[Lowkiq], clock: ManualClock) -> None:
    """C-6: who asks while it goes on asks again soon, though the other one stops right after it."""
    waits: list[float] = []
    tick = apps[0].schedules.tick

    def asked_meanwhile(*arguments: object) -> object:
        waits.append(looked(apps[1]).next_in)
        return tick(*arguments)  # type: ignore[arg-type]  # handed on

    apps[0].schedules.tick = asked_meanwhile  # type: ignore[assignment,method-assign]  # the moment in between
    clock.advance(1.0)
    assert 1 == firings(looked(apps[0]))
    assert [True] == [wait <= CLAIM_TTL for wait in waits]


def test_a_process_that_dies_while_it_looks_holds_nobody_up(apps: list[Lowkiq], clock: ManualClock) -> None:
    """C-6: what it had not decided fires before the next second."""

    def die(*_arguments: object) -> None:
        raise Died

    apps[0].schedules.tick = die  # type: ignore[assignment,method-assign]  # as SIGKILL does
    clock.advance(1.0)
    with pytest.raises(Died):
        looked(apps[0])
    wait = looked(apps[1]).next_in
    clock.advance(wait)
    assert (CLAIM_TTL, 1) == (wait, firings(looked(apps[1])))


def test_a_look_that_ends_each_process_rests_longer_each_time(apps: list[Lowkiq], clock: ManualClock) -> None:
    """C-15: but for no more than a minute; and one that ends has the next one come in time again."""
    alive = apps[1].schedules.tick
    died_at: list[float] = []

    def die(*_arguments: object) -> None:
        died_at.append(clock.time() - NOON)
        raise Died

    apps[1].schedules.tick = die  # type: ignore[assignment,method-assign]  # as SIGKILL does
    clock.advance(1.0)
    while len(died_at) < 12:
        with suppress(Died):
            clock.advance(looked(apps[1]).next_in)
    waits = [round(later - earlier, 3) for earlier, later in pairwise(died_at)]
    assert ([0.5, 1.0, 1.5, 2.5, 4.5], 60.5) == (waits[:5], max(waits))

    apps[1].schedules.tick = alive  # type: ignore[method-assign]  # nothing dies any more
    while not (run := looked(apps[1])).results:
        clock.advance(run.next_in)
    assert 1 == firings(run)
    assert 1.0 >= looked(apps[1]).next_in


def test_two_that_look_at_once_are_no_news(
    apps: list[Lowkiq], clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    """A look may take longer than its claim, as no planned time fires twice: nobody is warned."""
    tick, counts = apps[0].schedules.tick, list[int]()

    def overtaken(*arguments: object) -> object:
        clock.advance(2.0)
        counts.append(firings(looked(apps[1])))
        return tick(*arguments)  # type: ignore[arg-type]  # handed on

    apps[0].schedules.tick = overtaken  # type: ignore[assignment,method-assign]  # the moment in between
    clock.advance(1.0)
    with caplog.at_level(logging.WARNING):
        counts.append(firings(looked(apps[0])))
    assert ([1, 0], []) == (counts, caplog.messages)
