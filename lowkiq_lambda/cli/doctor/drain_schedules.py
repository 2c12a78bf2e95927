"""Which shards no schedule of a deployed stack drains."""

import re
from collections.abc import Iterator
from typing import Final

from lowkiq_lambda.app import Lowkiq
from lowkiq_lambda.aws.drain_schedules.deployed import DeployError, Group, stack_outputs
from lowkiq_lambda.aws.drain_schedules.inventory import shards_counts
from lowkiq_lambda.aws.drain_schedules.schedule import indexes_of
from lowkiq_lambda.doctor.findings import Finding, Mark
from lowkiq_lambda.doctor.promises import NOTHING_LOST
from lowkiq_lambda.doctor.words import some

_NAME: Final = re.compile(r"(?:.+-)?shard-([0-9]+)")


def stack_findings(app: Lowkiq, stack: str) -> Iterator[Finding]:
    """Those of the schedules of the stack, and of the group that `lowkiq drain-schedules` makes for it."""
    needed = indexes_of([*(worker.shards_count for worker in app.workers), *shards_counts(app)])
    try:
        groups = dict.fromkeys((stack_outputs(stack).get("ScheduleGroupName"), f"{stack}-schedules"))
        names = [name for group in groups if group for name in Group(group).enabled()]
    except DeployError as error:
        yield _found("unknown", str(error), "The docs (drain-schedules.md) list the rights that this needs.")
        return
    there = {int(found[1]) for name in names if (found := _NAME.fullmatch(name))}
    missing = [index for index in needed if index not in there]
    if missing:
        says = f"no schedule that fires drains the shard indexes {some(missing)}"
        advice = f"Make them: lowkiq drain-schedules --stack {stack}. A daemon needs none."
        yield _found("broken", says, advice)
    else:
        yield _found("ok", f"each of the {len(needed)} shard indexes has a schedule that fires")


def _found(mark: Mark, says: str, advice: str = "") -> Finding:
    promises = () if mark == "ok" else (NOTHING_LOST,)
    return Finding(section="aws", check="drain schedules", mark=mark, says=says, advice=advice, promises=promises)
