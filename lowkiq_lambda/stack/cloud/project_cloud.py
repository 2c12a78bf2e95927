"""A project's stack on this machine: a Valkey, AWS, the packages, the stack, until somebody ends it."""

import json
import platform
import secrets
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

from lowkiq_lambda.base.errors import ConfigError
from lowkiq_lambda.providers.embedded.server import open_embedded
from lowkiq_lambda.stack.cloud import reaper
from lowkiq_lambda.stack.cloud.deployment import PACKAGES, Deployment, DeploymentFailed
from lowkiq_lambda.stack.cloud.server import CloudServer, cloud_program, is_installed
from lowkiq_lambda.stack.scaffold.owned import FOLDER, TEMPLATE, stack_folder

STACK: Final = "lowkiq-local"
_DATA: Final = ".lowkiq"


class StackProject(NamedTuple):
    """What is deployed."""

    root: Path
    app: str
    """As MODULE:APP, for the functions."""
    shards: int
    """Of its widest queue: each has a schedule."""

    @property
    def code(self) -> Path:
        """The folder of the app's code. Raises ConfigError."""
        package = self.root / self.app.partition(":")[0].partition(".")[0]
        folder = package if package.is_dir() else self.root / "app"
        if not folder.is_dir():
            raise ConfigError(f"{self.app} is in no folder of {self.root}: its code must be in a package, or in app/.")
        return folder

    @property
    def template(self) -> Path:
        """That of the project; the library's, where it has none."""
        own = self.root / FOLDER / TEMPLATE
        return own if own.exists() else stack_folder() / TEMPLATE


class Deployed(NamedTuple):
    """A stack that runs."""

    cloud: CloudServer
    deployment: Deployment

    def tick(self) -> Any:  # noqa: ANN401 - whatever the function answers
        """What an invocation answers that ticks, and drains all shards at once."""
        name = self.deployment.outputs["DrainFunctionName"]
        answer = self.cloud.client("lambda").invoke(FunctionName=name, Payload=b'{"tick": true}')
        return json.load(answer["Payload"])

    @property
    def shows_its_dashboard(self) -> bool:
        """Whether a page is served at the dashboard's URL: the one that asks for the password."""
        # A browser knows that all names below localhost are this machine; not every resolver does.
        host = urlsplit(self.deployment.dashboard_url).netloc
        try:
            with urlopen(Request(self.cloud.url, headers={"Host": host}), timeout=30):  # noqa: S310 - our own http
                return True
        except OSError:
            return False


@contextmanager
def running(project: StackProject, say: Callable[[str], None]) -> Iterator[Deployed]:
    """Start all of it, and end all of it. Raises CloudFailed, ConfigError, DeploymentFailed, EmbeddedServerError."""
    code, data = project.code, project.root / _DATA
    with ExitStack() as stack:
        server = stack.enter_context(open_embedded(data))
        say(f"Valkey       {server.url}")
        if not is_installed(data):
            say("installing the local cloud into .lowkiq, once")
        cloud = stack.enter_context(CloudServer(cloud_program(data), enforces_rights=True))
        say(f"AWS          {cloud.access}")
        deployment = Deployment(cloud, STACK, project.template)
        started_at = time.monotonic()
        packages = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="lowkiq-packages-")))
        reaper.watch_folder(packages)
        stack.callback(reaper.forget_folder, packages)
        build_packages(code, packages)
        deployment.upload(packages)
        password = secrets.token_urlsafe(12)
        deployment.create(
            RedisUrl=server.url,
            AppModule=project.app,
            ShardIndexes=",".join(map(str, range(project.shards))),
            DashboardSecretArn=deployment.keep_secret(password),
        )
        say(f"stack        {STACK}, built and deployed in {time.monotonic() - started_at:.1f} s")
        say(f"dashboard    {deployment.dashboard_url}  (password {password})")
        yield Deployed(cloud, deployment)


def build_packages(app: Path, into: Path) -> None:
    """Build the package of each function, with the app in the folder `app`. Raises DeploymentFailed."""
    architecture = "arm64" if platform.machine() in {"arm64", "aarch64"} else "x86_64"
    target = f"python{sys.version_info[0]}.{sys.version_info[1]}-{architecture}"

    def build(function: str) -> None:
        command = [sys.executable, "-m", "lowkiq_lambda.stack.packaging", function, target, str(into / function)]
        done = subprocess.run([*command, "--app", str(app)], capture_output=True, text=True, check=False)
        if done.returncode:
            raise DeploymentFailed(f"{function} cannot be built:\n{done.stdout}{done.stderr}")

    with ThreadPoolExecutor() as pool:
        list(pool.map(build, {*PACKAGES.values()}))
