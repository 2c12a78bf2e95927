"""Kept runs, and the releases of the user's code."""

from functools import partial
from http import HTTPStatus
from typing import Annotated, Final

import msgspec
from msgspec import UNSET, Meta, UnsetType

from lowkiq_lambda.dashboard import activity
from lowkiq_lambda.dashboard.api.operations import ApiError, NoParams
from lowkiq_lambda.dashboard.api.requests import Cursor, Moment, QueueParams, in_seconds, worker_named
from lowkiq_lambda.dashboard.context import RequestContext
from lowkiq_lambda.operate.acts.replaying import Replayed
from lowkiq_lambda.operate.inspect.releases import began_at
from lowkiq_lambda.operate.presentation.runs import RunsView, runs_view
from lowkiq_lambda.views.activity import Reason, ReasonMissing, need_reason
from lowkiq_lambda.views.runs import Release, RunOutcome

LONGEST_NAME: Final = 200
"""Characters of names in a filter."""


class RunsParams(QueueParams, frozen=True, kw_only=True):
    """A page of a queue's runs. `since`, `until`: runs at some moment between, both inclusive."""

    since: Moment | UnsetType = UNSET
    until: Moment | UnsetType = UNSET
    since_release: (
        Annotated[str, Meta(max_length=LONGEST_NAME, description="Runs since a process first had this release.")]
        | UnsetType
    ) = UNSET
    id: Annotated[str, Meta(description="The id of the job.")] | UnsetType = UNSET
    outcome: Annotated[RunOutcome, Meta(description="Of runs with this outcome.")] | UnsetType = UNSET
    fingerprint: (
        Annotated[str, Meta(pattern="^[0-9a-f]{16}$", description="That of the run's error, exactly.")] | UnsetType
    ) = UNSET
    release: Annotated[str, Meta(max_length=LONGEST_NAME, description="Exactly.")] | UnsetType = UNSET
    holder: Annotated[str, Meta(max_length=LONGEST_NAME, description="Exactly.")] | UnsetType = UNSET
    took_over: Annotated[float, Meta(ge=0, le=1e9, description="Runs that took longer, in seconds.")] | UnsetType = (
        UNSET
    )
    limit: Annotated[int, Meta(ge=1, le=1_000, description="The largest number of runs.")] = 100
    cursor: Cursor | UnsetType = UNSET


class RunsReplay(QueueParams, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The runs whose payloads are pushed again: those that ran at some moment between, both inclusive."""

    since: Moment
    until: Moment
    outcome: Annotated[RunOutcome, Meta(description="Of runs with this outcome.")] = "done"
    id_prefix: Annotated[str, Meta(max_length=LONGEST_NAME, description="Of ids that begin so.")] = ""
    rate: (
        Annotated[float, Meta(gt=0, le=1_000_000, description="Ids that become due in a second; else all at once.")]
        | UnsetType
    ) = UNSET
    dry_run: Annotated[bool, Meta(description="Push nothing, and answer with what would be pushed.")] = False
    reason: Annotated[Reason, Meta(description="Why, for the activity log. More than 100 ids need one.")] = ""


class Releases(msgspec.Struct, frozen=True, kw_only=True):
    """The releases that processes have had, the newest first. `since`: Unix seconds."""

    releases: list[Release]


def runs(context: RequestContext, params: RunsParams) -> RunsView:
    """The runs of a queue, the newest first, if its worker keeps runs (`keep_runs`).

    `cut`: the search ended before it had read all runs, so go on with `next` as `cursor`. A run whose process died has
    the outcome `recovered`, and no `took`.
    """
    worker = worker_named(context, params.queue)
    fields = {
        name: None if isinstance(value := getattr(params, name), UnsetType) else value
        for name in ("id", "outcome", "fingerprint", "release", "holder", "took_over")
    }
    after = None if isinstance(params.cursor, UnsetType) else params.cursor
    until = None if isinstance(params.until, UnsetType) else float(in_seconds(params.until))
    try:
        page = context.app.operate(worker).runs(
            since=_since(context, params), until=until, limit=params.limit, after=after, **fields
        )
    except ValueError as error:
        raise ApiError(
            HTTPStatus.BAD_REQUEST, "bad_cursor", "The cursor is invalid: send the `next` of a page."
        ) from error
    return runs_view(page)


def replay(context: RequestContext, params: RunsReplay) -> Replayed:
    """Push the payloads of runs again, with their scores, each once a week for its run.

    The worker has to keep payloads: `keep_runs = KeepRuns(..., payloads=True)`.
    """
    worker = worker_named(context, params.queue)
    since, until = float(in_seconds(params.since)), float(in_seconds(params.until))
    rate = None if isinstance(params.rate, UnsetType) else params.rate
    run = partial(
        context.app.operate(worker).replay,
        since=since,
        until=until,
        outcome=params.outcome,
        id_prefix=params.id_prefix,
        rate=rate,
    )
    try:
        if not (params.dry_run or params.reason.strip()):
            need_reason(params.reason, run(dry_run=True).ids)
        replayed = run(dry_run=params.dry_run)
    except ReasonMissing:
        raise
    except ValueError as error:
        raise ApiError(HTTPStatus.BAD_REQUEST, "bad_parameter", f"{error}.") from error
    if not params.dry_run:
        activity.note(context, "replay", params.queue, f"runs from {since:.0f} to {until:.0f}", replayed.written)
    return replayed


def releases(context: RequestContext, params: NoParams) -> Releases:  # noqa: ARG001 - there are none
    """The last 50 releases of the app's code that a process has begun with (`Config.release`)."""
    return Releases(releases=context.app.operate.releases())


def _since(context: RequestContext, params: RunsParams) -> float | None:
    since = None if isinstance(params.since, UnsetType) else float(in_seconds(params.since))
    if isinstance(params.since_release, UnsetType):
        return since
    try:
        began = began_at(context.app.operate.releases(), params.since_release)
    except ValueError as error:
        raise ApiError(HTTPStatus.NOT_FOUND, "unknown_release", "No process has had this release.") from error
    return began if since is None else max(began, since)
