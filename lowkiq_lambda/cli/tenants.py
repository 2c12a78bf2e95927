"""`lowkiq tenants`: the tenants of a queue, in the order in which they are served."""

import math
from typing import Annotated, Final

from cyclopts import Parameter

from lowkiq_lambda.base.errors import ConfigError
from lowkiq_lambda.cli.codes import DONE
from lowkiq_lambda.cli.output import paint, remark, say, table, write_json
from lowkiq_lambda.cli.parts import AppOption, command_app, flag, whole_number
from lowkiq_lambda.cli.queues import QueueName, app_of, queue_of
from lowkiq_lambda.operate.presentation.formatting import ago, duration, exact
from lowkiq_lambda.operate.presentation.tenants import TenantsFound, TenantStats, tenants_response
from lowkiq_lambda.views.shards import MOST_TENANTS, TenantOrder

_HELP: Final = """
List the tenants of QUEUE that have waiting jobs, or that are remembered: how many of their jobs wait, when they were \
served, and whether they are paused or have used up their rate.

The worker has to declare tenants. `lowkiq pause QUEUE --tenant NAME` pauses one, and `lowkiq resume` ends it.
"""
_EPILOGUE: Final = """
EXIT CODES
  0  The tenants are printed, be there none.
  2  The worker declares no tenants; or the command line, the settings or the
     app cannot work.
  3  Redis cannot be reached.

EXAMPLES
  Those with the most jobs:
    lowkiq tenants SyncOrder --order waiting --limit 10
  The names of those that are paused, for a program:
    lowkiq tenants SyncOrder --json \\
      | jq --raw-output '.tenants[] | select(.paused) | .tenant'
"""
_HEAD: Final = ("TENANT", "WAITING", "DUE", "SERVED", "STATE")
_LEFT: Final = frozenset({0, 4})

command: Final = command_app("tenants", help_=_HELP, epilogue=_EPILOGUE, usage="lowkiq tenants [OPTIONS] QUEUE")


@command.default
def tenants(  # noqa: PLR0913 - the options of a command line
    queue: QueueName,
    /,
    *,
    order: Annotated[
        TenantOrder, Parameter(help="fair: those first that are served first; waiting: those with the most jobs.")
    ] = "fair",
    tenant: Annotated[str | None, Parameter(help="This tenant alone.")] = None,
    limit: Annotated[
        int, Parameter(help="The largest number of tenants.", converter=whole_number(1, MOST_TENANTS))
    ] = 100,
    app: AppOption = None,
    json: Annotated[bool, flag("Write an object as GET /api/v1/tenants does; times are Unix seconds.")] = False,
) -> int:
    """Print them; the exit code."""
    named_queue = queue_of(app_of(app), queue)
    if named_queue.worker is not None and named_queue.worker.tenants is None:
        raise ConfigError(f"{named_queue.worker.__name__} declares no tenants: see docs/tenants.md.")
    page = tenants_response(named_queue.operate.tenants(limit, order=order, tenant=tenant))
    if json:
        write_json(page)
        return DONE
    _tell(page)
    return DONE


def _tell(page: TenantsFound) -> None:
    if page.tenants:
        head, *rows = table(_HEAD, map(_row, page.tenants), _LEFT)
        say(head, *(paint(row, "yellow") if one.paused else row for one, row in zip(page.tenants, rows, strict=True)))
    number = len(page.tenants)
    remark(f"{number:,} tenant{'s' if number != 1 else ''}{', and more' if page.cut else ''}")


def _row(one: TenantStats) -> tuple[str, ...]:
    return (
        one.tenant or "(ids without a colon)",
        exact(one.waiting),
        "-" if one.due_at is None else ago(one.due_at - one.at),
        "-" if one.served_at is None else ago(one.served_at - one.at),
        _state(one),
    )


def _state(one: TenantStats) -> str:
    if one.paused:
        until = one.paused_until
        return "paused" if until is None or math.isinf(until) else f"paused for {duration(until - one.at)}"
    if one.rests_until is not None and one.rests_until > one.at:
        return f"rests for {duration(one.rests_until - one.at)}, as its rate is used up"
    return ""
