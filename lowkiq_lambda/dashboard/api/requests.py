"""Parameters of the API's operations. msgspec validates them before an operation runs."""

from http import HTTPStatus
from typing import Annotated, Any, Final, Literal, TypeAlias

import msgspec
from msgspec import UNSET, Meta, UnsetType

from lowkiq_lambda.dashboard.api.operations import ApiError
from lowkiq_lambda.dashboard.context import NO_QUEUE, RequestContext
from lowkiq_lambda.dashboard.payload_search import check_payload_search
from lowkiq_lambda.declare.worker import Worker
from lowkiq_lambda.operate.inspect.id_filter import ALL, IdFilter
from lowkiq_lambda.operate.inspect.payload_query import MOST_CHARACTERS
from lowkiq_lambda.operate.presentation.moments import moment_of
from lowkiq_lambda.views.activity import Reason

MOST_IDS: Final = 1_000
"""In one call."""

QueueName: TypeAlias = Annotated[str, Meta(description="The name of a queue of the app.")]

NUMBER: Final = r"[(\[]?[+-]?([0-9]{1,32}(\.[0-9]{0,32})?([eE][+-]?[0-9]{1,3})?|inf)|[+-]"
"""A numeric bound."""
NumberBound: TypeAlias = Annotated[
    str,
    Meta(pattern=f"^({NUMBER})$", description="A number (inclusive), `(` and a number (exclusive), `-inf` or `+inf`."),
]
IdBound: TypeAlias = Annotated[
    str,
    Meta(
        description="An id (inclusive), `(` and an id (exclusive), or `-` and `+` for no bound. "
        "An id that begins with one of these signs needs `[` before it."
    ),
]
Order: TypeAlias = Annotated[Literal["asc", "desc"], Meta(description="Ascending or descending.")]
Limit: TypeAlias = Annotated[
    int, Meta(ge=1, le=1_000, description="The largest number of jobs; fewer if they are large.")
]
Cursor: TypeAlias = Annotated[str, Meta(description="The `next` of the page before.")]
LONGEST_TEXT: Final = 1_000
"""Characters of a search text."""
IdPrefix: TypeAlias = Annotated[
    str,
    Meta(min_length=1, max_length=LONGEST_TEXT, description="The prefix of the ids; any id if absent."),
]
ErrorText: TypeAlias = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=LONGEST_TEXT,
        description="A text in the last errors, in any case; any error or none if absent.",
    ),
]
ErrorFingerprint: TypeAlias = Annotated[
    str,
    Meta(
        pattern="^[0-9a-f]{16}$",
        description="The `fingerprint` of a group of `errors`: exactly the jobs of that group; any error or none if "
        "absent.",
    ),
]
PayloadSearch: TypeAlias = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=MOST_CHARACTERS,
        description="Conditions that one of the payloads meets, such as `customer.id:17 total>100 -status:paid`; any "
        "payload if absent.",
    ),
]
FilterIdBound: TypeAlias = Annotated[
    str,
    Meta(
        pattern=r"^[(\[]",
        max_length=LONGEST_TEXT,
        description="`[` and an id (inclusive), or `(` and an id (exclusive).",
    ),
]
Ids: TypeAlias = Annotated[list[str], Meta(min_length=1, max_length=MOST_IDS)]


_FILTERED: Final = {
    "prefix": "prefix",
    "error": "error",
    "fingerprint": "fingerprint",
    "payload": "payload",
    "min_id": "least_id",
    "max_id": "most_id",
    "min_due_at": "least",
    "max_due_at": "most",
    "min_updated_at": "least",
    "max_updated_at": "most",
    "min_retry_count": "least_count",
    "max_retry_count": "most_count",
}
"""The names of the fields in the store's filter."""
_TIMES: Final = frozenset(name for name, of_store in _FILTERED.items() if of_store in {"least", "most"})
_LEAP_YEAR: Final = "(19(72|76|8[048]|9[26])|20([02468][048]|[13579][26]))"
_DAY_OF_YEAR: Final = "((0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])|(0[13-9]|1[0-2])-(29|30)|(0[13578]|1[02])-31)"
_CLOCK: Final = r"([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9](\.[0-9]{1,6})?)?"
ISO_MOMENT: Final = (
    rf"((19[7-9][0-9]|20[0-9]{{2}})-{_DAY_OF_YEAR}|{_LEAP_YEAR}-02-29)"
    rf"(T{_CLOCK}(Z|[+-](0[0-9]|1[0-4]):[0-5][0-9])?)?"
)

TimeBound: TypeAlias = Annotated[
    str,
    Meta(
        pattern=rf"^({NUMBER}|[(\[]?{ISO_MOMENT})$",
        description="A time (inclusive), `(` and a time (exclusive), `-inf` or `+inf`. A time is in Unix seconds or in "
        "ISO 8601: years 1970 to 2099, UTC without a zone; a date stands for its first second.",
    ),
]

