"""The heartbeat of a process that drains: it tells every few seconds that it lives, and what it does.

It hears in answer that it is to be quiet, or to stop. A heartbeat that is missing ends nothing: only leases say who may
drain a shard.
"""

import logging
import os
import secrets
import socket
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from threading import Event, Thread
from time import process_time
from typing import Final

import msgspec
from msgspec import UNSET

from lowkiq_lambda.base.errors import BackendError, BackendUnavailable
from lowkiq_lambda.engine.drainer import Drainer
from lowkiq_lambda.settings.protocols import do_nothing
from lowkiq_lambda.store.shard.heartbeats import HeartbeatSender
from lowkiq_lambda.views.processes import Doing, Process, ProcessKind, ProcessState

logger = logging.getLogger(__name__)

VERSION: Final = "0.1.0"
"""Of the library: to read it from the package's metadata takes longer than a short invocation."""
SHOWN_IDS: Final = 3
SLOW: Final = 0.05
"""Seconds of a round trip that are too many, if none of the last READINGS took less."""
READINGS: Final = 5
_END: Final = 0.25
"""Seconds for which the end waits for a heartbeat that is under way."""
_KIBIBYTE: Final = 1024
_LAMBDA_MEMORY: Final = "AWS_LAMBDA_FUNCTION_MEMORY_SIZE"
"""Megabytes of a function, by which Lambda gives it processors."""
_OF_A_PROCESSOR: Final = 1_769
_QUOTA: Final = Path("/sys/fs/cgroup/cpu.max")
"""Microseconds of processors in each period of so many: the limit of a container."""
_MOST_MEMORY: Final = Path("/sys/fs/cgroup/memory.max")
"""Bytes: that of a container."""
_MEBIBYTE: Final = 1024**2
_LATELY: Final = 300.0
"""Seconds for which the most memory that a process used counts: what it needed before may not be why it died."""
_WARNED_OF_MEMORY: Final[set[int]] = set()
"""The process, once it has logged that it is near its limit; a fork of it is another one."""


class RecentPeak:
    """The most memory that a process used as of late. The system's own mark of that never falls."""

    def __init__(self) -> None:
        self._mark = self._most = 0
        self._at = 0.0

    def note(self, rss: int, mark: int, now: float) -> int:
        """Take in what is used now, and the system's mark, in bytes; the most as of late."""
        used = rss if mark == self._mark else max(rss, mark)
        if used >= self._most or now - self._at > _LATELY:
            self._most, self._at = used, now
        self._mark = mark
        return self._most


_PEAK: Final = RecentPeak()
"""That of this process: an environment of Lambda has a heartbeat for each invocation."""


