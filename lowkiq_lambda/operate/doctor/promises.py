"""The promises of docs/promises.md, and the findings on each."""

from collections.abc import Sequence
from typing import Final

from lowkiq_lambda.operate.doctor.findings import Finding, PromiseView, worst

ONE_AT_A_TIME: Final = 1
NOTHING_LOST: Final = 2
ORDER: Final = 3
FENCING: Final = 4
BUDGET: Final = 5
HONEST_NUMBERS: Final = 9
PROMISES: Final = {
    ONE_AT_A_TIME: "One at a time",
    NOTHING_LOST: "Nothing lost",
    ORDER: "Order",
    FENCING: "Fencing",
    BUDGET: "The budget holds",
    6: "Failures stay where they belong",
    7: "Equal chances",
    8: "Few round trips",
    HONEST_NUMBERS: "Honest numbers",
    10: "Closed by default",
}
"""A promise without a finding depends only on code, not on the server."""
DATA: Final = (ONE_AT_A_TIME, NOTHING_LOST, ORDER, FENCING)
"""The promises that break if the server loses acknowledged writes: leases, jobs, scores, tokens."""


def promise_views(findings: Sequence[Finding]) -> tuple[PromiseView, ...]:
    """Each promise with its worst finding."""
    return tuple(_view(number, name, findings) for number, name in PROMISES.items())


def _view(number: int, name: str, findings: Sequence[Finding]) -> PromiseView:
    against = [finding for finding in findings if number in finding.promises and finding.mark != "ok"]
    return PromiseView(
        number=number,
        name=name,
        mark=worst(finding.mark for finding in against),
        checks=tuple(dict.fromkeys(finding.check for finding in against)),
    )
