"""A look at an app's server, in short."""

from lowkiq_lambda import Lowkiq
from lowkiq_lambda.operate.doctor.checkup import check_up
from lowkiq_lambda.operate.doctor.findings import CheckUp, Finding


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
