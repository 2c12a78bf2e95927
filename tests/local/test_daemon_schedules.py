"""The thread of a daemon that fires schedule entries."""

import threading
from typing import Any

from lowkiq_lambda import Lowkiq, Worker
from lowkiq_lambda.local.daemon import Daemon
from tests.kit.apps import MakeApp
from tests.kit.handlers import Notes
from tests.kit.waiting import eventually
from tests.kit.workers import declare


def threads() -> set[str]:
    """The names of those that fire entries."""
    return {thread.name for thread in threading.enumerate() if thread.name == "lowkiq-schedules"}


def polling(make_app: MakeApp, queue_name: str, **settings: Any) -> tuple[Lowkiq, type[Worker], Notes]:
    """An app with an entry that fires each second."""
    app, notes = make_app(**settings), Notes()
    worker = declare(app, queue_name, notes)
    app.every(1.0, worker, id="poll")
    return app, worker, notes


def planned(notes: Notes) -> list[float]:
    """The planned times that were performed, in order."""
    return [score for jobs in notes.jobs for job in jobs for score in job.scores]


def test_a_daemon_fires_at_the_planned_times(make_app: MakeApp, queue_name: str) -> None:
    """C-2, X-26: each within its second, not with the next look after a minute; in a thread of its own."""
    app, _, notes = polling(make_app, queue_name)
    with Daemon(app):
        eventually(lambda: len(notes.batches) >= 3, timeout=30.0)
        assert {"lowkiq-schedules"} == threads()
    eventually(lambda: not threads(), timeout=10.0)
    seen = planned(notes)
    assert sorted(set(seen)) == seen


def test_two_daemons_fire_each_time_once(make_app: MakeApp, queue_name: str) -> None:
    """X-4, C-6: one of them is enough, and which does not matter."""
    (one, worker, first), (other, _, second) = (polling(make_app, queue_name) for _ in range(2))
    with Daemon(one), Daemon(other):
        eventually(lambda: len(first.batches) + len(second.batches) >= 3, timeout=30.0)
    history = [firing.planned for firing in one.schedules.history(worker, "poll")]
    assert sorted(set(history), reverse=True) == history
    seen = sorted([*planned(first), *planned(second)])
    assert sorted(set(seen)) == seen


def test_a_quiet_daemon_fires_nothing(make_app: MakeApp, queue_name: str) -> None:
    """It starts nothing new: its thread ends."""
    app, _, notes = polling(make_app, queue_name)
    with Daemon(app) as daemon:
        eventually(lambda: bool(notes.batches), timeout=30.0)
        daemon.quiet()
        eventually(lambda: not threads(), timeout=10.0)


def test_a_daemon_fires_nothing_where_the_settings_say_so(make_app: MakeApp, queue_name: str) -> None:
    """C-9: with `schedules=False` it has no thread for that, and claims nothing from those that do."""
    app, _, _ = polling(make_app, queue_name, schedules=False)
    with Daemon(app) as daemon:
        daemon.quiet()
        assert set() == threads()
    assert [] == app.operate.duties()


def test_c15_what_fires_survives_an_error(make_app: MakeApp, queue_name: str) -> None:
    """C-15: an error of our own is logged and told by the duty; the next look fires again."""
    app, _, _ = polling(make_app, queue_name)
    tick, broken = app.schedules.tick, [ValueError("is broken")]

    def failing_once(*arguments: Any) -> Any:
        if broken:
            raise broken.pop()
        return tick(*arguments)

    app.schedules.tick = failing_once  # type: ignore[assignment,method-assign]  # a fault, injected
    with Daemon(app):
        eventually(lambda: not broken and bool(app.operate.duties()[0].last_error), timeout=30.0)
        assert ["ValueError: is broken"] == [
            str(state.last_error) for state in app.operate.duties() if state.last_error
        ]
