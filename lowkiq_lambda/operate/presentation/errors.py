"""Errors in groups with their shares and releases: on the page, by the API, and at the command line."""

from collections.abc import Sequence

import msgspec

from lowkiq_lambda.views.errors import ErrorGroup, ErrorGroups
from lowkiq_lambda.views.runs import Release


class SharedError(ErrorGroup, frozen=True, kw_only=True):
    """A group, with its `share` of all errors that were read, 0 to 1.

    `since_release`: the newest release when its first failure that is kept happened; null if none is known.
    """

    share: float
    since_release: str | None


class ErrorsView(ErrorGroups, frozen=True, kw_only=True):
    """Errors in groups, the largest group first.

    `counted`: how many errors were read, of about `total`. `next`: with it the next call reads further errors, and
    counts only these; null if none are left. `others`: how many groups the limit left out. `skipped`: queues whose
    declarations in Redis differ from the app's, by name, each with a sentence.
    """

    groups: list[SharedError]  # type: ignore[assignment]  # they are groups, and more


def errors_view(errors: ErrorGroups, releases: Sequence[Release]) -> ErrorsView:
    """The groups with their shares. `releases`: the newest first."""
    groups = [
        SharedError(
            **msgspec.structs.asdict(group),
            share=group.count / max(1, errors.counted),
            since_release=_release_at(group.first_at, releases),
        )
        for group in errors.groups
    ]
    return ErrorsView(**{**msgspec.structs.asdict(errors), "groups": groups})


def _release_at(at: float | None, releases: Sequence[Release]) -> str | None:
    if at is None:
        return None
    return next((release.name for release in releases if release.since <= at), None)
