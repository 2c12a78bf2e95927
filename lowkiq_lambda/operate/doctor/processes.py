"""The processes that drain: those that are alive, and their faults."""

from collections.abc import Iterator, Sequence

from lowkiq_lambda.operate.doctor.findings import Finding, Mark
from lowkiq_lambda.operate.doctor.promises import BUDGET
from lowkiq_lambda.operate.doctor.words import several, some
from lowkiq_lambda.views.processes import Process


def process_findings(processes: Sequence[Process], version: str) -> Iterator[Finding]:
    """The findings on daemons and invocations, of this app and of others on the server."""
    living = [process for process in processes if not process.is_gone]
    if living:
        yield _found("processes", "ok", f"{several(len(living), 'process')} heard of within a minute: {_names(living)}")
    else:
        yield _found("processes", "ok", "no process drains, as far as is known; invocations come and go")
    if quiet := [process for process in living if process.quiet]:
        sentence = f"{_names(quiet)} begins nothing new"
        yield _found("quiet", "warning", sentence, "If no deploy is under way, end it: lowkiq processes --stop P.")
    if dead := [process for process in processes if process.is_gone]:
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


def _names(processes: Sequence[Process]) -> str:
    return some([process.id for process in processes])


def _found(check: str, mark: Mark, sentence: str, advice: str = "", *promises: int) -> Finding:
    return Finding(section="processes", check=check, mark=mark, says=sentence, advice=advice, promises=promises)
