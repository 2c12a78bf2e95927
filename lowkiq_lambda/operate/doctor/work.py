"""Work that does not run: due and not taken, paused, blocked, damaged, or about to leave the morgue."""

from collections.abc import Iterator, Sequence
from typing import Final

from lowkiq_lambda.base.errors import LowkiqError
from lowkiq_lambda.core import Core
from lowkiq_lambda.operate.doctor.findings import Finding, Mark
from lowkiq_lambda.operate.doctor.promises import HONEST_NUMBERS, NOTHING_LOST
from lowkiq_lambda.operate.doctor.queue_state import QueueState
from lowkiq_lambda.operate.doctor.words import several, some, time
from lowkiq_lambda.store.shard.history import LATE
from lowkiq_lambda.store.shard.state import ProbeResult
from lowkiq_lambda.views.processes import Process
from lowkiq_lambda.views.queues import QueueMetrics

NEARLY: Final = 0.9
"""Of what a shard's morgue may hold."""


def work_findings(core: Core, states: Sequence[QueueState], processes: Sequence[Process]) -> Iterator[Finding]:
    """The findings on the app's queues."""
    findings = [finding for state in states for finding in _of_queue(core, state, processes)]
    yield from findings
    if not any(finding.check == "due work" for finding in findings):
        yield _found("due work", "ok", "all that is due is looked after")


def _found(check: str, mark: Mark, sentence: str, advice: str = "", about: str = "", *promises: int) -> Finding:
    return Finding(section="work", check=check, mark=mark, says=sentence, advice=advice, about=about, promises=promises)


def _of_queue(core: Core, state: QueueState, processes: Sequence[Process]) -> Iterator[Finding]:
    yield from _unreadable(state)
    yield from _untaken(core, state, processes)
    yield from _overdue(state)
    if isinstance(state.metrics, QueueMetrics):
        yield from _of_numbers(core, state.name, state.metrics)


def _unreadable(state: QueueState) -> Iterator[Finding]:
    pairs = zip(state.live, state.probes, strict=True) if state.probes else ()
    broken = [(shard.number, probe) for shard, probe in pairs if isinstance(probe, LowkiqError)]
    if broken:
        shards = some([number for number, _ in broken])
        sentence = f"shard {shards} cannot be read: {broken[0][1]}"
        advice = "The next drain sets aside what is damaged; look at the page Damaged of the dashboard then."
        yield _found("damage", "broken", sentence, advice, state.name, NOTHING_LOST, HONEST_NUMBERS)


def _untaken(core: Core, state: QueueState, processes: Sequence[Process]) -> Iterator[Finding]:
    limit = 2 * core.config.poll_interval
    results = [probe for probe in state.probes if isinstance(probe, ProbeResult)]
    waiting = [probe for probe in results if probe.has_work and probe.lag > limit]
    if not waiting:
        return
    lag = max(probe.lag for probe in waiting)
    numbers = some([probe.ref.number for probe in waiting])
    sentence = (
        f"due for up to {time(lag)}, and not taken: {several(len(waiting), 'shard')} of {len(state.probes)} ({numbers})"
    )
    if isinstance(state.metrics, QueueMetrics) and state.metrics.oldest_due_age <= limit:
        # The counts of the queue already explain the wait.
        return
    mark, why, advice = _nobody(lag, processes)
    yield _found("due work", mark, f"{sentence}; {why}", advice, state.name, NOTHING_LOST)


def _overdue(state: QueueState) -> Iterator[Finding]:
    if state.overdue:
        sentence = f"{several(state.overdue, 'id')} due, and the oldest payload of each has expired while it waited"
        advice = "See what holds the queue up: a pause, its limits, or too few processes. The next claim drops them."
        yield _found("expired", "warning", sentence, advice, state.name)


def _nobody(lag: float, processes: Sequence[Process]) -> tuple[Mark, str, str]:
    """Why no process may have taken the work."""
    living = [process for process in processes if not process.is_gone]
    able = [process for process in living if not process.quiet]
    daemons = [process for process in able if process.kind == "daemon"]
    start = "Start the daemon (lowkiq run). On AWS, --stack NAME tells which shards have no schedule."
    if daemons and all(len(process.doing) >= process.threads for process in daemons):
        return "warning", f"all threads of {_names(daemons)} are busy", "Give it more threads, processes or machines."
    if daemons:
        # It tells every ten seconds what it does, so that it may have begun with something else.
        mark: Mark = "broken" if lag > LATE else "warning"
        return mark, f"{_names(daemons)} could take it", "See that they run this app, and their logs."
    if lag <= LATE:
        return "warning", "no daemon lives, and a schedule on Lambda comes once a minute", start
    if living:
        return "broken", f"nobody takes new work: of {_names(living)}, none is a daemon that does", start
    return "broken", "no process drains on this server", start


def _names(processes: Sequence[Process]) -> str:
    return some([process.id for process in processes])


def _of_numbers(core: Core, name: str, metrics: QueueMetrics) -> Iterator[Finding]:
    if metrics.paused:
        lag = f", and the oldest due id has waited {time(metrics.paused_lag)}" if metrics.paused_lag else ""
        sentence = f"{metrics.paused} of {several(len(metrics.shards), 'shard')} paused{lag}"
        yield _found("paused", "warning", sentence, f"Go on with it: lowkiq resume {name}.", name)
    elif metrics.paused_lag:
        sentence = f"a tenant is paused, and its oldest due id has waited {time(metrics.paused_lag)}"
        advice = "Resume it on the page Tenants of the dashboard, or by app.operate(worker).resume(tenant=...)."
        yield _found("paused tenants", "warning", sentence, advice, name)
    if metrics.limited_lag > LATE:
        sentence = (
            f"due for up to {time(metrics.limited_lag)}, as the queue keeps its limits, or its tenants their rate"
        )
        rate = "; the rate of tenants stands in the code alone (tenant_rate)" if _has_tenant_rate(core, name) else ""
        advice = f"Raise them on the page Limits of the dashboard{rate}, if the backlog is to be gone sooner."
        yield _found("limits", "warning", sentence, advice, name)
    if metrics.blocked:
        sentence = f"{several(metrics.blocked, 'id')} blocked, since the oldest payload failed for the last time"
        advice = f"Unblock them, on the dashboard or by lowkiq unblock {name}; or delete them."
        yield _found("blocked ids", "warning", sentence, advice, name)
    if metrics.damaged:
        sentence = f"{several(metrics.damaged, 'record')} set aside as unreadable"
        advice = "Look at the page Damaged of the dashboard: find out what else writes to this server."
        yield _found("damage", "warning", sentence, advice, name, HONEST_NUMBERS)
    nearly = NEARLY * core.config.morgue.entries
    full = [number for number, shard in enumerate(metrics.shards) if shard.morgue_length >= nearly]
    if full:
        sentence = f"the morgue of shard {some(full)} is nearly full: its oldest jobs are about to be dropped"
        advice = f"Requeue or delete what is dead: lowkiq requeue {name}; or raise entries of LOWKIQ_MORGUE."
        yield _found("morgue", "warning", sentence, advice, name, NOTHING_LOST)


def _has_tenant_rate(core: Core, name: str) -> bool:
    return any(worker.queue_name == name and worker.tenant_rate is not None for worker in core.queues.workers)
