"""What a declaration takes on trust: whether the times of an entry come, and whether its job can be pushed."""

import math
from typing import TYPE_CHECKING

from lowkiq_lambda.base.errors import DeclarationError, JobError
from lowkiq_lambda.push.checking import Checker
from lowkiq_lambda.schedules.entry import ScheduleEntry

if TYPE_CHECKING:
    from lowkiq_lambda.settings.config import Config


def checker_of(config: "Config", shards_count: int) -> Checker:
    """Checks the jobs of entries, as those of a push are."""
    return Checker(
        shards_count, config.dump_payload, config.max_payload_bytes, config.max_id_bytes, now=lambda: math.nan
    )


def problem_of(entry: ScheduleEntry, config: "Config") -> str | None:
    """Why the entry cannot fire, in a sentence that names it, or None. Asks no Redis."""
    try:
        entry.check()
        checker_of(config, 1).check_all([{"id": entry.id, "payload": entry.payload}])
    except DeclarationError as error:
        return str(error)
    except JobError as error:
        return f"{entry.label}: {error}"
    return None
