"""Looks at many shards: what comes one by one is whole, or asked for again."""

from collections.abc import Generator, Iterable
from typing import Any

import pytest
import redis
from redis.exceptions import ConnectionError as RedisConnectionError

from lowkiq_lambda import BackendUnavailable, Lowkiq
from lowkiq_lambda.store import reading
from lowkiq_lambda.store.pipelines import Command, stream
from lowkiq_lambda.views import Overview, QueueOverview
from tests.apps import MakeApp
from tests.servers import Server
from tests.store.support import Handler, declare

QUEUES = 5


def declare_some(app: Lowkiq, queue_name: str) -> list[str]:
    """Names of queues, the first with one job, the next with two, and so on."""
    names = [f"{queue_name}-{number}" for number in range(QUEUES)]
    for count, name in enumerate(names, 1):
        declare(app, name, Handler(), shards_count=3).perform_async([{"id": job_id} for job_id in range(count)])
    return names


class Looker:
    """Takes in what it is shown, and counts how often it begins."""

    def __init__(self) -> None:
        self.begun = 0

    def __call__(self, seen: Overview) -> dict[str, int]:
        """How much waits in each queue."""
        self.begun += 1
        return {queue.name: queue.now.length for queue in seen.queues}


class Breaking:
    """The connections break, so often, when a few answers have come."""

    def __init__(self, times: int) -> None:
        self.left = times

    def __call__(self, client: redis.Redis, commands: Iterable[Command]) -> Generator[Any]:
        """In place of `stream`."""
        asked = [*commands]
        breaks, self.left = self.left > 0, self.left - 1
        for left, answer in zip(reversed(range(len(asked))), stream(client, asked), strict=True):
            if breaks and left < 2:
                raise RedisConnectionError("cut")
            yield answer


def test_a_look_that_breaks_off_begins_anew(app: Lowkiq, queue_name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """E-41: what was seen of some queues is not mixed with what is seen later."""
    names, look = declare_some(app, queue_name), Looker()
    monkeypatch.setattr(reading, "stream", Breaking(times=2))

    assert dict(zip(names, range(1, QUEUES + 1), strict=True)) == app.overview(look)
    assert 3 == look.begun


def test_a_look_ends_with_its_patience(app: Lowkiq, queue_name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of a look is none."""
    declare_some(app, queue_name)
    monkeypatch.setattr(reading, "stream", Breaking(times=1_000_000))

    with pytest.raises(BackendUnavailable):
        app.overview(Looker())


def test_a_look_needs_one_connection_and_no_script(make_app: MakeApp, server: Server, queue_name: str) -> None:
    """E-36: a server that forgot its scripts is told, though the only connection is in use by the look."""
    app = make_app(client_pool_size=1)
    names, look = declare_some(app, queue_name), Looker()
    server.admin.script_flush()

    assert dict(zip(names, range(1, QUEUES + 1), strict=True)) == app.overview(look)


def test_a_look_that_is_given_up_leaves_nothing_behind(make_app: MakeApp, queue_name: str) -> None:
    """Who breaks off in the middle has no answers left for who comes next."""
    app = make_app(client_pool_size=1)
    declare_some(app, queue_name)

    def first(seen: Overview) -> QueueOverview:
        return next(iter(seen.queues))

    def broken(seen: Overview) -> None:
        raise ZeroDivisionError(first(seen).name)

    with pytest.raises(ZeroDivisionError):
        app.overview(broken)
    assert 1 == app.overview(first).now.length
    assert sum(range(1, QUEUES + 1)) == app.stats()["total"]["length"]


def test_an_app_without_queues_is_looked_at_all_the_same(app: Lowkiq) -> None:
    """The server is shown, and no queue."""
    servers, queues = app.overview(lambda seen: (seen.servers, [*seen.queues]))

    assert ["primary"] == [server.role for server in servers]
    assert [] == queues
