"""Looks at everything, once."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
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
from lowkiq_lambda.operate.doctor.pace import pace_findings, read_pasts
from lowkiq_lambda.operate.doctor.promises import promise_views
from lowkiq_lambda.operate.doctor.queue_state import FoundQueues, read_queues
from lowkiq_lambda.operate.doctor.recurring import duty_findings, move_findings, schedule_findings, verify_findings
from lowkiq_lambda.operate.doctor.server import memory_findings, memory_views, server_findings
from lowkiq_lambda.operate.doctor.work import work_findings
from lowkiq_lambda.operate.inspect.looking import LookingBackend
from lowkiq_lambda.operate.inspect.processes import Processes
from lowkiq_lambda.operate.operations import Operations
from lowkiq_lambda.settings.config import variable_of
from lowkiq_lambda.store.server.vitals import read_vitals, topology_of
from lowkiq_lambda.views.processes import Process


def check_up(operations: Operations, more: Iterable[Finding] = ()) -> CheckUp:
    """All findings about the app's server, and `more`. It writes nothing. Raises BackendError.

    If the server refuses a command, its finding is marked unknown, and the other findings stay.
    """
    core = operations.core
    backend = LookingBackend(core.backend)
    findings = [*_source(core, os.environ), *shared_password(os.environ, "server"), *_server(core, backend)]
    queues = read_queues(core, backend)
    memory = [*memory_views(queues.found, backend)]
    findings += memory_findings(memory)
    findings += code_findings(core, queues, backend)
    findings += _of_work(operations, queues, backend)
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
    core = operations.core
    backend = LookingBackend(core.backend)
    findings = [*_server(core, backend)]
    queues = read_queues(core, backend, only_own=True)
    findings += code_findings(core, queues, backend, thorough=False)
    findings += _of_work(operations, queues, backend)
    return needs_of(findings)


def _server(core: Core, backend: LookingBackend) -> list[Finding]:
    topology = topology_of(backend.client)
    nodes = backend.retrying(core.config.redis_retry_for, lambda: read_vitals(backend.client, backend.clock))
    return [*server_findings(nodes, topology), *durability_findings(nodes, topology)]


def _of_work(operations: Operations, queues: FoundQueues, backend: LookingBackend) -> list[Finding]:
    """What runs, what waits, and what recurs, of the app's queues."""
    core = operations.core
    own = [state for state in queues.found if state.name in core.queues]
    processes: list[Process] = []
    findings = _unless_refused("processes", "processes", lambda: _processes(core, backend, processes))
    findings += work_findings(core, own, processes)
    names = [state.name for state in own]
    findings += _unless_refused("work", "failing", lambda: pace_findings(read_pasts(backend, names), processes))
    if own:
        now = own[0].now
        findings += _unless_refused("work", "duties", lambda: duty_findings(operations, now))
        findings += _unless_refused("work", "schedules", lambda: schedule_findings(operations, own, backend))
        findings += _unless_refused("work", "verify", lambda: verify_findings(core, own))
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


def _processes(core: Core, backend: LookingBackend, processes: list[Process]) -> Iterator[Finding]:
    processes += Processes(backend, core.config.redis_retry_for)
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
