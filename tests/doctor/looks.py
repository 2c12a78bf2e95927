"""A look at an app's server, in short."""

import re
from pathlib import Path
from typing import Final, get_args

from lowkiq_lambda import Lowkiq
from lowkiq_lambda.operate.doctor.checkup import check_up
from lowkiq_lambda.operate.doctor.findings import CheckUp, Finding, Mark
from lowkiq_lambda.views.processes import Process

ROOT: Final = Path(__file__).parents[2]
_CHECK: Final = re.compile(r'(?:_found\(\s*(?:node,\s*)?|check=|_unless_refused\("\w+", )"([a-z ]+)"')
_SOURCES: Final = [*(ROOT / "lowkiq_lambda/operate/doctor").glob("*.py"), ROOT / "lowkiq_lambda/cli/doctor.py"]
CHECKS: Final = {name for path in _SOURCES for name in _CHECK.findall(path.read_text())} - {*get_args(Mark)}
"""The names of all checks, as the code writes them."""


def found(app: Lowkiq, check: str) -> list[tuple[str, str]]:
    """Mark and words of each finding of that name."""
    return marks(check_up(app.operate), check)


def marks(checked: CheckUp, check: str) -> list[tuple[str, str]]:
    """The same, of a check-up."""
    return [(finding.mark, words(finding)) for finding in checked.findings if finding.check == check]


def words(finding: Finding) -> str:
    """What it is about, and what it says."""
    return f"{finding.about}: {finding.says}" if finding.about else finding.says


def not_ok(checked: CheckUp) -> list[int]:
    """The promises that do not simply hold."""
    return [promise.number for promise in checked.promises if promise.mark != "ok"]


def running_process() -> Process:
    """A daemon that is well."""
    return Process(id="web-1:1", host="web-1", pid=1, kind="daemon", version="1", since=0.0, threads=5, state="running")
