"""A daemon sends alerts to the webhook that its environment names."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Final

from lowkiq_lambda import Config, Lowkiq
from tests.kit.apps import closing_app
from tests.kit.servers import Server
from tests.kit.waiting import eventually
from tests.kit.webhooks import webhook_server

ROOT: Final = Path(__file__).parents[2]
APP: Final = """
from lowkiq_lambda import Lowkiq

app = Lowkiq()
app.worker(queue_name="orders", shards_count=1)(print)
"""


def test_a_daemon_tells_of_a_paused_queue(own_server: Server, tmp_path: Path) -> None:
    """Once, by one of its duties; it ends as ever."""
    with closing_app(Lowkiq(Config(redis_url=own_server.url))) as app:
        orders = app.worker(queue_name="orders", shards_count=1)(print)
        orders.push_many([{"id": 1}])
        app.operate(orders).pause()
    (tmp_path / "shop.py").write_text(APP)
    with webhook_server() as hook:
        environ = {"LOWKIQ_REDIS_URL": own_server.url, "LOWKIQ_ALERT_URL": hook.url}
        daemon = subprocess.Popen(
            [sys.executable, "-m", "lowkiq_lambda.local", "shop:app", "--log-level", "error"],
            env={**os.environ, "PYTHONPATH": str(ROOT), **environ},
            cwd=tmp_path,
        )
        try:
            eventually(lambda: ("begins", "paused") in hook.events(), timeout=60.0)
            # The same look is a sample, for the lines of a dashboard that is opened later.
            eventually(lambda: len([*own_server.admin.scan_iter("*:samples")]) == 1, timeout=60.0)
            eventually(lambda: own_server.admin.exists("lowkiq:{orders}:arrivals"), timeout=60.0)
        finally:
            daemon.send_signal(signal.SIGTERM)
            code = daemon.wait(60.0)

    assert 0 == code
    assert 1 == hook.events().count(("begins", "paused"))
