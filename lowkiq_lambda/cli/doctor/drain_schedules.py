"""Which shards nothing in a deployed stack drains."""

from collections.abc import Iterator
from typing import Final

from lowkiq_lambda.app import Lowkiq
from lowkiq_lambda.aws.drain_schedules.coverage import coverage_of
from lowkiq_lambda.aws.drain_schedules.deployed import DeployError
from lowkiq_lambda.aws.unscheduled import naming
from lowkiq_lambda.operate.doctor.findings import Finding, Mark
from lowkiq_lambda.operate.doctor.promises import NOTHING_LOST

_ADVICE: Final = (
    "Deploy with the ShardIndexes that `lowkiq drain-schedules indexes` prints, or with FanOut=true. Where "
    "`lowkiq drain-schedules` made the schedules, run it again: lowkiq drain-schedules --stack {}. A daemon needs none."
)


def stack_findings(app: Lowkiq, stack: str) -> Iterator[Finding]:
    """Those of the schedules of the stack, and of the group that `lowkiq drain-schedules` makes for it."""
    try:
        found = coverage_of(app, stack)
    except DeployError as error:
        yield _found("unknown", str(error), "The docs (drain-schedules.md) list the rights that this needs.")
        return
    for name, indexes in found.missing.items():
        yield _found("broken", naming(indexes), _ADVICE.format(stack), name)
    if found.fans_out:
        yield _found("ok", "each tick starts drains of the shards that have work (FanOut)")
    elif not found.missing:
        yield _found("ok", f"each of the {found.shards} shards is drained by a schedule that fires")


def _found(mark: Mark, says: str, advice: str = "", about: str = "") -> Finding:
    promises = () if mark == "ok" else (NOTHING_LOST,)
    return Finding(
        section="aws", check="drain schedules", mark=mark, says=says, advice=advice, about=about, promises=promises
    )
