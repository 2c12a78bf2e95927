"""The processes that drain: those that are alive, their faults, and whether a daemon here does its work."""

import socket
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from lowkiq_lambda.base.errors import BackendUnavailable
from lowkiq_lambda.core import Core
from lowkiq_lambda.declare.worker import queues_before
from lowkiq_lambda.operate.doctor.findings import Finding, Mark
from lowkiq_lambda.operate.doctor.promises import BUDGET
from lowkiq_lambda.operate.doctor.words import several, size, some, time
from lowkiq_lambda.operate.inspect.looking import LookingBackend
from lowkiq_lambda.operate.inspect.processes import Processes
from lowkiq_lambda.store.shard.history import LATE
from lowkiq_lambda.store.shard.state import ProbeResult, probe_each
from lowkiq_lambda.views.processes import Process

MISSED_HEARTBEATS: Final = 3.0
"""So many heartbeats may be missing."""
RECENTLY: Final = 3_600.0
"""Seconds for which a process that is gone is told of while others live: they have its work."""
_MORE_MEMORY: Final = (
    "Raise MemorySize of the function, or the container's limit; or let it do less at once: batch_size, concurrency, "
    "LOWKIQ_THREADS_PER_NODE. A schedule for each shard keeps the other shards' jobs out of it."
)
RETRY_FOR: Final = 2.0
"""Seconds for which the server is asked: a check has few of them."""


class DaemonHealth(msgspec.Struct, frozen=True):
    """Whether a restart of the daemon may help, and why, in a sentence."""

    is_well: bool
    says: str


def health_of(core: Core, host: str | None = None) -> DaemonHealth:
    """That of the daemons of this machine, by its host name, or of another.

    A daemon is well that sends heartbeats, and that has begun something where its queues have had due work for two
    minutes. One that is quiet, or whose server is away, is well: a restart would not help it.
    """
    backend, here = LookingBackend(core.backend), host or socket.gethostname()
    try:
        own_daemons = [one for one in Processes(backend, RETRY_FOR) if one.kind == "daemon" and one.host == here]
        now = backend.clock.time()
        daemons = [
            one for one in own_daemons if now - one.seen_at <= MISSED_HEARTBEATS * core.config.heartbeat_interval
        ]
        if not daemons:
            return _missing(own_daemons, here, now)
        idle = [one for one in daemons if not (one.quiet or one.doing)]
        if idle and len(idle) == len([one for one in daemons if not one.quiet]):
            return _of_idle(idle, _waiting(core, backend))
    except BackendUnavailable:
        return DaemonHealth(is_well=True, says="The server is out of reach: a daemon waits until it is back.")
    return DaemonHealth(is_well=True, says=f"{_names(daemons)} sends heartbeats, and does what it can.")


def _missing(daemons: Sequence[Process], host: str, now: float) -> DaemonHealth:
    if not daemons:
        return DaemonHealth(is_well=False, says=f"No daemon of {host} has been heard of.")
    last = min(now - one.seen_at for one in daemons)
    return DaemonHealth(is_well=False, says=f"No daemon of {host} has been heard of for {time(last)}.")


def _of_idle(daemons: Sequence[Process], waiting: Sequence[ProbeResult]) -> DaemonHealth:
    """Of daemons that do nothing now."""
    if not waiting:
        return DaemonHealth(
            is_well=True, says=f"{_names(daemons)} sends heartbeats, and nothing has been due for long."
        )
    lag = time(max(probe.lag for probe in waiting))
    queues = some([*dict.fromkeys(repr(probe.ref.queue_name) for probe in waiting)])
    return DaemonHealth(is_well=False, says=f"{_names(daemons)} does nothing, and {queues} has had due work for {lag}.")


def _waiting(core: Core, backend: LookingBackend) -> list[ProbeResult]:
    """The shards of the app with work that has been due for long and does not run; limits may be the reason."""
    shards = [
        shard
        for name, queue in core.queues.items()
        if not (queue.worker.max_running or queue.worker.rate or queue.worker.tenant_rate)
        and not queues_before(queue.worker)
        for shard in core.queues[name].shards
    ]
    probed = probe_each(backend, shards, RETRY_FOR) if shards else []
    return [probe for probe in probed if isinstance(probe, ProbeResult) and probe.has_work and probe.lag > LATE]


def _names(processes: Sequence[Process]) -> str:
    return some([process.id for process in processes])


def process_findings(processes: Sequence[Process], version: str) -> Iterator[Finding]:
    """The findings on daemons and invocations, of this app and of others on the server."""
    living = [process for process in processes if not process.is_gone]
    # Where nobody lives, nobody has taken over.
    since = max(process.seen_at for process in living) - RECENTLY if living else 0.0
    if living:
        yield _found("processes", "ok", f"{several(len(living), 'process')} heard of within a minute: {_names(living)}")
    else:
        yield _found("processes", "ok", "no process drains, as far as is known; invocations come and go")
    if quiet := [process for process in living if process.quiet]:
        sentence = f"{_names(quiet)} begins nothing new"
        yield _found("quiet", "warning", sentence, "If no deploy is under way, end it: lowkiq processes --stop P.")
    if dead := [process for process in processes if process.is_gone and process.seen_at >= since]:
        yield from _out_of_memory([process for process in dead if process.is_near_limit])
    if dead := [process for process in dead if not process.is_near_limit]:
        sentence = f"{_names(dead)} has not been heard of for a minute: it died, or cannot reach the server"
        yield _found("gone", "warning", sentence, "Look at its log. What it had in flight others recover.")
    if slow := [process for process in living if process.is_slow]:
        sentence = f"each call of {_names(slow)} takes more than 50 ms"
        yield _found(
            "slow", "warning", sentence, "Look at the network between, and at SLOWLOG GET on the server.", BUDGET
        )
    if others := [process for process in living if process.version != version]:
        versions = some(sorted({process.version for process in others}))
        sentence = f"{_names(others)} runs version {versions} of the library, and this is {version}"
        yield _found("versions", "warning", sentence, "Finish the deploy.")
    yield from _of_two_computes(living)


def _of_two_computes(living: Sequence[Process]) -> Iterator[Finding]:
    """Daemons and functions that share queues, and run different releases of the user's code."""
    with_release = [process for process in living if isinstance(process.release, str)]
    daemons, functions = (
        sorted({str(process.release) for process in with_release if process.kind == kind})
        for kind in ("daemon", "lambda")
    )
    if daemons and functions and daemons != functions:
        sentence = f"daemons run release {some(daemons)} of the code, and functions run {some(functions)}"
        advice = "Deploy both, and name the code of both by LOWKIQ_RELEASE: each performs jobs that the other pushed."
        yield _found("releases", "warning", sentence, advice)


def _out_of_memory(dead: Sequence[Process]) -> Iterator[Finding]:
    """Processes that died when they had used almost all of their memory: the last heartbeat of each is all there is."""
    if dead:
        most = max(dead, key=lambda process: process.seen_at)
        sentence = (
            f"{_names(dead)} died near its memory limit: it had used {size(max(most.peak, most.rss))} of "
            f"{size(most.memory)}, as its last heartbeat says"
        )
        doing = some([*dict.fromkeys(doing.queue for process in dead for doing in process.doing)])
        yield _found("out of memory", "warning", f"{sentence}{f', and ran {doing}' if doing else ''}", _MORE_MEMORY)


def _found(check: str, mark: Mark, sentence: str, advice: str = "", *promises: int) -> Finding:
    return Finding(section="processes", check=check, mark=mark, says=sentence, advice=advice, promises=promises)