class Heartbeat:
    """The heartbeats of one process. Its thread ends with it alone: an error is logged, and the next one comes."""

    def __init__(
        self,
        drainer: Drainer,
        kind: ProcessKind,
        threads: int,
        obey: Callable[[str], object],
        state: Callable[[], ProcessState] = lambda: "running",
    ) -> None:
        """`obey` gets "quiet" or "stop", each once, in the heartbeat's thread."""
        self.on_heartbeat: Callable[[], object] = do_nothing
        """Called before each heartbeat."""
        self.is_heard = False
        """Whether Redis took the last heartbeat."""
        self.made = 0
        """How many heartbeats Redis has taken."""
        self._drainer = drainer
        self._kind = kind
        self._threads = threads
        self._obey = obey
        self._state = state
        self._host = socket.gethostname()
        self.id = f"{self._host}:{os.getpid()}:{secrets.token_hex(3)}"
        self.sender = HeartbeatSender(drainer.backend, self.id)
        self._began_at = drainer.clock.monotonic()
        self._readings: deque[float] = deque(maxlen=READINGS)
        self._worked, self._worked_at = process_time(), self._began_at
        self._cores = usable_cores()
        self._memory = usable_memory()
        self._order = ""
        self._has_complained = False
        self._news = Event()
        self._has_ended = False
        self._thread: Thread | None = None

    def begin(self, first_in: float = 0.0) -> None:
        """Send heartbeats from now on, or for the first time in so many seconds, until the end."""
        self._thread = Thread(target=self._run, args=(first_in,), name="lowkiq-heartbeat", daemon=True)
        self._thread.start()

    def send_soon(self) -> None:
        """There is news to tell."""
        self._news.set()

    def end(self) -> None:
        """No heartbeat is sent any more."""
        self._has_ended = True
        self._news.set()
        if self._thread is not None:
            self._thread.join(_END)

    def told(self) -> Process:
        """The current record of the process."""
        now, monotonic = self.sender.now(), self._drainer.clock.monotonic()
        rss, mark = resident_memory()
        peak = _PEAK.note(rss, mark, monotonic)
        process = Process(
            host=self._host,
            pid=os.getpid(),
            kind=self._kind,
            version=VERSION,
            release=self._drainer.config.release or UNSET,
            since=now - (monotonic - self._began_at),
            threads=self._threads,
            state=self._state(),
            doing=tuple(
                _doing(fields, now - (monotonic - begun_at)) for fields, begun_at in self._drainer.running_batches()
            ),
            rss=rss,
            peak=peak,
            memory=self._memory,
            cpu=self._cpu(monotonic),
            cores=self._cores,
            round_trip=self._readings[-1] if self._readings else None,
            is_slow=self._is_slow,
        )
        if process.is_near_limit and process.pid not in _WARNED_OF_MEMORY:
            # No process logs its own death by its memory.
            _WARNED_OF_MEMORY.add(process.pid)
            text = "this process has used %d of %d MB of memory: it is killed without a word if it needs more"
            logger.warning(text, peak // _MEBIBYTE, self._memory // _MEBIBYTE)
        return process

    def _cpu(self, now: float) -> float | None:
        """The processors at work since the record before; None where no time has passed."""
        worked, seconds = process_time(), now - self._worked_at
        if seconds <= 0:
            return None
        cpu = (worked - self._worked) / seconds
        self._worked, self._worked_at = worked, now
        return round(cpu, 3)

    @property
    def _is_slow(self) -> bool:
        return len(self._readings) == READINGS and min(self._readings) > SLOW

    def _run(self, first_in: float) -> None:
        self._news.wait(first_in)
        while not self._has_ended:
            self._news.clear()
            try:
                self._send()
            except Exception:
                logger.exception("a heartbeat of this process raised")
            self._news.wait(self._drainer.config.heartbeat_interval)

    def _send(self) -> None:
        self.on_heartbeat()
        clock = self._drainer.clock
        process, asked_at = self.told(), clock.monotonic()
        try:
            order = self.sender.send(process)
        except BackendError as error:
            self.is_heard = False
            # Other parts log an outage.
            if not isinstance(error, BackendUnavailable) and not self._has_complained:
                self._has_complained = True
                logger.warning("this process cannot tell that it lives: %s", error)
            return
        self.is_heard, self._has_complained = True, False
        self.made += 1
        self._note(clock.monotonic() - asked_at)
        if order != self._order and not self._has_ended:
            self._order = order
            self._obey(order)

    def _note(self, round_trip: float) -> None:
        was_slow = self._is_slow
        self._readings.append(round_trip)
        if self._is_slow and not was_slow:
            logger.warning(
                "Redis is slow to answer: the last %d heartbeats took more than %d ms each; look at its load, and "
                "whether it is in another region",
                READINGS,
                SLOW * 1_000,
                extra={"slowest": round(max(self._readings), 3)},
            )


def _doing(fields: Mapping[str, object], since: float) -> Doing:
    doing = msgspec.convert({**fields, "since": since}, Doing)
    return msgspec.structs.replace(doing, ids=doing.ids[:SHOWN_IDS])


def usable_cores() -> float:
    """How many processors this process may use, by its affinity, and by the limit of its container or function."""
    if memory := os.environ.get(_LAMBDA_MEMORY, ""):
        return float(memory) / _OF_A_PROCESSOR if memory.isdigit() else 1.0
    cores = float(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)
    with suppress(OSError, ValueError):
        quota, period = _QUOTA.read_text().split()
        if quota != "max":
            cores = min(cores, int(quota) / int(period))
    return cores


def usable_memory() -> int:
    """How many bytes this process may use, by the limit of its function or container; 0 if there is none."""
    if memory := os.environ.get(_LAMBDA_MEMORY, ""):
        return int(memory) * _MEBIBYTE if memory.isdigit() else 0
    with suppress(OSError, ValueError):
        return int(_MOST_MEMORY.read_text())
    return 0


def resident_memory() -> tuple[int, int]:
    """The resident memory of this process, and the most that ever was, in bytes; 0 if the system does not show it.

    At little expense.
    """
    sizes = {b"VmRSS:": 0, b"VmHWM:": 0}
    with suppress(OSError):
        for line in Path("/proc/self/status").read_bytes().splitlines():
            if line[:6] in sizes:
                sizes[line[:6]] = int(line.split()[1]) * _KIBIBYTE
    return sizes[b"VmRSS:"], sizes[b"VmHWM:"]