Moment: TypeAlias = Annotated[
    str,
    Meta(
        pattern=rf"^([0-9]{{1,12}}(\.[0-9]{{0,6}})?|{ISO_MOMENT})$",
        description="Unix seconds, or ISO 8601: years 1970 to 2099, UTC without a zone.",
    ),
]


class QueueParams(msgspec.Struct, frozen=True, kw_only=True):
    """One queue."""

    queue: QueueName


class JobParams(QueueParams, frozen=True, kw_only=True):
    """One job."""

    id: Annotated[str, Meta(description="The id of the job.")]


class PageParams(QueueParams, frozen=True, kw_only=True):
    """A page of a queue's jobs."""

    limit: Limit = 100
    cursor: Cursor | UnsetType = UNSET


class NumberRangeParams(PageParams, frozen=True, kw_only=True):
    """A range of jobs by a number."""

    min: NumberBound = "-inf"
    max: NumberBound = "+inf"
    order: Order = "asc"


class TimeRangeParams(PageParams, frozen=True, kw_only=True):
    """A range of jobs by a time."""

    min: TimeBound = "-inf"
    max: TimeBound = "+inf"
    order: Order = "asc"


class IdRangeParams(PageParams, frozen=True, kw_only=True):
    """A range of jobs by the bytes of their ids."""

    min: IdBound = "-"
    max: IdBound = "+"
    order: Order = "asc"


class SearchParams(PageParams, frozen=True, kw_only=True):
    """Jobs that match all given conditions, in no order; with a fingerprint or a payload by their time."""

    prefix: IdPrefix | UnsetType = UNSET
    error: ErrorText | UnsetType = UNSET
    fingerprint: ErrorFingerprint | UnsetType = UNSET
    payload: PayloadSearch | UnsetType = UNSET


class JobFilter(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Conditions on a job; all must hold."""

    prefix: IdPrefix | UnsetType = UNSET
    error: ErrorText | UnsetType = UNSET
    fingerprint: ErrorFingerprint | UnsetType = UNSET
    payload: PayloadSearch | UnsetType = UNSET
    min_id: FilterIdBound | UnsetType = UNSET
    max_id: FilterIdBound | UnsetType = UNSET


class WaitingFilter(JobFilter, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Conditions on a waiting job; all must hold."""

    min_due_at: TimeBound | UnsetType = UNSET
    max_due_at: TimeBound | UnsetType = UNSET
    min_retry_count: NumberBound | UnsetType = UNSET
    max_retry_count: NumberBound | UnsetType = UNSET


class MorgueFilter(JobFilter, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Conditions on a job in the morgue; all must hold."""

    min_updated_at: TimeBound | UnsetType = UNSET
    max_updated_at: TimeBound | UnsetType = UNSET


class ReasonedAct(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Something that changes what others work with."""

    reason: Reason = ""


class QueueAct(ReasonedAct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A queue."""

    queue: QueueName


class JobIds(QueueAct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Jobs of one queue by their ids. More than 100 need a `reason`."""

    ids: Ids


def worker_named(context: RequestContext, name: str) -> type[Worker[Any]]:
    """The worker of the queue. Raises ApiError."""
    worker = context.worker_named(name)
    if worker is None:
        raise ApiError(HTTPStatus.NOT_FOUND, "unknown_queue", NO_QUEUE)
    return worker


def check_payload(context: RequestContext, text: str) -> None:
    """Raises ApiError for a text that cannot be a search of payloads, or where none may be made."""
    try:
        check_payload_search(context, text)
    except ValueError as error:
        raise ApiError(HTTPStatus.BAD_REQUEST, "bad_parameter", str(error)) from error


def filter_of(context: RequestContext, job_filter: JobFilter | SearchParams | UnsetType) -> IdFilter:
    """The filter of the store; it leaves out other fields, such as the queue. Raises ApiError."""
    if isinstance(job_filter, UnsetType):
        return ALL
    bounds: dict[str, str] = {}
    for name, value in msgspec.structs.asdict(job_filter).items():
        if value is not UNSET and name in _FILTERED:
            bounds[_FILTERED[name]] = in_seconds(value) if name in _TIMES else value
    check_payload(context, bounds.get("payload", ""))
    return IdFilter(**bounds)


def in_seconds(bound: str) -> str:
    """A valid `TimeBound` in Unix seconds.

    >>> in_seconds("(2027-01-15T09:00:00+01:00"), in_seconds("2027-01-15"), in_seconds("-inf")
    ('(1800000000.0', '1799971200.0', '-inf')
    """
    sign = bound[:1] if bound[:1] in {"(", "["} else ""
    text = bound.removeprefix(sign)
    if text[4:5] != "-":
        return bound
    return f"{sign}{moment_of(text, 0.0)!r}"
