"""Kept runs as the JSON API and the command line give them."""

from typing import Annotated

import msgspec
from msgspec import Meta

from lowkiq_lambda.views.runs import KeptRun, RunPage


class RunsView(msgspec.Struct, frozen=True, kw_only=True):
    """A page of runs. Times are Unix seconds by the server's clock."""

    runs: list[KeptRun]
    next: Annotated[str | None, Meta(description="The `after` of the next page; null at the end of the list.")]
    cut: Annotated[bool, Meta(description="The search ended before it had read all runs: go on with `next`.")]
    kept_since: Annotated[float | None, Meta(description="From then on no run is missing; null: there are no runs.")]
    unreadable: Annotated[int, Meta(description="Runs on the way to the page's end that cannot be read.")]
    lost: Annotated[int, Meta(description="Runs that Redis had no room for.")]


def runs_view(page: RunPage) -> RunsView:
    """The page as a value."""
    return RunsView(
        runs=[*page],
        next=page.next,
        cut=page.cut,
        kept_since=page.kept_since,
        unreadable=page.unreadable,
        lost=page.lost,
    )
