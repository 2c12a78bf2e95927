"""A stack under load in a local cloud: `python -m local.trial`."""

import argparse
import json
import os
import secrets
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import redis

from local.trial.app.jobs import ABOUT, SHARDS, app
from local.trial.ledger import Verdict, judged
from local.trial.pushing import SOURCE, TABLE, Pushing
from lowkiq_lambda.providers.embedded.server import open_embedded
from lowkiq_lambda.stack.cloud.deployment import Deployment
from lowkiq_lambda.stack.cloud.project_cloud import build_packages
from tests.kit.servers import LocalCloud

_APP: Final = Path(__file__).parent / "app"
_EVERY: Final = 5.0
"""Seconds from one start of a drain of each shard to the next, beside the schedules' minutes."""
_PATIENCE: Final = 180.0
_DESCRIPTION = """
Push 50 jobs a second by four ways into a stack in a local cloud, and in the middle deploy other code, throttle the
drains to one at a time, rotate the password of Redis, and roll back. A checker of its own then says whether a job was
lost, done out of order, or done twice at once. It ends with 0 if none was.
"""


def main() -> None:
    """Read the command line, run, and exit."""
    parser = argparse.ArgumentParser(prog="python -m local.trial", description=_DESCRIPTION)
    parser.add_argument("--seconds", type=int, default=180, help="beside the acts themselves (default: 180)")
    parser.add_argument("--packages", type=Path, help="a folder of the app's packages that were built before")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="lowkiq-trial-") as folder:
        packages = options.packages or built(Path(folder))
        with LocalCloud(enforces_rights=True) as cloud, open_embedded(Path(folder) / "valkey") as server:
            verdict = tried(cloud, server.url, packages, Path(folder), options.seconds)
    sys.exit(0 if verdict.is_good else 1)


def built(folder: Path) -> Path:
    """The app's packages."""
    packages = folder / "packages"
    build_packages(_APP, packages)
    return packages


def tried(cloud: LocalCloud, redis_url: str, packages: Path, folder: Path, seconds: float) -> Verdict:
    """The verdict on a run of so many seconds, which is printed with its figures."""
    ledger = folder / "ledger"
    ledger.touch()
    app.core.configure(redis_url=redis_url)
    os.environ.update(cloud.environment)
    with redis.Redis.from_url(redis_url, decode_responses=True) as admin, ExitStack() as stack:
        trial = _Trial(cloud, admin, redis_url, packages, folder)
        trial.deploy(1)
        stack.callback(trial.delete)
        with Pushing(cloud, trial.deployment.outputs["InboxUrl"]) as pushing, trial.starting_drains():
            started_at = time.monotonic()
            acts: list[tuple[float, str, Callable[[], object]]] = [
                (0.1, f"{SHARDS} drains at once", trial.drain_all),
                (0.1, "deployed release 2", lambda: trial.deploy(2)),
                (0.2, "throttled the drains to 1", lambda: trial.throttle(1)),
                (0.15, "ended the throttle", lambda: trial.throttle(SHARDS)),
                (0.1, "rotated the password", trial.rotate),
                (0.15, "rolled back to release 1", lambda: trial.deploy(1)),
            ]
            for rest, what, act in acts:
                time.sleep(rest * seconds)
                act_at = time.monotonic()
                act()
                now = time.monotonic()
                _say(f"{act_at - started_at:6.1f} s  {what}, in {now - act_at:.1f} s")
            time.sleep((1 - sum(rest for rest, _, _ in acts)) * seconds)
            pushed_for = time.monotonic() - started_at
        with trial.starting_drains():
            verdict = trial.verdict(pushing.accepted, ledger)
        trial.say_figures(pushing, pushed_for, verdict)
    return verdict


