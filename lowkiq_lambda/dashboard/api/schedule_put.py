"""The operation that makes a schedule entry at run time."""

from datetime import datetime
from http import HTTPStatus
from typing import Annotated, Any, Final, TypeAlias

import msgspec
from msgspec import UNSET, Meta, UnsetType

from lowkiq_lambda.base.errors import DeclarationError
from lowkiq_lambda.dashboard import audit
from lowkiq_lambda.dashboard.api.operations import ApiError
from lowkiq_lambda.dashboard.api.requests import QueueName, worker_named
from lowkiq_lambda.dashboard.api.schedules import EntryName, OneEntryResponse, one_entry
from lowkiq_lambda.dashboard.context import RequestContext
from lowkiq_lambda.dashboard.entries import target
from lowkiq_lambda.schedules.cron import LONGEST_TEXT
from lowkiq_lambda.schedules.misfire import Missed, Overlap

Seconds: TypeAlias = Annotated[float, Meta(ge=0, le=366 * 86_400, description="Seconds.")]
_TIMES: Final = ("cron", "every", "offset", "at")


class NewEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An entry to make, or to put in place of the one of its name that was made at run time before.

    Give one of `cron`, `every` and `at`. `cron`: an expression of five fields, or six with seconds first, in the zone
    `tz`. `every`: seconds, with an `offset` less than it. `at`: Unix seconds, or ISO 8601 with its zone. `name`:
    printable characters. `missed`, `grace`, `overlap` and `jitter` as in code; what is left out is as by default, also
    where an entry is replaced.
    """

    queue: QueueName
    name: EntryName
    id: Annotated[str, Meta(min_length=1, description="The id of the job.")]
    cron: Annotated[str, Meta(max_length=LONGEST_TEXT)] | UnsetType = UNSET
    every: Seconds | UnsetType = UNSET
    offset: Seconds | UnsetType = UNSET
    at: float | str | UnsetType = UNSET
    tz: (
        Annotated[str, Meta(description="The name of a time zone, such as `Europe/Berlin`; UTC if absent.")] | UnsetType
    ) = UNSET
    payload: Annotated[Any, Meta(description="The payload of the job: any JSON; an empty text if absent.")] = UNSET
    missed: Missed | UnsetType = UNSET
    grace: Annotated[float, Meta(ge=60, le=366 * 86_400)] | UnsetType = UNSET
    overlap: Overlap | UnsetType = UNSET
    jitter: Annotated[float, Meta(ge=0, le=86_400)] | UnsetType = UNSET
    description: Annotated[str, Meta(max_length=1_000)] | UnsetType = UNSET


def put(context: RequestContext, params: NewEntry) -> OneEntryResponse:
    """Make a schedule entry at run time, or replace the one of its name. Entries of code cannot be replaced.

    One that is off stays off. Times that differ from those before count from now on.
    """
    worker = worker_named(context, params.queue)
    given = {field: value for field, value in msgspec.structs.asdict(params).items() if value is not UNSET}
    del given["queue"], given["name"]
    try:
        if isinstance(params.at, str):
            given["at"] = _moment(params.at)
        context.app.schedules.put(params.name, worker, **given)
    except DeclarationError as error:
        raise ApiError(HTTPStatus.BAD_REQUEST, "bad_entry", str(error)) from error
    times = {field: value for field in _TIMES if (value := getattr(params, field)) is not UNSET}
    audit.note(context, "put", params.queue, target(params.name), 1, job=params.id, **times)
    return one_entry(context, worker, params.name)


def _moment(at: str) -> datetime:
    try:
        return datetime.fromisoformat(at)
    except ValueError as error:
        raise DeclarationError(
            f"at must be Unix seconds, or ISO 8601 with its zone, such as 2026-12-31T23:00:00Z: {error}."
        ) from error
