"""Children of a daemon of two processes, as its log and the system tell of them."""

import os
import re
import signal
from pathlib import Path
from typing import Final

from lowkiq_lambda.jobs.job import shard_for
from tests.kit.daemons import DaemonProcess
from tests.kit.order import is_in_order
from tests.kit.process_states import state_of
from tests.kit.stage import Stage
from tests.kit.waiting import eventually

TWO: Final = ("--processes", "2")
SHARDS: Final = 4
TIMEOUT: Final = 30.0
_STARTED: Final = re.compile(r"a child is started child=(\d) pid=(\d+)")


def children(daemon: DaemonProcess, number: int | None = None) -> list[int]:
    """The processes of the children that were started: all, or those with this number."""
    return [int(pid) for child, pid in _STARTED.findall(daemon.log) if number in {None, int(child)}]


def freeze(pid: int) -> None:
    """Stop a process in its tracks; returns when each of its threads stands still."""
    os.kill(pid, signal.SIGSTOP)
    eventually(lambda: {"T"} == {state_of(int(thread.name)) for thread in Path(f"/proc/{pid}/task").iterdir()}, TIMEOUT)


def await_start(stage: Stage, daemon: DaemonProcess) -> list[int]:
    """Wait until both children drain; their processes, by number."""
    eventually(lambda: len({one["pid"] for one in stage.told("on_startup")} & {*children(daemon)}) == 2, TIMEOUT)
    return children(daemon)


def id_of(shard: int, but: str = "") -> str:
    """An id of that shard, and not another one of it."""
    return next(str(n) for n in range(999) if shard_for(str(n), SHARDS) == shard and str(n) != but)


def performed_in_order(stage: Stage, ids: list[str]) -> bool:
    """Whether the payloads of each id came in order."""
    begun = stage.told("begin")
    return all(is_in_order([one["numbers"] for one in begun if one["id"] == job_id]) for job_id in ids)
