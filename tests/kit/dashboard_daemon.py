"""A daemon whose dashboard is served at a port."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.kit.daemons import DaemonProcess
from tests.kit.waiting import eventually

APP = """
import os
from lowkiq_lambda import Config, Lowkiq
app = Lowkiq(Config.from_env(os.environ, mask=lambda queue, job_id, payload: "hidden " + job_id))
app.worker(queue_name={name!r}, shards_count=2)(print)
"""


@contextmanager
def dashboard_daemon(
    folder: Path, queue_name: str, address: str, environment: Mapping[str, str]
) -> Iterator[DaemonProcess]:
    """A daemon of an app with one queue, its dashboard at the address; it is killed at the end of the block."""
    (folder / "shop.py").write_text(APP.format(name=queue_name))
    process = DaemonProcess(["shop:app", "--dashboard", address], environment, folder / "log", cwd=folder)
    try:
        yield process
    finally:
        process.close()


def port_of(process: DaemonProcess) -> int:
    """The port that it tells."""
    found = eventually(
        lambda: re.findall(r"dashboard (?:at |url=)http://127\.0\.0\.1:(\d+)/", process.log), 30, "a port"
    )
    return int(found[0])
