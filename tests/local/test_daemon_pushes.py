"""Daemons whose handlers push while Redis is away, and that are told to stop (S-4, S-12)."""

import signal
from contextlib import closing
from pathlib import Path

import pytest

from lowkiq_lambda.local.daemon import Daemon
from tests.kit.apps import MakeApp
from tests.kit.handlers import Notes
from tests.kit.looks import look
from tests.kit.servers import FaultProxy, Server
from tests.kit.stage import Stage
from tests.kit.workers import declare


def test_a_daemon_that_stops_writes_what_its_handlers_pushed(
    make_app: MakeApp, fault_proxy: FaultProxy, queue_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process may go on, and nobody would flush: the daemon does when its last thread has ended."""
    # Without a thread that delivers, so that nothing but the end does.
    monkeypatch.setenv("AWS_LAMBDA_FUNCTION_NAME", "daemon")
    app = make_app(redis_url=fault_proxy.url, when_unavailable="buffer")
    worker = declare(app, queue_name, Notes())
    app.core.queues.agreed(worker)
    fault_proxy.refuse()
    fault_proxy.cut()
    assert worker.push_many([{"id": "a", "delay": 600}])[0].buffered
    fault_proxy.heal()

    with Daemon(app):
        assert look(app, worker, "a") is None

    assert look(app, worker, "a") is not None
    assert 0 == app.flush(0)


def test_s4_a_daemon_that_leaves_at_once_tells_what_it_could_not_write(
    own_server: Server, queue_name: str, tmp_path: Path
) -> None:
    """S-4: TERM, and a handler that does not end: `os._exit` calls no exit handlers, but `on_lost` is called."""
    with closing(Stage(own_server, queue_name, tmp_path, "tests.local.pushing_app:app")) as stage:
        stage.push("a", "wait")
        stage.push("a", "push and hang", number=2)
        daemon = stage.daemon(shutdown_timeout=0.1, redis_timeout=0.3)
        stage.await_told("begin", id="a")
        with own_server.frozen():
            stage.release("a")
            (kept,) = stage.await_told("kept")
            daemon.send(signal.SIGTERM)

            assert (True, 1) == (kept["buffered"], daemon.exit_code())
        assert [["child"]] == [line["ids"] for line in stage.told("lost")]
