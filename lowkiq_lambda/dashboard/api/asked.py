"""What programs may ask for, and in which words; what does not fit is refused before anything is looked at."""

from http import HTTPStatus
from typing import Annotated, Final, Literal, TypeAlias

import msgspec
from msgspec import Meta

from lowkiq_lambda.dashboard.api.operations import Refused
from lowkiq_lambda.dashboard.visit import Visit
from lowkiq_lambda.worker import Worker

MOST_IDS: Final = 1_000
"""In one call; more are sent in several."""
_NUMBER: Final = r"^([(\[]?[+-]?([0-9]{1,32}(\.[0-9]{0,32})?([eE][+-]?[0-9]{1,3})?|inf)|[+-])$"

QueueName: TypeAlias = Annotated[str, Meta(description="The name of a queue of the app.")]
NumberBound: TypeAlias = Annotated[
    str, Meta(pattern=_NUMBER, description="A number, `(` and a number to leave that one out, `-inf` or `+inf`.")
]
IdBound: TypeAlias = Annotated[
    str,
    Meta(
        description="An id, `(` and an id to leave that one out, `-` or `+` for no bound; "
        "an id that begins with such a sign stands behind `[`."
    ),
]
Order: TypeAlias = Annotated[Literal["asc", "desc"], Meta(description="Upwards or downwards.")]
Limit: TypeAlias = Annotated[int, Meta(ge=1, le=1_000, description="How many jobs, at most; large ones end it sooner.")]
Cursor: TypeAlias = Annotated[str, Meta(description="The `next` of a page, to go on behind it.")]
Ids: TypeAlias = Annotated[list[str], Meta(min_length=1, max_length=MOST_IDS)]


class OfQueue(msgspec.Struct, frozen=True, kw_only=True):
    """Something of one queue."""

    queue: QueueName


class OfJob(OfQueue, frozen=True, kw_only=True):
    """One job."""

    id: Annotated[str, Meta(description="The id of the job.")]


class InFlight(OfQueue, frozen=True, kw_only=True):
    """Jobs in flight."""

    limit: Limit = 100
    cursor: Cursor | msgspec.UnsetType = msgspec.UNSET


class ByNumber(InFlight, frozen=True, kw_only=True):
    """A range of jobs, by a number."""

    min: NumberBound = "-inf"
    max: NumberBound = "+inf"
    order: Order = "asc"


class ById(InFlight, frozen=True, kw_only=True):
    """A range of jobs, by the bytes of their ids."""

    min: IdBound = "-"
    max: IdBound = "+"
    order: Order = "asc"


class ChosenJobs(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Jobs of one queue, by their ids."""

    queue: QueueName
    ids: Ids


def worker_named(visit: Visit, name: str) -> type[Worker]:
    """The worker of the queue. Raises Refused."""
    for worker in visit.app.workers:
        if worker.queue_name == name:
            return worker
    raise Refused(HTTPStatus.NOT_FOUND, "There is no queue of that name.")
