"""What programs may ask for, and in which words; what does not fit is refused before anything is looked at."""

from http import HTTPStatus
from typing import Annotated, Final, Literal, TypeAlias

import msgspec
from msgspec import UNSET, Meta, UnsetType

from lowkiq_lambda.dashboard.api.operations import Refused
from lowkiq_lambda.dashboard.api.times import NUMBER, TimeBound, in_seconds
from lowkiq_lambda.dashboard.visit import Visit
from lowkiq_lambda.store.inspect.id_filter import ALL, IdFilter
from lowkiq_lambda.worker import Worker

MOST_IDS: Final = 1_000
"""In one call; more are sent in several."""

QueueName: TypeAlias = Annotated[str, Meta(description="The name of a queue of the app.")]
NumberBound: TypeAlias = Annotated[
    str,
    Meta(pattern=f"^({NUMBER})$", description="A number, `(` and a number to leave that one out, `-inf` or `+inf`."),
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
LONGEST_TEXT: Final = 1_000
"""Characters of what is searched for."""
IdPrefix: TypeAlias = Annotated[
    str,
    Meta(min_length=1, max_length=LONGEST_TEXT, description="How the ids begin; any id where this is not given."),
]
ErrorText: TypeAlias = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=LONGEST_TEXT,
        description="What the last errors contain, in whatever case; any error or none where this is not given.",
    ),
]
FilterIdBound: TypeAlias = Annotated[
    str,
    Meta(
        pattern=r"^[(\[]",
        max_length=LONGEST_TEXT,
        description="`[` and an id, or `(` and an id to leave that one out.",
    ),
]
Ids: TypeAlias = Annotated[list[str], Meta(min_length=1, max_length=MOST_IDS)]


_FILTERED: Final = {
    "prefix": "prefix",
    "error": "error",
    "min_id": "least_id",
    "max_id": "most_id",
    "min_perform_in": "least",
    "max_perform_in": "most",
    "min_updated_at": "least",
    "max_updated_at": "most",
    "min_retry_count": "least_count",
    "max_retry_count": "most_count",
}
"""What the fields of a filter are called further down."""
_TIMES: Final = frozenset(name for name, further_down in _FILTERED.items() if further_down in {"least", "most"})


class OfQueue(msgspec.Struct, frozen=True, kw_only=True):
    """Something of one queue."""

    queue: QueueName


class OfJob(OfQueue, frozen=True, kw_only=True):
    """One job."""

    id: Annotated[str, Meta(description="The id of the job.")]


class InFlight(OfQueue, frozen=True, kw_only=True):
    """Jobs in flight."""

    limit: Limit = 100
    cursor: Cursor | UnsetType = UNSET


class ByNumber(InFlight, frozen=True, kw_only=True):
    """A range of jobs, by a number."""

    min: NumberBound = "-inf"
    max: NumberBound = "+inf"
    order: Order = "asc"


class ByTime(InFlight, frozen=True, kw_only=True):
    """A range of jobs, by a time."""

    min: TimeBound = "-inf"
    max: TimeBound = "+inf"
    order: Order = "asc"


class ById(InFlight, frozen=True, kw_only=True):
    """A range of jobs, by the bytes of their ids."""

    min: IdBound = "-"
    max: IdBound = "+"
    order: Order = "asc"


class Search(InFlight, frozen=True, kw_only=True):
    """Jobs of which all that is given holds; in no order."""

    prefix: IdPrefix | UnsetType = UNSET
    error: ErrorText | UnsetType = UNSET


class Found(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a list is narrowed to: jobs of which all of this holds."""

    prefix: IdPrefix | UnsetType = UNSET
    error: ErrorText | UnsetType = UNSET
    min_id: FilterIdBound | UnsetType = UNSET
    max_id: FilterIdBound | UnsetType = UNSET


class FoundWaiting(Found, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Of the jobs that wait, those of which all of this holds."""

    min_perform_in: TimeBound | UnsetType = UNSET
    max_perform_in: TimeBound | UnsetType = UNSET
    min_retry_count: NumberBound | UnsetType = UNSET
    max_retry_count: NumberBound | UnsetType = UNSET


class FoundMorgue(Found, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Of the jobs in the morgue, those of which all of this holds."""

    min_updated_at: TimeBound | UnsetType = UNSET
    max_updated_at: TimeBound | UnsetType = UNSET


class ChosenJobs(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Jobs of one queue, by their ids."""

    queue: QueueName
    ids: Ids


def worker_named(visit: Visit, name: str) -> type[Worker]:
    """The worker of the queue. Raises Refused."""
    for worker in visit.app.workers:
        if worker.queue_name == name:
            return worker
    raise Refused(HTTPStatus.NOT_FOUND, "unknown_queue", "There is no queue of that name.")


def filter_of(found: Found | UnsetType) -> IdFilter:
    """The filter as sweeps know it."""
    if isinstance(found, UnsetType):
        return ALL
    said = {name: value for name, value in msgspec.structs.asdict(found).items() if value is not UNSET}
    return IdFilter(**{_FILTERED[name]: in_seconds(value) if name in _TIMES else value for name, value in said.items()})
