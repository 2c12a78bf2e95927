"""A daemon of an app with a namespace, whose user of the server may touch that namespace alone."""

import signal
from contextlib import closing
from pathlib import Path

from tests.kit.servers import Server
from tests.kit.stage import Stage
from tests.kit.waiting import eventually
from tests.local.conftest import APP


def test_a_daemon_keeps_to_its_namespace(server: Server, queue_name: str, tmp_path: Path) -> None:
    """It drains, sends heartbeats and listens there, and hears an order there; nothing of it lies anywhere else."""
    namespace = queue_name.replace("queue-", "shop.")
    url = server.add_user(namespace, f"~{namespace}:*", f"&{namespace}:*", "+@all")
    with closing(Stage(server, queue_name, tmp_path, APP, namespace=namespace)) as stage:
        daemon = stage.daemon(redis_url=url, heartbeat_interval=0.1)
        stage.push("a")
        stage.await_told("end", id="a")
        (process,) = eventually(stage.app.operate.processes)
        assert daemon.pid == process.pid

        stage.app.operate.processes().quiet(process.id)
        stage.await_told("on_quiet")
        daemon.send(signal.SIGTERM)
        assert 0 == daemon.exit_code()
    refused = [(entry["reason"], entry["object"]) for entry in server.admin.acl_log() if entry["username"] == namespace]
    assert [] == refused
