"""Looks at everything, once."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

from lowkiq_lambda.base.address import without_password
from lowkiq_lambda.base.errors import BackendUnavailable, LowkiqError
from lowkiq_lambda.core import Core
from lowkiq_lambda.engine.heartbeat import VERSION
from lowkiq_lambda.operate.doctor.code import code_findings
from lowkiq_lambda.operate.doctor.durability import durability_findings
from lowkiq_lambda.operate.doctor.findings import CheckUp, Finding, Need, Section, worst
from lowkiq_lambda.operate.doctor.health import process_findings
from lowkiq_lambda.operate.doctor.late import explained_by, late_findings
from lowkiq_lambda.operate.doctor.needs import needs_of
from lowkiq_lambda.operate.doctor.pace import hindrance_findings, pace_findings, read_pasts
from lowkiq_lambda.operate.doctor.promises import promise_views
from lowkiq_lambda.operate.doctor.queue_state import read_queues
from lowkiq_lambda.operate.doctor.recurring import duty_findings, move_findings, schedule_findings, verify_findings
from lowkiq_lambda.operate.doctor.server import memory_findings, memory_views, server_findings
from lowkiq_lambda.operate.doctor.work import work_findings
from lowkiq_lambda.operate.inspect.looking import LookingBackend
from lowkiq_lambda.operate.inspect.processes import Processes
from lowkiq_lambda.operate.inspect.sampling import AppSample, LookedAt, past_of, read_sampled, sampling
from lowkiq_lambda.operate.operations import Operations
from lowkiq_lambda.operate.verify.record import VerifyRecord, read_records
from lowkiq_lambda.settings.config import variable_of
from lowkiq_lambda.store.server.together import Together
from lowkiq_lambda.store.server.vitals import read_vitals, topology_of
from lowkiq_lambda.views.processes import Process
from lowkiq_lambda.views.queues import QueueMetrics


def check_up(operations: Operations, more: Iterable[Finding] = ()) -> CheckUp:
    """All findings about the app's server, and `more`. It writes nothing. Raises BackendError.

    If the server refuses a command, its finding is marked unknown, and the other findings stay.
    """
    core = operations.core
    backend = LookingBackend(core.backend)
    looks = _Looks(operations, backend)
    queues = looks.queues.result
    memory = [*memory_views(queues.found, backend)]
    findings = [*_source(core, os.environ), *shared_password(os.environ, "server"), *looks.server.result]
    findings += memory_findings(memory)
    findings += code_findings(core, queues, backend)
    findings += _of_work(operations, looks, backend)
    findings += more
    return CheckUp(
        server=without_password(core.connections.url),
        mark=worst(finding.mark for finding in findings),
        needs=needs_of(findings),
        promises=promise_views(findings),
        findings=tuple(findings),
        memory=tuple(memory),
    )


def look_for_needs(operations: Operations) -> tuple[Need, ...]:
    """What needs somebody, as `check_up` finds it, of the app's queues alone: for those that look each minute.

    It looks for no other queue, so it does not search the server, and measures no memory: its round trips are few,
    however many queues there are. It writes nothing. Raises BackendError.
    """
    backend = LookingBackend(operations.core.backend)
    return _needs_in(operations, backend, _Looks(operations, backend, only_own=True))


def look_and_sample(operations: Operations) -> tuple[tuple[Need, ...], list[AppSample]]:
    """As `look_for_needs`; and the samples of the last minutes, to which this look may add one.

    The next call of a script takes it to the server, so it costs no round trip.
    """
    core = operations.core
    backend = LookingBackend(core.backend)
    names, retry_for = [*core.queues], core.config.redis_retry_for
    with Together() as side:
        there = side.look(read_sampled, backend, names, retry_for)
        looked = side.look(_Looks, operations, backend, only_own=True)
    looks = looked.result
    needs = _needs_in(operations, backend, looks)
    queues = [
        LookedAt(state.name, state.now, state.shards.layout, state.metrics)
        for state in looks.queues.result.found
        if isinstance(state.metrics, QueueMetrics)
    ]
    try:
        core.backend.piggyback(sampling(core.backend, there.result, queues, looks.processes.result))
    except BackendUnavailable:
        raise
    except LowkiqError:
        return needs, []
    return needs, past_of(there.result.app)


def _needs_in(operations: Operations, backend: LookingBackend, looks: "_Looks") -> tuple[Need, ...]:
    findings = [*looks.server.result, *code_findings(operations.core, looks.queues.result, backend, thorough=False)]
    findings += _of_work(operations, looks, backend)
    return needs_of(findings)


class _Looks:
    """What is read of the server, and of all queues, side by side."""

    def __init__(self, operations: Operations, backend: LookingBackend, *, only_own: bool = False) -> None:
        core = operations.core
        names, retry_for = [*core.queues], core.config.redis_retry_for
        with Together() as side:
            self.server = side.look(_server, core, backend)
            self.queues = side.look(read_queues, core, backend, only_own=only_own)
            self.processes = side.look(lambda: [*Processes(backend, retry_for)])
            self.pasts = side.look(read_pasts, backend, names)
            self.duties = side.look(operations.duties)
            self.verified = side.look(_verified, core, names)


def _verified(core: Core, names: Sequence[str]) -> Mapping[str, VerifyRecord | None]:
    if not core.housekeeping.verifies:
        return {}
    return dict(zip(names, read_records(core.backend, names, core.config.redis_retry_for), strict=True))


def _server(core: Core, backend: LookingBackend) -> list[Finding]:
    topology = topology_of(backend.client)
    nodes = backend.retrying(core.config.redis_retry_for, lambda: read_vitals(backend.client, backend.clock))
    return [*server_findings(nodes, topology), *durability_findings(nodes, topology, core.config.wait_replicas)]


def _of_work(operations: Operations, looks: _Looks, backend: LookingBackend) -> list[Finding]:
    """What runs, what waits, and what recurs, of the app's queues."""
    core = operations.core
    own = [state for state in looks.queues.result.found if state.name in core.queues]
    processes: list[Process] = []
    findings = _unless_refused("processes", "processes", lambda: _processes(looks.processes.result, processes))
    findings += work_findings(core, own, processes)
    pasts = {state.name for state in own}
    findings += _unless_refused(
        "work",
        "failing",
        lambda: pace_findings({name: past for name, past in looks.pasts.result.items() if name in pasts}, processes),
    )
    findings += hindrance_findings(own)
    if own:
        findings += _unless_refused("work", "duties", lambda: duty_findings(looks.duties.result, own[0].now))
        findings += _unless_refused("work", "schedules", lambda: schedule_findings(operations, own, backend))
        findings += _unless_refused("work", "verify", lambda: verify_findings(looks.verified.result, own))
    findings += move_findings(own)
    explained = explained_by(findings)
    findings += _unless_refused("work", "late", lambda: late_findings(core, backend, own, processes, explained))
    return findings


