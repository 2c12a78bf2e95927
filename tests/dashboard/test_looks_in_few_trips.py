"""What many queues are asked for takes as many round trips as for one."""

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

import pytest
from redis.connection import AbstractConnection

from lowkiq_lambda import Lowkiq
from lowkiq_lambda.dashboard import dashboard
from lowkiq_lambda.operate.doctor.checkup import look_for_needs
from lowkiq_lambda.testing import ManualClock
from tests.kit.accounts import AUTH, OPERATOR
from tests.kit.apps import MakeApp
from tests.kit.handlers import FailingHandler
from tests.kit.web import Browser
from tests.kit.workers import declare

QUEUES: Final = 50
LONG: Final = 10.0
"""Seconds after which everything is read anew."""
Look: TypeAlias = Callable[[Lowkiq, Browser], object]
LOOKS: Final[Mapping[str, tuple[Look, int]]] = {
    "app.find": (lambda app, _: app.operate.find("1"), 5),
    "app.stats": (lambda app, _: app.operate.stats(), 2),
    "app.metrics": (lambda app, _: app.operate.metrics(), 2),
    "app.errors": (lambda app, _: app.operate.errors(), 6),
    "app.schedules.all": (lambda app, _: app.schedules.all(), 2),
    "what needs somebody": (lambda app, _: look_for_needs(app.operate), 13),
    "the first page": (lambda _, browser: browser.get("/"), 6),
    "GET stats": (lambda _, browser: browser.get("/api/v1/stats"), 2),
    "GET queues": (lambda _, browser: browser.get("/api/v1/queues"), 2),
    "GET errors": (lambda _, browser: browser.get("/api/v1/errors"), 6),
    "GET schedules": (lambda _, browser: browser.get("/api/v1/schedules"), 3),
    # One for all queues and servers; one of all else, and one of open tasks.
    "GET metrics": (lambda _, browser: browser.get("/metrics"), 2),
    "the search": (lambda _, browser: browser.get("/search?q=1"), 6),
    "the page of errors": (lambda _, browser: browser.get("/errors"), 6),
    "the page of schedules": (lambda _, browser: browser.get("/schedules"), 6),
    "a job's page": (lambda app, browser: browser.get(f"/job?queue={next(iter(app.core.queues))}&id=1"), 11),
}
"""Each with the most round trips that it may take: those of errors read 32 of the 100 lists of ids at a time, and none
of queues without errors."""


@pytest.mark.parametrize("look", LOOKS)
def test_looks_at_many_queues_take_few_round_trips(
    make_app: MakeApp, queue_name: str, clock: ManualClock, monkeypatch: pytest.MonkeyPatch, look: str
) -> None:
    """Declarations are read in one round trip for all queues, and so is each kind of thing that is looked for."""
    app = make_app()
    workers = [declare(app, f"{queue_name}-{n}", FailingHandler()) for n in range(QUEUES)]
    for worker in workers:
        worker.push_many([{"id": 1}])
        app.every(60, worker, id="nightly", name="sync")
    app.schedules.tick()
    browser = Browser(dashboard(app, auth=AUTH, clock=clock))
    browser.come_in(AUTH, OPERATOR, clock.time())
    see, most = LOOKS[look]
    see(app, browser)
    clock.advance(LONG)
    trips = list[object]()
    send: Any = AbstractConnection.send_packed_command

    def count_and_send(connection: AbstractConnection, *args: Any, **options: Any) -> None:
        trips.append(args)
        send(connection, *args, **options)

    monkeypatch.setattr(AbstractConnection, "send_packed_command", count_and_send)

    see(app, browser)

    assert most >= len(trips)
