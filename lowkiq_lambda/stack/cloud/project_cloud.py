"""A project's stack on this machine: a Valkey, AWS, the packages, the stack, until somebody ends it."""

import json
import os
import platform
import secrets
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple, Self
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

from lowkiq_lambda.base.errors import ConfigError
from lowkiq_lambda.providers.embedded.server import open_embedded
from lowkiq_lambda.stack.cloud import reaper
from lowkiq_lambda.stack.cloud.access import CloudAccess
from lowkiq_lambda.stack.cloud.deployment import PACKAGES, Deployment, DeploymentFailed
from lowkiq_lambda.stack.cloud.parameters import is_foreign_secret, parameters_of
from lowkiq_lambda.stack.cloud.server import CloudServer, cloud_program, is_installed
from lowkiq_lambda.stack.scaffold.owned import FOLDER, TEMPLATE, stack_folder

STACK: Final = "lowkiq-local"
_DATA: Final = ".lowkiq"
_RUNNING: Final = "cloud.json"


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

    cloud: CloudAccess
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
def running(project: StackProject, words: Sequence[str], say: Callable[[str], None]) -> Iterator[Deployed]:
    """Start all of it, with parameters as NAME=VALUE, and end all of it.

    Raises CloudFailed, ConfigError, DeploymentFailed, EmbeddedServerError.
    """
    code, data = project.code, project.root / _DATA
    parameters = parameters_of(project.root, project.template, words, say)
    with ExitStack() as stack:
        server = stack.enter_context(open_embedded(data))
        say(f"Valkey       {server.url}")
        if not is_installed(data):
            say("installing the local cloud into .lowkiq, once")
        cloud = stack.enter_context(CloudServer(cloud_program(data), enforces_rights=True))
        say(f"AWS          {cloud.access}")
        deployment = Deployment(cloud, STACK, project.template)
        password = secrets.token_urlsafe(12)
        own = {
            "AppModule": project.app,
            "ShardIndexes": ",".join(map(str, range(project.shards))),
            "DashboardSecretArn": deployment.keep_secret(password),
        }
        # The template takes indexes for schedules of shards alone.
        if parameters.get("ShardSchedules", "true") != "true":
            del own["ShardIndexes"]
        started_at = time.monotonic()
        _build_and_upload(deployment, code)
        values = own | _with_redis(deployment, parameters, server.url)
        with _refusals():
            deployment.create(**values)
        say(f"stack        {STACK}, built and deployed in {time.monotonic() - started_at:.1f} s")
        if "RedisSecretArn" in values:
            say(f"secret       {values['RedisSecretArn']}, with the URL of Redis")
        say(f"dashboard    {deployment.dashboard_url}  (password {password})")
        access = _Access(cloud.port, cloud.key, cloud.secret)
        stack.enter_context(access.kept(data / _RUNNING))
        yield Deployed(cloud, deployment)


def deploy_again(project: StackProject, words: Sequence[str], say: Callable[[str], None]) -> Deployed | None:
    """Deploy into the project's cloud that runs in another process; None if none does.

    Raises ConfigError, DeploymentFailed, EmbeddedServerError.
    """
    data = project.root / _DATA
    access = _Access.read(data / _RUNNING)
    cloud = CloudAccess(*access) if access else None
    if cloud is None or not cloud.answers():
        return None
    parameters = parameters_of(project.root, project.template, words, say)
    deployment = Deployment(cloud, STACK, project.template)
    started_at = time.monotonic()
    _build_and_upload(deployment, project.code)
    with open_embedded(data) as server, _refusals():
        deployment.update(**_with_redis(deployment, parameters, server.url))
    say(f"stack        {STACK}, built and deployed again in {time.monotonic() - started_at:.1f} s")
    return Deployed(cloud, deployment)


@contextmanager
def _refusals() -> Iterator[None]:
    """Makes a sentence for the user of CloudFormation's refusal of a value."""
    from botocore.exceptions import ClientError  # noqa: PLC0415 - as boto3 in `CloudAccess.client`

    try:
        yield
    except ClientError as error:
        raise DeploymentFailed(str(error)) from None


class _Access(NamedTuple):
    """The way to a cloud of another process, in a file for its user alone."""

    port: int
    key: str
    secret: str

    @contextmanager
    def kept(self, path: Path) -> Iterator[None]:
        path.unlink(missing_ok=True)
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
            json.dump(self, file)
        try:
            yield
        finally:
            path.unlink(missing_ok=True)

    @classmethod
    def read(cls, path: Path) -> Self | None:
        try:
            return cls(*json.loads(path.read_text(encoding="utf-8")))
        except (OSError, ValueError):
            return None


def _with_redis(deployment: Deployment, parameters: Mapping[str, str], url: str) -> dict[str, str]:
    """The parameters, with the server of this machine as the stack finds the one of AWS: by a secret, or by a URL."""
    if is_foreign_secret(parameters.get("RedisSecretArn", "")):
        return {**parameters, "RedisSecretArn": deployment.keep_secret(url, "redis")}
    return {"RedisUrl": "" if "RedisSecretArn" in parameters else url, **parameters}


def _build_and_upload(deployment: Deployment, code: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="lowkiq-packages-") as name:
        packages = Path(name)
        reaper.watch_folder(packages)
        build_packages(code, packages)
        deployment.upload(packages)
    reaper.forget_folder(packages)


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
