"""The process of the local cloud: ministack behind a guard, on a port of loopback, its data gone when it stops."""

import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import venv
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from lowkiq_lambda.base.errors import LowkiqError
from lowkiq_lambda.stack.cloud import reaper
from lowkiq_lambda.stack.cloud.access import HOST, CloudAccess
from lowkiq_lambda.stack.scaffold.owned import lock_file

_GUARD: Final = Path(__file__).parent / "inside" / "guard.py"
_START_TIMEOUT: Final = 60.0
_REST: Final = 0.02
_PORTS_TO_TRY: Final = 5
# Outside of the range that the system gives to clients: one could be given the port of a cloud that starts again.
_LOWEST_PORT: Final = 11_000
_HIGHEST_PORT: Final = 31_999

_FOLDER: Final = "cloud-environment"
_VARIABLE: Final = "LOWKIQ_TEST_CLOUD"


class CloudServer(CloudAccess):
    """One account in one region, empty at the start; `close` leaves nothing, nor does an end by SIGKILL.

    `enforces_rights`: roles may do what their policies allow, and nothing else; callers by `environment` or
    `client` may do everything. Else every caller may, and roles need not exist.
    """

    def __init__(self, program: Path, *, enforces_rights: bool = False) -> None:
        # The key is of this run: with it one may run code as the user of this process.
        super().__init__(free_port(), f"AKIA{secrets.token_hex(8).upper()}", secrets.token_urlsafe(30))
        self.folder = Path(tempfile.mkdtemp(prefix="lowkiq-cloud-"))
        reaper.watch_folder(self.folder)
        self._program = program
        self._enforces_rights = enforces_rights
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        try:
            return self.start()
        except BaseException:
            self.close()
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def pid(self) -> int:
        """The process, which must have been started; its session has the functions' processes too."""
        if self._process is None:
            raise CloudFailed("The local cloud is not started.")
        return self._process.pid

    def log(self) -> str:
        """What the local cloud itself printed."""
        path = self.folder / "cloud.log"
        return path.read_text(errors="replace") if path.exists() else ""

    def start(self) -> Self:
        """Start it and wait until it answers; where its port is taken, on another. Raises CloudFailed."""
        for _ in range(_PORTS_TO_TRY):
            self.launch()
            if self._answers_in_time():
                return self
            self.stop()
            self.port = free_port()
        raise CloudFailed(f"The local cloud does not start:\n{self.log()}")

    def close(self) -> None:
        """End it and its functions, and remove all that it kept."""
        self.close_clients()
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)
        reaper.forget_folder(self.folder)

    def launch(self) -> None:
        """Start the process, without waiting for it."""
        with (self.folder / "cloud.log").open("ab") as log:
            # Without our environment: it would be in every function's. A session of its own: its group can be
            # ended as a whole, and Ctrl-C reaches us alone, so that we end the group in our own order.
            self._process = subprocess.Popen(
                # Without the folder of the guard among its modules.
                [self._program.with_name("python"), "-P", _GUARD],
                cwd=self.folder,
                env={
                    "PATH": f"{self._program.parent}:/usr/bin:/bin",
                    "HOME": str(self.folder),
                    "TMPDIR": str(self.folder),
                    "BIND_HOST": HOST,
                    "GATEWAY_PORT": str(self.port),
                    # These listen on all addresses, unless told otherwise.
                    "IOT_MTLS_ENABLED": "0",
                    "SFTP_HOST": HOST,
                    "AWS_ACCESS_KEY_ID": self.key,
                    "AWS_SECRET_ACCESS_KEY": self.secret,
                    "AUTH": str(self._enforces_rights).lower(),
                    "LAMBDA_EXECUTOR": "local",
                    "LAMBDA_ACCOUNT_CONCURRENCY": "1000",
                    "DOCKER_HOST": "unix:///nonexistent.sock",
                },
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        reaper.watch_process(-self._process.pid)

    def stop(self) -> None:
        """End the process, if it runs, with those of functions."""
        if self._process is None:
            return
        # It keeps nothing that is worth an end in good order, which takes seconds.
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        reaper.forget_process(-self._process.pid)
        self._process = None

    def _answers_in_time(self) -> bool:
        deadline = time.monotonic() + _START_TIMEOUT
        while self._process is not None and self._process.poll() is None and time.monotonic() < deadline:
            if self.answers():
                return True
            time.sleep(_REST)
        return False


def free_port() -> int:
    """A port of loopback that nobody has now; somebody may take it before its user does."""
    while True:
        port = _LOWEST_PORT + secrets.randbelow(_HIGHEST_PORT - _LOWEST_PORT)
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            with suppress(OSError):
                probe.bind((HOST, port))
                return port


class CloudFailed(LowkiqError):
    """The local cloud cannot be installed or started."""


def cloud_program(data_dir: Path) -> Path:
    """The program of the local cloud, installed below `data_dir` at the first call. Raises CloudFailed.

    LOWKIQ_TEST_CLOUD may name one that is there.
    """
    if program := os.environ.get(_VARIABLE):
        return Path(program)
    lock = lock_file("cloud")
    folder = data_dir / _FOLDER
    done, mark = folder / ".done", _mark(lock)
    if not done.exists() or done.read_text(encoding="utf-8") != mark:
        _install(lock, folder)
        done.write_text(mark, encoding="utf-8")
    return folder / "bin" / "ministack"


def is_installed(data_dir: Path) -> bool:
    """Whether the first call is over, which takes a minute."""
    done = data_dir / _FOLDER / ".done"
    return bool(os.environ.get(_VARIABLE)) or (done.exists() and done.read_text("utf-8") == _mark(lock_file("cloud")))


def _mark(lock: Path) -> str:
    """Another lock or another Python makes another environment."""
    return sha256(lock.read_bytes() + sys.version.encode()).hexdigest()


def _install(lock: Path, folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    venv.create(folder, with_pip=True)
    command = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    done = subprocess.run([*command, "--require-hashes", "--requirement", str(lock)], check=False)
    if done.returncode:
        raise CloudFailed(f"The packages of {lock.name} could not be installed into {folder}, see above.")