class _Trial:
    """The stack that is tried, and what is done to it."""

    def __init__(self, cloud: LocalCloud, admin: redis.Redis, url: str, packages: Path, folder: Path) -> None:
        self.deployment = Deployment(cloud, f"trial-{secrets.token_hex(3)}")
        self._cloud, self._admin, self._url = cloud, admin, url
        self._packages, self._folder = packages, folder
        self._lambda: Any = cloud.client("lambda")
        self._stream = cloud.client("dynamodb").create_table(
            TableName=TABLE,
            KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
            BillingMode="PAY_PER_REQUEST",
            StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"},
        )["TableDescription"]["LatestStreamArn"]
        self._users: list[str] = []
        self._began_at = datetime.now(UTC)
        self._drain = ""

    def deploy(self, release: int) -> None:
        """Deploy the package of that number: the first time make the stack."""
        packages = self._folder / f"release-{release}"
        if not packages.exists():
            shutil.copytree(self._packages, packages)
            about = {"release": release, "ledger": str(self._folder / "ledger")}
            for package in packages.iterdir():
                (package / ABOUT).write_text(json.dumps(about))
        self.deployment.upload(packages)
        if self._drain:
            self.deployment.update(Release=str(release))
            return
        self.deployment.create(
            RedisSecretArn=self._keep_new_password(),
            AppModule="jobs:app",
            ShardIndexes=",".join(map(str, range(SHARDS))),
            DrainConcurrency=str(SHARDS),
            Inbox="fifo",
            IngestStreamArn=self._stream,
            IngestEventSources=SOURCE,
            Release=str(release),
        )
        self._drain = self.deployment.outputs["DrainFunctionName"]

    def drain_all(self) -> None:
        """Start a drain of each shard at one moment."""
        for shard in range(SHARDS):
            self._lambda.invoke(FunctionName=self._drain, InvocationType="Event", Payload=b'{"shard": %d}' % shard)

    @contextmanager
    def starting_drains(self) -> Iterator[None]:
        """Meanwhile a drain of each shard is started every few seconds."""
        stopped = threading.Event()

        def start() -> None:
            while not stopped.wait(_EVERY):
                self.drain_all()

        thread = threading.Thread(target=start)
        thread.start()
        try:
            yield
        finally:
            stopped.set()
            thread.join()

    def throttle(self, most: int) -> None:
        """So many drains at once."""
        self._lambda.put_function_concurrency(FunctionName=self._drain, ReservedConcurrentExecutions=most)

    def rotate(self) -> None:
        """A new user in the secret; the old one is gone, with its connections."""
        self._keep_new_password()
        old = self._users.pop(0)
        self._admin.acl_deluser(old)

    def verdict(self, accepted: dict[str, int], ledger: Path) -> Verdict:
        """What the checker says when all is done, or patience is over."""
        ends_at = time.monotonic() + _PATIENCE
        while True:
            verdict = judged(accepted, ledger.read_text().splitlines())
            if not verdict.lost or time.monotonic() > ends_at:
                return verdict
            time.sleep(0.5)

    def say_figures(self, pushing: Pushing, seconds: float, verdict: Verdict) -> None:
        """Print what was pushed, what Lambda measured, and the verdict."""
        pushed = sum(pushing.accepted.values())
        ways = ", ".join(f"{way} {count:,}" for way, count in pushing.by_way().items())
        _say(f"pushed       {pushed:,} in {seconds:.0f} s, {pushed / seconds:.1f} a second ({ways})")
        _say(f"slowest push {pushing.slowest:.2f} s")
        _say(f"drains       {self._sum('Invocations'):,.0f}, at most {self._most():.0f} at once")
        failed, dropped = self._sum("Errors"), self._sum("AsyncEventsDropped")
        _say(f"refused      {self._sum('Throttles'):,.0f} starts, {dropped:.0f} of them for good; {failed:.0f} failed")
        done = ", ".join(f"release {release} {count:,}" for release, count in sorted(verdict.releases.items()))
        _say(f"done         {verdict.done:,} ({done}; {verdict.repeats:,} repeats)")
        for name, wrong in (
            ("lost", verdict.lost),
            ("out of order", verdict.out_of_order),
            ("at once", verdict.overlaps),
        ):
            _say(f"{name:12} {len(wrong)}{' ' + '; '.join(wrong[:3]) if wrong else ''}")
        ringing = [each["AlarmName"] for each in self.deployment.alarms if each["StateValue"] == "ALARM"]
        _say(f"alarms       {', '.join(ringing) or 'none rings'}")

    def delete(self) -> None:
        """Take it away."""
        self.deployment.delete()
        self._cloud.client("dynamodb").delete_table(TableName=TABLE)

    def _keep_new_password(self) -> str:
        user, password = f"trial-{secrets.token_hex(3)}", secrets.token_hex(12)
        self._admin.execute_command("ACL", "SETUSER", user, "on", f">{password}", "~*", "&*", "+@all")
        self._users.append(user)
        server = urlsplit(self._url)
        text = f"redis://{user}:{password}@{server.hostname}:{server.port}/0"
        secret = self.deployment.keep_secret(text, "redis")
        self._cloud.client("secretsmanager").put_secret_value(SecretId=secret, SecretString=text)
        return secret

    def _sum(self, metric: str) -> float:
        return float(sum(point["Sum"] for point in self._points(metric, "Sum")))

    def _most(self) -> float:
        return float(max((point["Maximum"] for point in self._points("ConcurrentExecutions", "Maximum")), default=0))

    def _points(self, metric: str, statistic: str) -> list[Any]:
        answer = self._cloud.client("cloudwatch").get_metric_statistics(
            Namespace="AWS/Lambda",
            MetricName=metric,
            Dimensions=[{"Name": "FunctionName", "Value": self._drain}],
            StartTime=self._began_at - timedelta(minutes=1),
            EndTime=datetime.now(UTC) + timedelta(minutes=1),
            Period=60,
            Statistics=[statistic],
        )
        points: list[Any] = answer["Datapoints"]
        return points


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
