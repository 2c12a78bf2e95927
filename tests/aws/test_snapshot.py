"""SnapStart: what Lambda snapshots is a started environment, which each copy of it goes on from, perhaps days later."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[2]
COPIES: Final = 3

# As Lambda starts an environment, and then continues the copies. A copy is a fork here: with the same memory, and
# another process id, which nothing of this may go by.
SCRIPT: Final = """
import json, os, sys, threading
from lowkiq_lambda.aws import drain_function
from lowkiq_lambda.aws.environment import environment
from lowkiq_lambda.engine.heartbeat import Heartbeat

assert environment.cache_info().currsize == 1, "the app is not loaded while Lambda starts the environment"
app = environment().app
files = os.listdir("/proc/self/fd")
links = [os.readlink(f"/proc/self/fd/{each}") for each in files if os.path.exists(f"/proc/self/fd/{each}")]
print(json.dumps({
    "connections": len(app.core.connections.opened),
    "sockets": [link for link in links if link.startswith("socket:")],
    "threads": threading.active_count(),
}), flush=True)
(worker,) = app.workers
for _ in range(int(sys.argv[1])):
    if not (child := os.fork()):
        noise = [worker().retry_in(1) for _ in range(20)]
        beat = Heartbeat(app.core.drains.drainer, "lambda", 1, print, lambda: "running")
        print(json.dumps({"noise": noise, "process": beat.id.rpartition(":")[2]}), flush=True)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
"""
APP: Final = """
from lowkiq_lambda import Lowkiq

app = Lowkiq()


@app.worker
def sync_order(batch):
    print(dict(batch))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="it looks at /proc, and Lambda is Linux")
def test_copies_of_a_started_environment_share_nothing_that_may_not_be_shared(tmp_path: Path) -> None:
    """The snapshot has no connection and no thread; each copy draws its ids and the noise of its retries itself."""
    (tmp_path / "shop.py").write_text(APP)
    variables = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": f"{ROOT}:{tmp_path}",
        "AWS_LAMBDA_FUNCTION_NAME": "shop-drain",
        "LOWKIQ_APP": "shop:app",
        "LOWKIQ_REDIS_URL": "redis://127.0.0.1:1",
    }
    command = [sys.executable, "-c", SCRIPT, str(COPIES)]
    done = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=60, check=False)
    assert 0 == done.returncode, done.stderr
    started, *copies = map(json.loads, done.stdout.splitlines())

    assert {"connections": 0, "sockets": [], "threads": 1} == started
    assert COPIES == len({tuple(one["noise"]) for one in copies})
    assert COPIES == len({one["process"] for one in copies})
