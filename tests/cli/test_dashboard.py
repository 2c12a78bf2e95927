"""`lowkiq dashboard`: it serves, and performs nothing."""

import signal
from http import HTTPStatus
from pathlib import Path
from urllib.request import urlopen

from lowkiq_lambda import Config, Lowkiq
from tests.kit.apps import closing_app
from tests.kit.daemons import DaemonProcess
from tests.kit.dashboard_daemon import APP, port_of
from tests.kit.servers import Server


def test_the_dashboard_is_served_until_a_signal_and_jobs_wait(server: Server, queue_name: str, tmp_path: Path) -> None:
    """At a port of this machine, with the app that pyproject.toml names; TERM is its good end."""
    (tmp_path / "shop.py").write_text(APP.format(name=queue_name))
    (tmp_path / "pyproject.toml").write_text('[tool.lowkiq]\napp = "shop:app"\n')
    process = DaemonProcess(
        ["dashboard", "127.0.0.1:0"], {"LOWKIQ_REDIS_URL": server.url}, tmp_path / "log", tmp_path, "lowkiq_lambda"
    )
    try:
        with closing_app(Lowkiq(Config(redis_url=server.url))) as app:
            worker = app.worker(queue_name=queue_name, shards_count=2)(print)
            worker.push_many([{"id": 1}])
            with urlopen(f"http://127.0.0.1:{port_of(process)}/sign-in") as answer:
                status = answer.status
            process.send(signal.SIGTERM)

            assert (HTTPStatus.OK, 0) == (status, process.exit_code())
            assert 1 == app.operate.stats()["by_worker"][queue_name]["length"]
    finally:
        process.close()
