"""`lowkiq doctor`: a check-up as people read it."""

import os
import shutil
import sys
import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Annotated, Final

import msgspec
from cyclopts import Parameter

from lowkiq_lambda.cli.codes import DONE, FAILED
from lowkiq_lambda.cli.parts import AppOption, command_app, flag
from lowkiq_lambda.cli.queues import app_of
from lowkiq_lambda.operate.doctor.findings import SECTIONS, CheckUp, Finding, Mark, Need, PromiseView
from lowkiq_lambda.operate.doctor.promises import NOTHING_LOST
from lowkiq_lambda.operate.presentation.formatting import visible

if TYPE_CHECKING:
    from lowkiq_lambda.app import Lowkiq

_HELP: Final = """
Check which promises hold on the app's server, and whether any work is left alone. Nothing is changed.

The check covers the server (eviction, memory, persistence, replicas, version, rights, clocks), the use of memory, and \
the queues of the code beside those of the server. It finds due jobs that no process took for twice the poll \
interval, queues that fail, paused queues and blocked ids, and processes, handlers, schedule entries, duties and moves \
that stand still. It prints what needs somebody, worst first, as the dashboard does: each line has a mark, and says \
what to do. Then come things that could not be looked at; with --all it prints each thing that it looked at.
"""
_EPILOGUE: Final = """
MARKS
  ok         It is so.
  warning    The promise holds, and may not for long, or not for all.
  not known  The server refuses to tell, as managed ones do: the line says
             where to look.
  BROKEN     A promise does not hold, or work waits that nobody will do.

EXIT CODES
  0  Nothing is broken; there may be warnings. With --health: it is well.
  1  Something is broken. With --health: a restart of the daemon may help.
  2  The command line, the settings or the app cannot work.
  3  The server cannot be reached.

EXAMPLES
  Before a release:
    lowkiq doctor shop.jobs:app
  The shards that no schedule of a stack drains, too:
    lowkiq doctor shop.jobs:app --stack shop
  In a container that runs the daemon, as its health check:
    lowkiq doctor --health
  All that was looked at, what is well, too:
    lowkiq doctor shop.jobs:app --all
  What needs somebody, for another program:
    lowkiq doctor shop.jobs:app --json | jq '.needs[] | {check, about, says}'
"""

command: Final = command_app("doctor", help_=_HELP, epilogue=_EPILOGUE, usage="lowkiq doctor [OPTIONS] [MODULE:APP]")

_MARKS: Final[dict[Mark, str]] = {"ok": "ok", "warning": "warning", "unknown": "not known", "broken": "BROKEN"}
_WIDTH: Final = max(map(len, _MARKS.values()))
_NARROWEST: Final = 60
_NEEDS: Final = "Needs somebody, worst first"
_NO_NEEDS: Final = "Nothing needs anybody."
_NOT_KNOWN: Final = "Not known"


_HEADS: Final = {
    "server": "Server",
    "memory": "Memory by queue",
    "code": "Code and server",
    "work": "Work",
    "processes": "Processes",
    "moves": "Moves to other shards",
    "aws": "Schedules on AWS",
}

_ADVICE: Final = (
    "Deploy with the ShardIndexes that `lowkiq stack schedules indexes` prints, or with Idle=start. Where "
    "`lowkiq stack schedules` made the schedules, run it again: lowkiq stack schedules --stack {}. A daemon needs none."
)
_SURPLUS: Final = (
    "Deploy with the ShardIndexes that `lowkiq stack schedules indexes` prints, and without the queue in "
    "QueueSchedules. Where `lowkiq stack schedules` made it, run it again: lowkiq stack schedules --stack {}."
)
_RELEASE: Final = "If nobody rolled it back, the Release was that of the deploy before: deploy with another one."


@command.default
def doctor(
    app: AppOption = None,
    *,
    stack: Annotated[
        str | None,
        Parameter(help="The name of a deployed stack: AWS is asked, too, which shards have no schedule in it."),
    ] = None,
    all_: Annotated[bool, flag("Print each thing that was looked at, by section.")] = False,
    health: Annotated[
        bool, flag("Check only whether the daemon of this machine does its work, as a container's health check asks.")
    ] = False,
    json: Annotated[bool, flag("Write one JSON object.")] = False,
) -> int:
    """Look, and tell; the exit code."""
    from lowkiq_lambda.operate.doctor.checkup import check_up

    loaded = app_of(app)
    if health:
        return _tell_health(loaded, as_json=json)
    check = check_up(loaded.operate, () if stack is None else _of_stack(loaded, stack))
    if json:
        sys.stdout.write(msgspec.json.format(msgspec.json.encode(check)).decode() + "\n")
    else:
        sys.stdout.write(describe(check, everything=all_) + "\n")
    return FAILED if check.mark == "broken" else DONE


def _tell_health(app: "Lowkiq", *, as_json: bool) -> int:
    from lowkiq_lambda.operate.doctor.health import health_of

    health = health_of(app.core)
    sys.stdout.write((msgspec.json.encode(health).decode() if as_json else health.says) + "\n")
    return DONE if health.is_well else FAILED


