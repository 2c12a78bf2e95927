"""AWS on this machine: ministack in an environment of its own, its data gone when it stops.

Its functions are processes of its interpreter, which is why it has an environment apart: what a function imports
must come from the function's own package, and not from what the tests happen to have.
"""

import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Self
from urllib.error import URLError
from urllib.request import urlopen

from tests.kit.servers import reaper
from tests.kit.servers.ports import HOST, free_port
from tests.kit.servers.started import Started

ACCOUNT: Final = "000000000000"
REGION: Final = "us-east-1"

_PROGRAM: Final = Path(__file__).parents[3] / ".tools" / "cloud" / "bin" / "ministack"
_START_TIMEOUT: Final = 60.0
_PORTS_TO_TRY: Final = 5


def cloud_program() -> Path:
    """The program that runs; `make setup` puts it there."""
    program = Path(os.environ.get("LOWKIQ_TEST_CLOUD") or _PROGRAM)
    assert program.exists(), f"there is no local cloud at {program}: run `make setup`"
    return program


class LocalCloud(Started):
    """One account in one region, empty at the start, on a port of loopback; `close` leaves nothing.

    `enforces_rights`: roles may do what their policies allow, and nothing else; whoever comes by `environment` or
    `client` may do everything. Else everybody may, and roles need not exist.
    """

    def __init__(self, *, enforces_rights: bool = False) -> None:
        self.port = free_port()
        self.folder = Path(tempfile.mkdtemp(prefix="lowkiq-cloud-"))
        reaper.watch_folder(self.folder)
        self._enforces_rights = enforces_rights
        self._clients: dict[str, Any] = {}
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Where all of AWS is."""
        return f"http://{HOST}:{self.port}"

    @property
    def environment(self) -> dict[str, str]:
        """The variables with which a program takes it for AWS."""
        return {
            "AWS_ENDPOINT_URL": self.url,
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_DEFAULT_REGION": REGION,
            "AWS_REGION": REGION,
            "AWS_EC2_METADATA_DISABLED": "true",
        }

    @property
    def pid(self) -> int:
        """The process, which must have been started; its group has the functions' processes too."""
        assert self._process is not None, "the local cloud is not started"
        return self._process.pid

    def client(self, service: str) -> Any:
        """A boto3 client of the service, the same one for each call; it tries nothing twice."""
        if service not in self._clients:
            import boto3  # noqa: PLC0415 - takes half a second, and most tests have no use for it
            from botocore.config import Config  # noqa: PLC0415 - as boto3

            # Its types know only the services that have stubs.
            session: Any = boto3.session.Session("test", "test", region_name=REGION)
            self._clients[service] = session.client(
                service,
                endpoint_url=self.url,
                config=Config(retries={"total_max_attempts": 1}, read_timeout=120, s3={"addressing_style": "path"}),
            )
        return self._clients[service]

    def log(self) -> str:
        """What the local cloud itself printed."""
        path = self.folder / "cloud.log"
        return path.read_text(errors="replace") if path.exists() else ""

    def start(self) -> Self:
        """Start it and wait until it answers; where its port is taken, on another."""
        for _ in range(_PORTS_TO_TRY):
            self._launch()
            if self._answers_in_time():
                return self
            self._stop()
            self.port = free_port()
        raise AssertionError(f"the local cloud does not start:\n{self.log()}")

    def close(self) -> None:
        """End it and its functions, and remove all that it kept."""
        for client in self._clients.values():
            client.close()
        self._clients.clear()
        self._stop()
        shutil.rmtree(self.folder, ignore_errors=True)
        reaper.forget_folder(self.folder)

    def _launch(self) -> None:
        program = cloud_program()
        with (self.folder / "cloud.log").open("ab") as log:
            # Nothing of our environment: it would be in every function's. A session of its own: its group can be
            # ended as a whole, and Ctrl-C is for the tests, which end it in their own order.
            self._process = subprocess.Popen(
                [program],
                cwd=self.folder,
                env={
                    "PATH": f"{program.parent}:/usr/bin:/bin",
                    "HOME": str(self.folder),
                    "TMPDIR": str(self.folder),
                    "BIND_HOST": HOST,
                    "GATEWAY_PORT": str(self.port),
                    # These listen on all addresses, unless told otherwise.
                    "IOT_MTLS_ENABLED": "0",
                    "SFTP_HOST": HOST,
                    "AUTH": str(self._enforces_rights).lower(),
                    "LAMBDA_EXECUTOR": "local",
                    "DOCKER_HOST": "unix:///nonexistent.sock",
                },
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        reaper.watch_process(-self._process.pid)

    def _answers_in_time(self) -> bool:
        deadline = time.monotonic() + _START_TIMEOUT
        while self._process is not None and self._process.poll() is None and time.monotonic() < deadline:
            try:
                with urlopen(f"{self.url}/_ministack/health", timeout=5) as answer:  # noqa: S310 - our own http
                    json.load(answer)
            except (OSError, URLError, ValueError):
                time.sleep(0.02)
            else:
                return True
        return False

    def _stop(self) -> None:
        if self._process is None:
            return
        # With the processes of functions. It keeps nothing that is worth an end in good order, which takes seconds.
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        reaper.forget_process(-self._process.pid)
        self._process = None
