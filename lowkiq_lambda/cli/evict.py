"""`lowkiq evict`: the holder of a shard may write no more."""

from typing import Annotated, Final

import msgspec
from cyclopts import Parameter

from lowkiq_lambda.base.address import without_password
from lowkiq_lambda.base.errors import ConfigError
from lowkiq_lambda.cli.codes import DONE, FAILED, NOT_APPLIED
from lowkiq_lambda.cli.noting import note
from lowkiq_lambda.cli.output import remark, say, when, write_json
from lowkiq_lambda.cli.parts import command_app, flag, whole_number
from lowkiq_lambda.cli.queues import ACT, ActOptions, NamedQueue, QueueName, app_of, queue_of
from lowkiq_lambda.operate.presentation.formatting import duration, visible
from lowkiq_lambda.views.shards import ShardDetails

_HELP: Final = """
Evict the process that holds SHARD of QUEUE, or the shard that has the job of --id in flight: all its further writes \
are refused.

It is for a process that is frozen, or a handler that never ends. The shard is free when the lease would have ended \
without a renewal, not before: until then the handler may still run. What is in flight counts as abandoned, and is \
tried again. The command names the holder and asks; with --yes it does not ask.
"""
_EPILOGUE: Final = """
EXIT CODES
  0  The holder is evicted.
  1  Nothing was changed: nobody holds the shard, or the job is not in flight;
     or the answer was not yes.
  2  The command line, the settings or the app cannot work; or there is no
     terminal to ask at, and no --yes.
  3  Redis cannot be reached: run the command again.

EXAMPLES
  Who holds which shard, and since when:
    lowkiq processes shop.jobs:app
  The holder of shard 3:
    lowkiq evict SyncOrder 3
  The process that has had a job for an hour, in a script:
    lowkiq evict SyncOrder --id 17 --reason "hangs in the ERP" --yes
"""
_MOST_SHARDS: Final = 2**20

command: Final = command_app(
    "evict", help_=_HELP, epilogue=_EPILOGUE, usage="lowkiq evict [OPTIONS] QUEUE (SHARD | --id ID)"
)


class EvictedHolder(msgspec.Struct, frozen=True, kw_only=True):
    """Whether the holder of the shard was evicted; false if it did not hold the shard any more."""

    queue: str
    shard: int
    owner: str
    evicted: bool


@command.default
def evict(
    queue: QueueName,
    shard: Annotated[
        int | None, Parameter(name="SHARD", help="The number of the shard.", converter=whole_number(0, _MOST_SHARDS))
    ] = None,
    /,
    *,
    id_: Annotated[str | None, Parameter(name="--id", help="A job in flight, in place of SHARD.")] = None,
    act: ActOptions = ACT,
    json: Annotated[bool, flag("Write queue, shard, owner and evicted as JSON.")] = False,
) -> int:
    """Evict; the exit code."""
    if (shard is None) == (id_ is None):
        raise ConfigError("Give the number of a shard, or --id: one of the two.")
    named_queue = queue_of(app_of(act.app), queue)
    holder = _holder(named_queue, shard, id_)
    if holder is None:
        what = f"shard {shard} of {named_queue.name} has no holder" if id_ is None else _not_in_flight(named_queue, id_)
        remark(f"{what}: nothing was changed")
        return FAILED
    if not act.is_agreed(_question(named_queue, holder), json=json):
        return NOT_APPLIED
    is_evicted = named_queue.operate.in_flight.evict_holder(holder.index, holder.token)
    target = f"holder {holder.token} of shard {holder.index}"
    note(named_queue.app, named_queue.name, "evict", target, int(is_evicted), act.reason)
    if json:
        index, owner = holder.index, holder.owner
        write_json(EvictedHolder(queue=named_queue.name, shard=index, owner=owner, evicted=is_evicted))
    elif is_evicted:
        say(f"evicted: shard {holder.index} is free at {when(holder.held_until)}, if not earlier")
    else:
        say(f"shard {holder.index} has another holder by now: nothing was changed")
    return DONE if is_evicted else FAILED


def _holder(queue: NamedQueue, shard: int | None, job_id: str | None) -> ShardDetails | None:
    """The shard that is held now. Raises ConfigError for a number that no shard has."""
    # Before the look at the ids: a holder that comes in between has another token, and is left alone.
    details = queue.operate.shards()
    if shard is not None and shard >= len(details):
        raise ConfigError(f"The shards of {queue.name} have the numbers 0 to {len(details) - 1}.")
    number = shard if job_id is None else _shard_with(queue, job_id)
    if number is None or details[number].held_until <= details[number].at:
        return None
    return details[number]


def _shard_with(queue: NamedQueue, job_id: str) -> int | None:
    in_flight = queue.operate.in_flight
    criteria = {"least_id": f"[{job_id}", "most_id": f"[{job_id}"}
    return next(iter(in_flight.shards_with(criteria)), None)


def _not_in_flight(queue: NamedQueue, job_id: str | None) -> str:
    return f"no job of the id {visible(job_id or '')} is in flight in {queue.name}"


def _question(queue: NamedQueue, shard: ShardDetails) -> str:
    since = "" if shard.acquired_at is None else f", for {duration(shard.at - shard.acquired_at)}"
    ids = f"{shard.in_flight:,} id{'s' if shard.in_flight != 1 else ''} in flight"
    url = without_password(queue.app.core.connections.url)
    return (
        f"Evict {visible(shard.owner)}, which holds shard {shard.index} of {queue.name}{since}, with {ids}, at {url}?"
    )