def _of_stack(app: "Lowkiq", stack: str) -> Iterable[Finding]:
    """What the stack's schedules lack; the server is found as the functions find it."""
    from lowkiq_lambda.aws.environment import find_redis
    from lowkiq_lambda.settings.aws import Settings

    find_redis(app, Settings.from_env(os.environ))
    return stack_findings(app, stack)


def describe(check: CheckUp, *, everything: bool = False) -> str:
    """What needs somebody, and what is not known, or all findings by section; the promises, and a line of sums."""
    columns = max(_NARROWEST, min(shutil.get_terminal_size((100, 24)).columns, 120))
    lines = [check.server, "", _NEEDS if check.needs else _NO_NEEDS]
    lines += [line for need in check.needs for line in _lines(need, _advice_of(need), columns)]
    for head, findings in (_sections(check) if everything else _not_known(check)).items():
        if findings:
            lines += ["", head]
            lines += [line for finding in findings for line in _lines(finding, finding.advice, columns)]
    lines += ["", "Promises", *map(_promise, check.promises), "", _sums(check)]
    return "\n".join(lines)


def _sections(check: CheckUp) -> dict[str, list[Finding]]:
    return {_HEADS[section]: [one for one in check.findings if one.section == section] for section in SECTIONS}


def _not_known(check: CheckUp) -> dict[str, list[Finding]]:
    return {_NOT_KNOWN: [finding for finding in check.findings if finding.mark == "unknown"]}


def _advice_of(need: Need) -> str:
    """What to do, with the command that does it, or shows more."""
    command = need.act.command
    return need.advice if not command or command in need.advice else f"{need.advice} ({command})".strip()


def _lines(finding: Finding | Need, advice: str, columns: int) -> Iterator[str]:
    about = f"{finding.about}: " if finding.about else ""
    head = f"  {_MARKS[finding.mark]:<{_WIDTH}}  {finding.check}: "
    indent = " " * (_WIDTH + 4)
    yield from _wrapped(f"{about}{finding.says}", head, indent, columns)
    if advice:
        yield from _wrapped(advice, f"{indent}-> ", f"{indent}   ", columns)


def _wrapped(text: str, first: str, rest: str, columns: int) -> list[str]:
    # Names of queues and processes come from any client that may push or drain.
    return textwrap.wrap(
        visible(text),
        columns,
        initial_indent=first,
        subsequent_indent=rest,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _promise(promise: PromiseView) -> str:
    why = f": see {', '.join(promise.checks)}" if promise.checks else ""
    return f"  {_MARKS[promise.mark]:<{_WIDTH}}  P{promise.number} {promise.name}{why}"


def _sums(check: CheckUp) -> str:
    counts = Counter(finding.mark for finding in check.findings)
    return f"{counts['broken']} broken, {counts['warning']} to look at, {counts['unknown']} not known."


def stack_findings(app: "Lowkiq", stack: str) -> Iterator[Finding]:
    """Those of the schedules of the stack, of the group of `lowkiq stack schedules`, and of its dashboard."""
    from lowkiq_lambda.aws.drain_schedules.coverage import coverage_of
    from lowkiq_lambda.aws.drain_schedules.deployed import (
        DeployError,
        function_environment,
        runs_latest,
        stack_outputs,
    )
    from lowkiq_lambda.aws.tick import naming
    from lowkiq_lambda.operate.doctor.checkup import shared_password
    from lowkiq_lambda.stack.rollback import ALIAS

    try:
        coverage = coverage_of(app, stack)
        outputs = stack_outputs(stack)
        # Not every stack has a dashboard, or an alias.
        dashboard, drain = (outputs.get(name, "") for name in ("DashboardFunctionName", "DrainFunctionArn"))
        variables = function_environment(dashboard) if dashboard else {}
        is_latest = not drain.endswith(f":{ALIAS}") or runs_latest(drain)
    except DeployError as error:
        yield _found("unknown", str(error), "The docs (drain-schedules.md) list the rights that this needs.")
        return
    for name, indexes in coverage.missing.items():
        yield _found("broken", naming(indexes), _ADVICE.format(stack), name)
    if coverage.fans_out:
        yield _found("ok", "each housekeeping run starts drains of the shards that have work")
    elif not coverage.missing:
        yield _found("ok", f"each of the {coverage.shards} shards is drained by a schedule that fires")
    for name in coverage.surplus:
        sentence = "the schedule drains nothing: the app has no such queue or shard"
        yield _found("warning", sentence, _SURPLUS.format(stack), name)
    if not is_latest:
        yield _found("warning", "it runs another version than was deployed last", _RELEASE, drain)
    yield from shared_password(variables, "aws", dashboard)


def _found(mark: Mark, sentence: str, advice: str = "", about: str = "") -> Finding:
    promises = () if mark == "ok" else (NOTHING_LOST,)
    return Finding(
        section="aws", check="drain schedules", mark=mark, says=sentence, advice=advice, about=about, promises=promises
    )
