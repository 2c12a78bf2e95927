"""Execution environments of the local cloud's functions: a process each, warm until its code or its settings change.

The emulator has its own, which end at each update in the middle of what they do, and which wait for each other. Ours
start beside each other, go on to the end of their invocation with the code that they have, and die at the timeout.
"""

import hashlib
import importlib
import io
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Container, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Final, TypeAlias
from zipfile import ZipFile

_INIT_TIMEOUT: Final = 60.0
"""Seconds that a start may take. AWS gives it ten; two dozen starts at once on two processors need more."""
_IDLE: Final = 300.0
"""Seconds that an environment is kept without work."""
_STARTS_AT_ONCE: Final = 2 * (os.cpu_count() or 1)
_NICE: Final = 5
_SETTINGS: Final = ("CodeSha256", "Handler", "Timeout", "MemorySize", "Environment", "Role", "Version")
Code: TypeAlias = tuple[Mapping[str, Any], bytes]
"""The settings of a function, and its package."""
_UNPACKING: Final = threading.Lock()
_WATCHING: Final = threading.Lock()
"""The first to watch starts who ends functions with the cloud, however that ends."""


@dataclass
class InvocationEnding:
    """How an invocation ended: the `error` is none if the handler returned."""

    value: Any
    log: str
    error: str = ""
    message: str = ""


class ExecutionEnvironment:
    """A process of a function, which takes one event after the other."""

    def __init__(self, config: Mapping[str, Any], code: Path, folder: Path) -> None:
        self.settings = settings_of(config)
        self.last_used = time.monotonic()
        self._timeout = float(config["Timeout"])
        self._log_path = folder / f"{id(self)}-{time.monotonic_ns()}.log"
        self._read = 0
        self._late = False
        module, _, function = str(config["Handler"]).rpartition(".")
        variables = config.get("Environment", {}).get("Variables", {})
        with self._log_path.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-P", str(_script(folder))],
                cwd=code,
                env={**variables, **_variables(config, code)},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                # What the handler starts ends with it, and holds no pipe open behind it.
                process_group=0,
            )
        self._reaper: Any = importlib.import_module("reaper")
        with _WATCHING:
            self._reaper.watch_process(-self._process.pid)
        # On AWS functions take nothing from the services that they call.
        with suppress(ProcessLookupError):
            os.setpriority(os.PRIO_PROCESS, self._process.pid, _NICE)
        self._input: IO[str] = self._process.stdin  # type: ignore[assignment]  # is a pipe
        self._output: IO[str] = self._process.stdout  # type: ignore[assignment]  # is a pipe
        start = {
            "code_dir": str(code),
            "module": module.replace("/", "."),
            "handler": function,
            "env": variables,
            "function_name": config["FunctionName"],
            "memory": config["MemorySize"],
            "arn": config["FunctionArn"],
        }
        self._start = self._told(start, _INIT_TIMEOUT)

    @property
    def is_usable(self) -> bool:
        """Whether it may take another event."""
        return self._process.poll() is None

    def invoke(self, event: object, context: Mapping[str, Any]) -> InvocationEnding:
        """Let the handler have the event. The process is killed when its time is over."""
        answer = self._start
        if answer and answer["status"] == "ready":
            answer = self._told({"event": event, "ctx": context}, self._timeout)
        self.last_used = time.monotonic()
        log = self._new_lines()
        if answer is None:
            what, message = "Runtime.ExitError", f"The function's process ended: {self._process.wait()}."
            if self._late:
                what, message = "Sandbox.Timedout", f"Task timed out after {self._timeout:.2f} seconds"
            return InvocationEnding(None, f"{log}\n{message}".strip(), what, message)
        if answer["status"] == "ok":
            return InvocationEnding(answer["result"], log)
        if self._start and self._start["status"] != "ready":
            self.end()
        return InvocationEnding(
            None, f"{log}\n{answer.get('trace', answer['error'])}".strip(), "Unhandled", answer["error"]
        )

    def end(self) -> None:
        """Kill the process, and those that it started."""
        self._kill()
        self._process.wait()
        self._reaper.forget_process(-self._process.pid)
        for pipe in (self._input, self._output):
            with suppress(OSError):
                pipe.close()
        self._log_path.unlink(missing_ok=True)

    def _told(self, message: Mapping[str, Any], timeout: float) -> dict[str, Any] | None:
        """The answer of the process; none if it ends, which it does after so many seconds."""
        killer = threading.Timer(timeout, self._kill_late)
        killer.start()
        try:
            self._input.write(json.dumps(message) + "\n")
            self._input.flush()
            for line in self._output:
                if line.startswith('{"status":'):
                    answer: dict[str, Any] = json.loads(line)
                    return answer
        except OSError:
            pass
        finally:
            killer.cancel()
        return None

    def _kill_late(self) -> None:
        self._late = True
        self._kill()

    def _kill(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)

    def _new_lines(self) -> str:
        with self._log_path.open("rb") as log:
            log.seek(self._read)
            lines = log.read()
        self._read += len(lines)
        return lines.decode(errors="replace")


