"""`lowkiq run --reload`: the daemon performs by the newest code, and a broken file waits for its next change."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Final

from lowkiq_lambda import Config, Lowkiq
from lowkiq_lambda.local.reloading import changes, stamps_of
from tests.kit.apps import closing_app
from tests.kit.servers import Server
from tests.kit.waiting import eventually

ROOT: Final = Path(__file__).parents[2]
APP: Final = """
from lowkiq_lambda import Lowkiq

app = Lowkiq()


@app.worker(queue_name="orders", shards_count=1)
def note(batch):
    with open("notes.txt", "a") as notes:
        notes.write("{version}\\n")
"""


def test_a_change_starts_the_daemon_anew(own_server: Server, tmp_path: Path) -> None:
    """Its jobs end before; a file that cannot be imported shows its error; at the end nobody holds the shard."""
    code, notes, log = tmp_path / "shop.py", tmp_path / "notes.txt", tmp_path / "log.txt"
    code.write_text(APP.format(version="one"))
    environ = {**os.environ, "PYTHONPATH": str(ROOT), "LOWKIQ_REDIS_URL": own_server.url, "LOWKIQ_ENV": "development"}
    command = [sys.executable, "-m", "lowkiq_lambda", "run", "shop:app", "--reload", "--threads", "1"]
    (tmp_path / "pyproject.toml").touch()
    with closing_app(Lowkiq(Config(redis_url=own_server.url))) as app, log.open("w") as stderr:
        orders = app.worker(queue_name="orders", shards_count=1)(print)
        orders.push_many([{"id": 1}])
        daemon = subprocess.Popen(command, cwd=tmp_path, env=environ, stderr=stderr)
        try:
            eventually(lambda: notes.exists() and "one" in notes.read_text(), timeout=60.0)
            code.write_text("def broken(")
            eventually(lambda: "the next change starts it again" in log.read_text(), timeout=60.0)
            code.write_text(APP.format(version="second"))
            orders.push_many([{"id": 2}])
            eventually(lambda: "second" in notes.read_text(), timeout=60.0)
        finally:
            daemon.send_signal(signal.SIGTERM)
            exit_code = daemon.wait(60.0)
        orders.push_many([{"id": 3}])
        done = app.drain()["done"]

    assert 0 == exit_code
    assert ["one", "second"] == notes.read_text().split()
    assert "SyntaxError" in log.read_text()
    assert 1 == done


def test_only_files_of_the_project_count(tmp_path: Path) -> None:
    """Neither caches nor installed packages; what is made or removed is a change, too."""
    for name in ("shop.py", "lib/more.py", ".hidden/no.py", "__pycache__/no.py", "env/no.py", "notes.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("1")
    (tmp_path / "env" / "pyvenv.cfg").touch()
    before = stamps_of(tmp_path)
    (tmp_path / "shop.py").write_text("22")
    (tmp_path / "lib" / "more.py").unlink()
    (tmp_path / "new.py").touch()

    assert ["more.py", "shop.py"] == sorted(Path(path).name for path in before)
    assert ["more.py", "new.py", "shop.py"] == changes(before, stamps_of(tmp_path))
