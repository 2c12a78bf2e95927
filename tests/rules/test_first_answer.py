"""A process whose Redis never answered does not stay silent until its push fails."""

import pytest

from lowkiq_lambda import BackendUnavailable, Config, Lowkiq, PushInterrupted
from tests.kit.apps import close_app
from tests.kit.servers import Server
from tests.kit.servers.ports import free_port
from tests.kit.workers import declare

LOGGER = "lowkiq_lambda.store.shard.backend"


def test_a_first_push_that_waits_for_redis_says_so(caplog: pytest.LogCaptureFixture, queue_name: str) -> None:
    """After a second, once, with the address; and then the push fails as ever."""
    port = free_port()
    app = Lowkiq(Config(redis_url=f"redis://:secret@127.0.0.1:{port}/0", redis_timeout=1.2))
    worker = declare(app, queue_name, print)
    with pytest.raises(BackendUnavailable):
        worker.push("a")

    (line,) = [record.getMessage() for record in caplog.records if record.name == LOGGER]
    assert line.startswith("Redis has not answered yet (ConnectionError: ")
    assert f"127.0.0.1:{port}" in line
    assert "secret" not in line
    close_app(app)


def test_a_server_that_has_answered_is_not_told_so(
    caplog: pytest.LogCaptureFixture, own_server: Server, queue_name: str
) -> None:
    """An outage later is for others to report."""
    app = Lowkiq(Config(redis_url=own_server.url, redis_timeout=0.7))
    worker = declare(app, queue_name, print)
    worker.push("a")
    own_server.kill()
    with pytest.raises(PushInterrupted):
        worker.push("b")

    assert [] == [record for record in caplog.records if record.name == LOGGER]
    close_app(app)