@dataclass
class Environments:
    """Those of all functions: an invocation takes one, and puts it back."""

    folder: Path
    _idle: dict[str, list[ExecutionEnvironment]] = field(default_factory=dict)
    _starting: int = 0
    _changed: threading.Condition = field(default_factory=threading.Condition)

    def take(self, current: Callable[[], Code]) -> ExecutionEnvironment:
        """A warm one, or a new one, with the `current` code. Those with an older code or older settings end.

        Starts wait for each other beyond some at once, or for a warm one: more would only slow each other down. An
        update may come meanwhile.
        """
        with self._changed:
            while True:
                config, packed = current()
                if warm := self._warm(_key(config), settings_of(config)):
                    return warm
                if self._starting < _STARTS_AT_ONCE:
                    break
                self._changed.wait()
            self._starting += 1
        try:
            return ExecutionEnvironment(config, _unpacked(packed, self.folder), self.folder)
        finally:
            with self._changed:
                self._starting -= 1
                self._changed.notify_all()

    def put_back(self, environment: ExecutionEnvironment, current: Callable[[], Code]) -> None:
        """It may have the next event, if it lives and no update came."""
        config, _ = current()
        if environment.is_usable and environment.settings == settings_of(config):
            with self._changed:
                self._idle.setdefault(_key(config), []).append(environment)
                self._changed.notify_all()
        else:
            environment.end()

    def _warm(self, key: str, settings: str) -> ExecutionEnvironment | None:
        fitting = []
        for one in self._idle.pop(key, []):
            if one.settings == settings and one.is_usable:
                fitting.append(one)
            else:
                one.end()
        self._idle[key] = fitting
        return fitting.pop() if fitting else None

    def sweep(self, functions: Container[str]) -> None:
        """End those that wait for long, and those of functions that are gone."""
        latest = time.monotonic() - _IDLE
        with self._changed:
            ended = []
            for key, idle in self._idle.items():
                ended += [one for one in idle if one.last_used < latest or key.split(":")[0] not in functions]
                self._idle[key] = [one for one in idle if one not in ended]
        for one in ended:
            one.end()


def settings_of(config: Mapping[str, Any]) -> str:
    """The settings that an environment starts with: if they change, another one is needed."""
    return json.dumps([config.get(name) for name in _SETTINGS], sort_keys=True)


def _key(config: Mapping[str, Any]) -> str:
    return f"{config['FunctionName']}:{config['Version']}"


def _unpacked(packed: bytes, folder: Path) -> Path:
    """The code in a folder, unpacked once for all environments."""
    code = folder / hashlib.sha256(packed).hexdigest()[:20]
    with _UNPACKING:
        if not code.exists():
            unfinished = code.with_suffix(".unfinished")
            with ZipFile(io.BytesIO(packed)) as archive:
                archive.extractall(unfinished)
            unfinished.rename(code)
    return code


def _script(folder: Path) -> Path:
    """The emulator's own runtime: it imports the handler, and speaks JSON by the lines of its pipes."""
    script = folder / "runtime.py"
    if not script.exists():
        runtime: Any = importlib.import_module("ministack.core.lambda_runtime")
        written = folder / f"runtime.{threading.get_ident()}"
        written.write_text(runtime._PYTHON_WORKER_SCRIPT)
        written.rename(script)
    return script


def _variables(config: Mapping[str, Any], code: Path) -> dict[str, str]:
    """The variables that Lambda sets itself; AWS is this cloud."""
    runtime: Any = importlib.import_module("ministack.core.lambda_runtime")
    return {
        "PATH": os.environ["PATH"],
        "HOME": os.environ["HOME"],
        "TMPDIR": os.environ["TMPDIR"],
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{os.environ['GATEWAY_PORT']}",
        "AWS_REGION": "us-east-1",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_EXECUTION_ENV": f"AWS_Lambda_{config['Runtime']}",
        "AWS_LAMBDA_FUNCTION_NAME": config["FunctionName"],
        "AWS_LAMBDA_FUNCTION_VERSION": config["Version"],
        "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": str(config["MemorySize"]),
        "AWS_LAMBDA_INITIALIZATION_TYPE": "on-demand",
        "AWS_LAMBDA_LOG_STREAM_NAME": f"[{config['Version']}]{time.monotonic_ns():x}",
        "LAMBDA_TASK_ROOT": str(code),
        "_LAMBDA_FUNCTION_ARN": config["FunctionArn"],
        "_LAMBDA_TIMEOUT": str(config["Timeout"]),
        **runtime.execution_credentials(config),
    }