def _source(core: Core, environ: Mapping[str, str]) -> Iterator[Finding]:
    """Where the address comes from, if it is from a variable that other programs read, too."""
    url = core.config.redis_url
    if url and url == environ.get("REDIS_URL") and not environ.get(variable_of("redis_url"), "").strip():
        sentence = "the server is that of REDIS_URL, which may be the cache of other programs"
        advice = f"If it is, set {variable_of('redis_url')}."
        yield Finding(section="server", check="address", mark="ok", says=sentence, advice=advice)


def shared_password(environ: Mapping[str, str], section: Section, about: str = "") -> Iterator[Finding]:
    """A warning where these variables give people of the dashboard a shared password, and nobody an account."""
    is_set = {name for name in (*_NAMING, *_SHARED) if environ.get(variable_of(name), "").strip()}
    if is_set & {*_SHARED} and not is_set & {*_NAMING}:
        yield Finding(
            section=section,
            check="accounts",
            mark="warning",
            says="all operators of the dashboard share one password, so activity does not say who did what",
            advice=f"Give each person an account: name:operator:password in {variable_of('dashboard_accounts')}, the "
            "parameter DashboardAccounts of a stack.",
            about=about,
        )


_SHARED: Final = ("dashboard_password", "dashboard_secret_arn")
_NAMING: Final = ("dashboard_accounts", "dashboard_claims")


def _processes(living: Sequence[Process], processes: list[Process]) -> Iterator[Finding]:
    processes += living
    yield from process_findings(processes, VERSION)


def _unless_refused(section: Section, check: str, look: Callable[[], Iterable[Finding]]) -> list[Finding]:
    """What is found; one that says why, if the server refuses. Raises BackendUnavailable."""
    try:
        return [*look()]
    except BackendUnavailable:
        raise
    except LowkiqError as error:
        sentence = f"this could not be looked at: {error}"
        return [Finding(section=section, check=check, mark="unknown", says=sentence)]
