"""The whole on this machine, in a local cloud: `python -m local.cloud`."""

import argparse
import secrets
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import Event
from typing import Final

import redis

from local.demo.history import History
from local.demo.source import bundled_history
from local.replay.jobs import FILES, ApplyChanges, app
from lowkiq_lambda.providers.embedded.server import EmbeddedValkey, open_embedded
from lowkiq_lambda.stack.cloud.deployment import Deployment
from lowkiq_lambda.stack.cloud.project_cloud import build_packages
from tests.kit.servers import LocalCloud

APP: Final = Path(__file__).parent / "replay"
PASSWORD: Final = secrets.token_urlsafe(12)
SUCCESS, FAILURE = 0, 1

_LOOK_INTERVAL: Final = 1.0
_PATIENCE: Final = 180.0
"""Seconds until `--once` gives up: two schedules' minutes and one for good measure."""
_AT_ONCE: Final = 200

_DESCRIPTION = """
Start AWS on this machine, deploy template.yaml with a small app, push the app's jobs, and show where the dashboard
is. Nothing of it is real: no account, no cost. Schedules start drains each minute, as they do on AWS.
Ctrl-C ends everything and leaves nothing behind.
"""


def main() -> None:
    """Read the command line, run, and exit."""
    parser = argparse.ArgumentParser(prog="python -m local.cloud", description=_DESCRIPTION)
    parser.add_argument("--once", action="store_true", help="end when all jobs are done, and say whether all is well")
    parser.add_argument("--packages", type=Path, help="a folder of packages that were built before")
    given = parser.parse_args()
    stop = Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    with _running(given.packages) as (deployment, server, cloud):
        history = bundled_history()
        push(history)
        _say(f"{len(history.changes):,} jobs pushed, to the shards of {ApplyChanges.queue_name}")
        # The schedules come in up to a minute: the first drains are started by hand.
        for shard in range(ApplyChanges.shards_count):
            cloud.client("lambda").invoke(
                FunctionName=deployment.outputs["DrainFunctionName"],
                InvocationType="Event",
                Payload=b'{"shard": %d}' % shard,
            )
        code = _watch(history, server, stop, once=given.once)
    _say("everything is gone")
    sys.exit(code)


@contextmanager
def _running(built: Path | None) -> Iterator[tuple[Deployment, EmbeddedValkey, LocalCloud]]:
    with ExitStack() as stack:
        # With a password: its port is open to all users of this machine.
        data = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="lowkiq-valkey-")))
        server = stack.enter_context(open_embedded(data))
        _say(f"Valkey       {server.url}")
        cloud = stack.enter_context(LocalCloud(enforces_rights=True))
        _say(f"AWS          {cloud.access}")
        deployment = Deployment(cloud, "lowkiq-local")
        started_at = time.monotonic()
        deployment.upload(built or _build(stack))
        deployment.create(
            RedisUrl=server.url,
            AppModule="jobs:app",
            DashboardSecretArn=deployment.keep_secret(PASSWORD),
        )
        _say(f"stack        {deployment.name}, built and deployed in {time.monotonic() - started_at:.1f} s")
        _say(f"dashboard    {deployment.dashboard_url}  (password {PASSWORD})")
        app.core.configure(redis_url=server.url)
        yield deployment, server, cloud


def _build(stack: ExitStack) -> Path:
    packages = Path(tempfile.mkdtemp(prefix="lowkiq-packages-"))
    stack.callback(shutil.rmtree, packages, ignore_errors=True)
    build_packages(APP, packages)
    return packages


def push(history: History) -> None:
    """Push the jobs of all changes."""
    jobs = [{"id": one.path, "score": one.seq, "payload": [one.seq, one.blob]} for one in history.changes]
    for start in range(0, len(jobs), _AT_ONCE):
        ApplyChanges.push_many(jobs[start : start + _AT_ONCE])


def _watch(history: History, server: EmbeddedValkey, stop: Event, *, once: bool) -> int:
    """Say how it goes until it is stopped, or with `once` until all is done; the exit code."""
    ends_at, said, good = time.monotonic() + _PATIENCE, "", False
    while not stop.wait(_LOOK_INTERVAL):
        total = app.operate.metrics()[ApplyChanges.queue_name]
        done = f"{total.payloads:,} of {len(history.changes):,} jobs done"
        line = f"{done}, {total.length:,} ids waiting, lag {total.lag:.0f} s"
        if line != said:
            _say(line)
            said = line
        if total.length or total.in_flight:
            if once and time.monotonic() > ends_at:
                _say("the jobs are not done in time")
                return FAILURE
            continue
        if not good:
            good = _files(server) == dict(history.final)
            _say("the files are what git says" if good else "the files differ from what git says")
            if not once:
                _say("Ctrl-C ends it; jobs can be pushed meanwhile, and schedules go on")
        if once or not good:
            return SUCCESS if good else FAILURE
    return SUCCESS


def _files(server: EmbeddedValkey) -> dict[str, str]:
    with redis.Redis.from_url(server.url, decode_responses=True) as connected:
        found: dict[str, str] = connected.hgetall(FILES)
    return found


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
