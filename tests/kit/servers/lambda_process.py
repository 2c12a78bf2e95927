"""One process of a Lambda function: the real runtime client, frozen while it has nothing to do, killed when late."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from queue import SimpleQueue
from typing import Final

from lowkiq_lambda.stack.cloud import reaper
from tests.kit.awake import AwakeTimer
from tests.kit.servers.lambda_api import LambdaEvent, RuntimeApi
from tests.kit.servers.lambda_outcome import Crashed, Facts, Invocation, Killed, Outcome, outcome_of

_EXIT_TIMEOUT: Final = 10.0
_START_TIMEOUT: Final = 60.0


class LambdaProcess:
    """Takes one invocation after the other, until it dies."""

    def __init__(
        self, handler: str, environment: Mapping[str, str], cwd: Path, log: Path, python: Sequence[str] = ()
    ) -> None:
        self._events: SimpleQueue[Invocation | None] = SimpleQueue()
        self._function_name = environment["AWS_LAMBDA_FUNCTION_NAME"]
        self._log = log
        self._log_from = log.stat().st_size if log.exists() else 0
        self._lock = threading.RLock()
        self._current: Invocation | None = None
        self._started_at = time.monotonic()
        self._answer: tuple[str, bytes] | None = None
        self._deadline = AwakeTimer(0.0, lambda: None)
        self._overdue = False
        self._handed = 0
        self._gone = threading.Event()
        self._started = threading.Event()
        self._api = RuntimeApi(self)
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                [*(python or [sys.executable]), "-m", "awslambdaric", handler],
                cwd=cwd,
                env={**environment, "AWS_LAMBDA_RUNTIME_API": self._api.address},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                # Ctrl-C in the terminal of the tests is not for the function.
                start_new_session=True,
            )
        self.pid = self._process.pid
        reaper.watch_process(self.pid)
        self._watcher = threading.Thread(target=self._watch, name="lambda-process-watch", daemon=True)
        self._watcher.start()

    @property
    def is_gone(self) -> bool:
        """Whether it has ended."""
        return self._gone.is_set()

    def wait_until_started(self) -> None:
        """Until it has imported the function, and asks for the first event; or is gone."""
        assert self._started.wait(_START_TIMEOUT), "it did not start"

    def hand(self, invocation: Invocation) -> None:
        """Thaw it, and let it have the event; its clock starts when it takes it."""
        with self._lock:
            assert self._current is None, "it is busy"
            self._current = invocation
            self._events.put(invocation)
            self.thaw()
            if self.is_gone:
                self._end(Crashed(exit_code=self._process.returncode, **self._facts()))

    def freeze(self) -> None:
        """Stop it in its tracks; returns when it stands still."""
        with self._lock:
            if not self.is_gone:
                os.kill(self.pid, signal.SIGSTOP)
                os.waitid(os.P_PID, self.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)

    def thaw(self) -> None:
        """Let it go on."""
        self._send(signal.SIGCONT)

    def kill(self) -> None:
        """End it with SIGKILL; returns when it is gone."""
        self._send(signal.SIGKILL)
        assert self._gone.wait(_EXIT_TIMEOUT)

    def time_out(self) -> None:
        """End it now as one whose time is over."""
        with self._lock:
            assert self._current
            self._kill_if_late(self._current)

    def close(self) -> None:
        """End it: between invocations as one that finds nobody to ask, so that it can write what it measured."""
        if self._current is None:
            self._events.put(None)
            self.thaw()
            self._gone.wait(_EXIT_TIMEOUT)
        self.kill()
        self._watcher.join()

    def next_event(self) -> LambdaEvent | None:
        """For the API: what came before is over, and until there is something to do it is frozen."""
        self._started.set()
        with self._lock:
            if self._answer:
                self.freeze()
                self._end(outcome_of(self._answer, self._facts()))
        invocation = self._events.get()
        if invocation is None or self.is_gone:
            return None
        with self._lock:
            self._handed += 1
            self._started_at = time.monotonic()
            self._deadline = AwakeTimer(invocation.timeout, self._kill_if_late, [invocation])
            self._deadline.start()
        deadline_at = time.time() + invocation.timeout
        return LambdaEvent(invocation.request_id, self._function_name, invocation.body, deadline_at)

    def posted(self, request_id: str, what: str, body: bytes) -> None:
        """For the API: an answer counts when the process asks for the next event, or ends."""
        with self._lock:
            if self._current and request_id in ("", self._current.request_id):
                self._answer = what, body

    def _send(self, number: signal.Signals) -> None:
        with self._lock:
            if not self.is_gone:
                # Not by Popen, which would look whether it has ended, and so take the news from the watcher.
                os.kill(self.pid, number)

    def _kill_if_late(self, invocation: Invocation) -> None:
        with self._lock:
            if self._current is invocation:
                self._overdue = self._answer is None
                self._send(signal.SIGKILL)

    def _watch(self) -> None:
        os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)
        with self._lock:
            exit_code = self._process.wait()
            reaper.forget_process(self.pid)
            self._gone.set()
            self._started.set()
            self._events.put(None)
            if self._current:
                self._end(self._outcome_of_death(exit_code))
        self._api.close()

    def _outcome_of_death(self, exit_code: int) -> Outcome:
        if self._overdue:
            return Killed(**self._facts())
        if self._answer:
            return outcome_of(self._answer, self._facts())
        return Crashed(exit_code=exit_code, **self._facts())

    def _facts(self) -> Facts:
        log = self._log.read_bytes()
        mine, self._log_from = log[self._log_from :], len(log)
        seconds = time.monotonic() - self._started_at
        return {"pid": self.pid, "cold": self._handed <= 1, "seconds": seconds, "log": mine.decode(errors="replace")}

    def _end(self, outcome: Outcome) -> None:
        assert self._current
        self._deadline.cancel()
        ended, self._current, self._answer = self._current, None, None
        ended.end(outcome)
